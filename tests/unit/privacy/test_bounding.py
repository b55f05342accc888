"""Bounding: a fair order of each user's items that nothing but the user and the key decides."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dp_sips.privacy import bounding
from dp_sips.privacy.noise import Key

pytestmark = pytest.mark.fresh

# Each of the some fifty binomial tests below is exact, and raises a false alarm that rarely.
ALPHA = 1e-9

ITEMS, KEPT, KEYS = 20, 5, 8000

Rank = Callable[[Any, Any], Any]


def blocks(numbers: Any) -> Any:
    numbers = np.atleast_1d(np.asarray(numbers, dtype=np.uint64))
    return np.stack([numbers, np.full_like(numbers, 0xF0 << 56)], axis=1)


def kept(rank: Rank, users: int) -> Any:
    """Return, for each key, user and item, whether the item is among the user's first ones."""
    chosen = np.zeros((KEYS, users, ITEMS), dtype=np.bool_)
    for draw in chosen:
        key = Key.fresh()
        items = bounding.item_words(key, blocks(np.arange(ITEMS)))
        for choice, user in zip(
            draw, bounding.user_words(key, blocks(np.arange(users))), strict=True
        ):
            choice[np.argsort(rank(user, items))[:KEPT]] = True
    return chosen


def least_p(counts: Any, chance: float) -> float:
    """Return the smallest p-value: each count is Binomial(KEYS, chance) if all is well."""
    return min(float(stats.binomtest(int(n), KEYS, chance).pvalue) for n in counts)


def favours_one(users: Any, items: Any) -> Any:
    ranks = bounding.rank(users, items)
    ranks[0] //= np.uint64(2)
    return ranks


def ignores_users(_: Any, items: Any) -> Any:
    return bounding.mix(items)


class TestFairness:
    """8,000 keys: the standard error of a chance of 1/4 is 0.5 %.

    A rule that halves one item's rank keeps it nearly twice as often, and one that ignores the
    user makes two users keep an item together in 1/4 of the cases, not 1/16: both are more than
    forty standard errors away.
    """

    def test_every_item_and_every_pair_is_kept_equally_often(self) -> None:
        chosen = kept(bounding.rank, users=2)
        assert (chosen.sum(axis=2) == KEPT).all()
        assert least_p(chosen[:, 0].sum(axis=0), KEPT / ITEMS) > ALPHA
        pairs = (chosen[:, 0, 1:] & chosen[:, 0, :-1]).sum(axis=0)
        assert least_p(pairs, KEPT * (KEPT - 1) / (ITEMS * (ITEMS - 1))) > ALPHA
        # Two users choose independently.
        both = (chosen[:, 0] & chosen[:, 1]).sum(axis=0)
        assert least_p(both, (KEPT / ITEMS) ** 2) > ALPHA

    def test_a_rule_that_favours_one_item_is_caught(self) -> None:
        chosen = kept(favours_one, users=1)
        assert least_p(chosen[:, 0].sum(axis=0), KEPT / ITEMS) < ALPHA

    def test_a_rule_that_ignores_users_is_caught(self) -> None:
        chosen = kept(ignores_users, users=2)
        both = (chosen[:, 0] & chosen[:, 1]).sum(axis=0)
        assert least_p(both, (KEPT / ITEMS) ** 2) < ALPHA


class TestRank:
    @given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1), min_size=1))
    def test_depends_on_one_user_and_one_item_only(self, user: int, items: list[int]) -> None:
        """Other users, other items and their order do not matter."""
        key = Key.for_tests(3)
        user_word = bounding.user_words(key, blocks(user))
        together = bounding.rank(user_word, bounding.item_words(key, blocks(items)))
        for item, rank in zip(items, together, strict=True):
            alone = bounding.rank(user_word, bounding.item_words(key, blocks(item)))
            assert alone.tolist() == [rank]
        beside = bounding.user_words(key, blocks([user, user ^ 1, 5]))
        assert beside[0] == user_word[0]

    def test_is_new_for_each_key(self) -> None:
        plain = blocks(np.arange(1000))
        words = [bounding.item_words(Key.fresh(), plain) for _ in range(2)]
        assert (words[0] != words[1]).all()

    def test_users_and_items_have_words_of_their_own(self) -> None:
        key, plain = Key.fresh(), blocks(np.arange(1000))
        assert (bounding.user_words(key, plain) != bounding.item_words(key, plain)).all()

    def test_both_words_of_a_block_count(self) -> None:
        key = Key.fresh()
        plain = np.array([[1, 2], [2, 1], [1, 3], [3, 2]], dtype=np.uint64)
        assert len(set(bounding.item_words(key, plain).tolist())) == 4


class TestMix:
    def test_is_splitmix64(self) -> None:
        """The first outputs of splitmix64 from the state 0, whose steps are multiples of γ."""
        steps = np.array([1, 2, 3], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
        assert bounding.mix(steps).tolist() == expected

    def test_loses_nothing(self) -> None:
        words = np.random.default_rng(1).integers(0, 2**63, 100_000, dtype=np.uint64)
        assert len(np.unique(bounding.mix(words))) == len(np.unique(words))


class TestTurns:
    def test_ties_of_the_first_word_are_settled_by_the_second(self) -> None:
        class Tied:
            def scrambler(self, _: Any) -> Any:
                return lambda users: np.stack((users[:, 0] % 2, users[:, 1]), axis=1)

        users = np.array([[1, 5], [0, 9], [3, 2], [2, 7], [5, 8]], dtype=np.uint64)
        assert bounding.turns(Tied(), users).tolist() == [3, 1, 2, 0, 4]  # type: ignore[arg-type]


class TestPrecedence:
    def order(self, items: Any, counts: Any = None, seed: int = 1) -> list[int]:
        found = blocks(items)
        words = bounding.item_words(Key.for_tests(seed), found)
        given = None if counts is None else np.array(counts, dtype=np.uint32)
        precedence = bounding.precedence(found, words, given)
        assert (precedence % np.uint64(2) == 0).all()
        order: list[int] = bounding.in_precedence(precedence, found).tolist()
        return [items[place] for place in order]

    def test_short_items_come_first(self) -> None:
        assert self.order([1000, 10, 100, 1]) == [1, 10, 100, 1000]

    def test_public_counts_come_before_lengths(self) -> None:
        assert self.order([1000, 10, 100, 1], [2**32 - 1, 0, 5, 4]) == [1000, 100, 1, 10]

    def test_the_hash_orders_the_rest(self) -> None:
        items = list(range(10, 90))
        orders = [self.order(items, seed=seed) for seed in range(5)]
        assert len({tuple(order) for order in orders}) == 5
        assert all(sorted(order) == items for order in orders)

    def test_items_with_the_same_word_are_ordered_by_block(self) -> None:
        found = blocks([12, 11, 13])
        assert bounding.in_precedence(np.zeros(3, np.uint64), found).tolist() == [1, 0, 2]

    def test_other_items_do_not_matter(self) -> None:
        items = list(range(0, 2000, 7))
        order, fewer = self.order(items), self.order(items[::3])
        assert [item for item in order if item in set(fewer)] == fewer
