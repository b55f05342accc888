"""The compiled folds against the plainest Python that says the same."""

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.memory import folds
from dp_sips.mechanisms.turns import L1, L2, SHAVE, Proportional

small = st.integers(0, 9)
set_lists = st.lists(st.lists(small, min_size=1, max_size=8, unique=True), min_size=1, max_size=12)


def u32(values: Any) -> Any:
    return np.array(values, dtype=np.uint32)


def u64(values: Any) -> Any:
    return np.array(values, dtype=np.uint64)


def laid_out(sets: list[list[int]], order: Any, max_items: int) -> folds.Turns:
    ends = u64(np.cumsum([len(items) for items in sets]))
    return folds.Turns(u32([*chain(*sets)]), ends, u32(order), max_items)


class TestPayProportionally:
    @given(
        sets=set_lists,
        power=st.sampled_from([L1, L2]),
        target=st.floats(0.1, 2000.0),
        bits=st.integers(36, 52),
        most=st.integers(1, 9),
        random=st.randoms(),
    )
    def test_is_the_policy_to_the_bit(
        self, *, sets: list[list[int]], power: int, target: float, bits: int, most: int, random: Any
    ) -> None:
        policy = Proportional(power, min(round(target * 2**bits), 2**60), bits)
        order = random.sample(range(len(sets)), len(sets))
        weights = u64([0] * 10)
        folds.pay_shares(
            laid_out(sets, order, most), weights, power, policy.target, 1 << bits, SHAVE
        )
        expected = [0] * 10
        for user in order:
            items = sets[user][:most]
            payments = policy.payments([policy.target - expected[item] for item in items])
            for item, payment in zip(items, payments, strict=True):
                expected[item] += payment
        assert weights.tolist() == expected


class TestPayFavourites:
    @pytest.mark.parametrize("of_items", [True, False])
    @pytest.mark.parametrize("by_word", [True, False])
    @given(sets=set_lists, target=st.integers(1, 4), most=st.integers(1, 9), random=st.randoms())
    def test_is_the_first_of_the_most_liked(
        self,
        *,
        by_word: bool,
        of_items: bool,
        sets: list[list[int]],
        target: int,
        most: int,
        random: Any,
    ) -> None:
        order = random.sample(range(len(sets)), len(sets))
        size = 10 if of_items else sum(map(len, sets))
        counts = [random.choice([0, 1, 2, 2**32 - 1]) for _ in range(size)]
        weights, words = u64([0] * 10), [random.getrandbits(64) for _ in range(10 * by_word)]
        laid = laid_out(sets, order, most)
        folds.pay_favourites(laid, weights, target, u32(counts), of_items, u64(words))
        expected = [0] * 10
        starts = np.cumsum([0, *map(len, sets)])
        for user in order:
            likes = {
                item: counts[item if of_items else starts[user] + place]
                for place, item in enumerate(sets[user][:most])
                if expected[item] < target
            }
            if by_word:
                likes = dict(sorted(likes.items(), key=lambda like: words[like[0]]))
            if likes:
                expected[max(likes, key=likes.__getitem__)] += 1
        assert weights.tolist() == expected


Runs = list[tuple[int, list[int]]]


def keep(runs: Runs) -> tuple[list[int], list[int], list[int]]:
    """Return the items kept, how often each occurred, and how many of each run were kept."""
    items = u32([*chain(*(items for _, items in runs))])
    starts = u32(np.cumsum([0, *(len(items) for _, items in runs)]))
    kept, counts = u32([0] * len(items)), u32([0] * len(items))
    lengths = u32([0] * len(runs))
    end = folds.keep_counted(
        u32([user for user, _ in runs]), starts, items, u32([0] * 10), u64([0] * 10), kept, counts,
        0, lengths,
    )  # fmt: skip
    return kept[:end].tolist(), counts[:end].tolist(), lengths.tolist()


class TestKeepCounted:
    @given(st.lists(st.tuples(small, st.lists(small, min_size=1, max_size=9)), min_size=1))
    def test_every_row_is_counted_once(self, runs: Runs) -> None:
        kept, counts, lengths = keep(runs)
        found: dict[tuple[int, int], int] = {}
        users = chain(*([user] * length for (user, _), length in zip(runs, lengths, strict=True)))
        for user, item, count in zip(users, kept, counts, strict=True):
            found[user, item] = found.get((user, item), 0) + count
        expected: dict[tuple[int, int], int] = {}
        for user, items in runs:
            for item in items:
                expected[user, item] = expected.get((user, item), 0) + 1
        assert found == expected

    def test_a_user_that_goes_on_in_another_run(self) -> None:
        assert keep([(4, [1, 2, 1]), (4, [1, 3])]) == ([1, 2, 3], [3, 1, 1], [2, 1])
