"""The theorem of mechanisms/turns.py: an additional user moves payments by a norm of at most 1.

Every check runs on both engines that take turns, on random neighbours, in integers. The broken
variants at the end must be caught by the very same checks, or the checks have no power.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips import Gw, MemoryEngine, plan
from dp_sips.engines.reference import ReferenceContributions, ReferenceEngine
from dp_sips.mechanisms.turns import L1, L2, Favourite, Proportional
from dp_sips.privacy import bounding
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.progress import Progress
from dp_sips.sources import open_source

Rows = list[tuple[int, int]]
Histogram = dict[int, int]
ENGINES: dict[str, Any] = {"reference": ReferenceEngine(), "memory": MemoryEngine(threads=1)}

# A few users with a few items, repeated and scattered, and targets that fill up: that is where
# one user's payment moves those of others.
row_lists = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 6)), min_size=2, max_size=70)
proportional = st.builds(
    lambda power, target, bits: Proportional(power, round(target * 2**bits), bits),
    st.sampled_from([L1, L2]),
    st.floats(0.1, 5.0),
    st.integers(36, 52),
)
favourite = st.builds(Favourite, st.integers(1, 6))
seeds = st.integers(0, 2**32)


def paid(
    engine: str,
    rows: Rows,
    policy: Proportional | Favourite,
    max_items: int,
    seed: int,
    *,
    public: Mapping[Any, int] | None = None,
) -> Histogram:
    """Return what users pay to each item, on an engine."""
    if not rows:
        return {}
    table = pa.table({"u": [user for user, _ in rows], "i": [item for _, item in rows]})
    source = open_source(table, user="u", item="i", nulls="error")
    loaded = ENGINES[engine].load(
        source,
        Bounds(max_items, repeats=public is None, public_counts=public),
        Key.for_tests(seed),
        Progress(show=False),
    )
    found: Histogram = {}

    def note(blocks: Any, weights: Any) -> Any:
        held = np.flatnonzero(weights)
        found.update((int(blocks[row][0]), int(weights[row])) for row in held)
        return weights > 0

    loaded.decide(in_turns(loaded, policy, max_items), note)
    loaded.close()
    return found


def in_turns(loaded: Contributions, policy: Proportional | Favourite, max_items: int) -> Any:
    if isinstance(policy, Favourite):
        return loaded.pay_favourites(policy, max_items)
    return loaded.pay_shares(policy, max_items)


def moves(one: Histogram, other: Histogram) -> list[int]:
    """Return by how much each item's weight differs, where it does."""
    differences = (one.get(item, 0) - other.get(item, 0) for item in one.keys() | other.keys())
    return [difference for difference in differences if difference]


def within_budget(policy: Proportional, differences: list[int], users: int, items: int) -> bool:
    """Whether a norm is at most one budget, but for the rounding that policy.py allows."""
    off = (math.sqrt(items) if policy.power == L2 else items) + 8
    limit = (1 << policy.unit_bits) + math.ceil(2 * users * off)
    return bool(sum(abs(d) ** policy.power for d in differences) <= limit**policy.power)


def one_place_by_one(differences: list[int]) -> bool:
    return differences in ([], [1])


def without(rows: Rows, gone: int) -> Rows:
    return [row for row in rows if row[0] != gone]


class TestProportional:
    @pytest.mark.parametrize("engine", ENGINES)
    @settings(max_examples=120)
    @given(
        rows=row_lists,
        policy=proportional,
        most=st.integers(1, 7),
        seed=seeds,
        gone=st.integers(0, 8),
    )
    def test_one_user_moves_a_norm_of_one(
        self, engine: str, *, rows: Rows, policy: Proportional, most: int, seed: int, gone: int
    ) -> None:
        more = paid(engine, rows, policy, most, seed)
        less = paid(engine, without(rows, gone), policy, most, seed)
        assert within_budget(policy, moves(more, less), 9, most)

    @pytest.mark.parametrize("engine", ENGINES)
    @settings(max_examples=60)
    @given(row_lists, proportional, seeds, st.integers(0, 8))
    def test_items_of_one_user_alone(
        self, engine: str, rows: Rows, policy: Proportional, seed: int, gone: int
    ) -> None:
        """Everybody pays everything; t items of one user alone get at most t^(−1/p) each."""
        more = paid(engine, rows, policy, 7, seed)
        assert more.keys() == {item for _, item in rows}
        own = more.keys() - {item for _, item in without(rows, gone)}
        budget = 1 << policy.unit_bits
        for item in own:
            assert len(own) * more[item] ** policy.power <= budget**policy.power

    @pytest.mark.parametrize("engine", ENGINES)
    @settings(max_examples=30)
    @given(row_lists, proportional, st.integers(1, 7), seeds)
    def test_no_item_gets_more_than_the_target(
        self, engine: str, rows: Rows, policy: Proportional, most: int, seed: int
    ) -> None:
        found = paid(engine, rows, policy, most, seed)
        assert all(0 < weight <= policy.target for weight in found.values())


PUBLIC = {item: item * 7 % 4 for item in range(7)}
"""Public counts, some of which are equal."""


class TestFavourite:
    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("public", [None, PUBLIC])
    @settings(max_examples=80)
    @given(
        rows=row_lists,
        policy=favourite,
        most=st.integers(1, 7),
        seed=seeds,
        gone=st.integers(0, 8),
    )
    def test_one_user_moves_one_item_by_one(
        self,
        engine: str,
        public: Any,
        *,
        rows: Rows,
        policy: Favourite,
        most: int,
        seed: int,
        gone: int,
    ) -> None:
        more = paid(engine, rows, policy, most, seed, public=public)
        less = paid(engine, without(rows, gone), policy, most, seed, public=public)
        assert one_place_by_one(moves(more, less))
        assert all(weight <= policy.target for weight in more.values())


def blocks_of(users: Sequence[int]) -> Any:
    low = np.array(users, dtype=np.uint64)
    return np.stack([low, np.full_like(low, 0xF0 << 56)], axis=1)


Turns = Callable[[Key, Any], Any]


def keeps_the_others_in_order(turns: Turns, users: list[int], gone: int, seed: int) -> bool:
    """Whether the order of the other users is the same with and without one of them."""
    rest = [user for user in users if user != gone]
    more = [users[n] for n in turns(Key.for_tests(seed), blocks_of(users))]
    less = [rest[n] for n in turns(Key.for_tests(seed), blocks_of(rest))]
    return [user for user in more if user != gone] == less


class WordsInPlaceOfAKey:
    """Takes users' blocks for their scrambled bits."""

    def scrambler(self, _purpose: Purpose) -> Callable[[Any], Any]:
        return lambda blocks: blocks


class TestTurns:
    @given(st.lists(st.integers(0, 2**64 - 1), min_size=2, unique=True), st.data(), seeds)
    def test_one_user_more_leaves_the_others_in_order(
        self, users: list[int], data: Any, seed: int
    ) -> None:
        gone = data.draw(st.sampled_from(users))
        assert keeps_the_others_in_order(bounding.turns, users, gone, seed)

    @given(st.lists(st.integers(0, 2**64 - 1), min_size=1, unique=True), seeds, st.randoms())
    def test_where_users_stand_in_the_data_does_not_matter(
        self, users: list[int], seed: int, random: Any
    ) -> None:
        shuffled = random.sample(users, len(users))
        key = Key.for_tests(seed)
        one = [users[n] for n in bounding.turns(key, blocks_of(users))]
        assert [shuffled[n] for n in bounding.turns(key, blocks_of(shuffled))] == one

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), unique=True),
        st.integers(0, 58),
    )
    def test_users_stand_by_all_128_bits(self, words: list[tuple[int, int]], shift: int) -> None:
        """Words with equal leading bits are ordered by the other bits, not by position."""
        bits = np.array([(high << shift, low) for high, low in words], np.uint64).reshape(-1, 2)
        order = bounding.turns(WordsInPlaceOfAKey(), bits)  # type: ignore[arg-type]
        assert [words[n] for n in order] == sorted(words)

    @pytest.mark.fresh
    def test_every_order_of_three_comes_about_as_often(self) -> None:
        """Of 6,000 keys, each of six orders gets 1,000: within 8 deviations, a chance of 1e-14."""
        found = [tuple(bounding.turns(Key.fresh(), blocks_of([5, 6, 7]))) for _ in range(6000)]
        counts = [found.count(order) for order in set(found)]
        assert len(counts) == 6
        assert all(abs(count - 1000) < 8 * math.sqrt(6000 * 5 / 36) for count in counts)

    def test_an_order_that_depends_on_the_data_is_caught(self) -> None:
        def by_size(key: Key, blocks: Any) -> Any:
            return np.roll(bounding.turns(key, blocks), len(blocks) // 2)

        assert not all(
            keeps_the_others_in_order(by_size, list(range(9)), gone, seed)
            for gone in range(9)
            for seed in range(3)
        )


# Broken variants, on the reference engine's fold. Users stand in the order of their turns.

Sets = list[list[tuple[object, ...]]]


def folded(sets: Sets, policy: Proportional | Favourite) -> Histogram:
    times: Any = [dict.fromkeys(items, 1) for items in sets]
    loaded = ReferenceContributions(sets, times, {}, pa.schema([]))
    return {item[0]: weight for item, weight in in_turns(loaded, policy, 99).items()}


def random_neighbours(cases: int) -> Iterator[tuple[Sets, Sets]]:
    """Return users with random ordered sets, and the same without one of them."""
    random = np.random.default_rng(5)
    for _ in range(cases):
        sets: Sets = [
            [(int(item),) for item in random.permutation(6)[: random.integers(1, 7)]]
            for _ in range(random.integers(2, 12))
        ]
        gone = random.integers(len(sets))
        yield sets, sets[:gone] + sets[gone + 1 :]


def caught(policy: Proportional) -> bool:
    """Whether random neighbours show that a policy moves too much."""
    return not all(
        within_budget(policy, moves(folded(more, policy), folded(less, policy)), len(more), 6)
        for more, less in random_neighbours(400)
    )


class WithoutCap(Proportional):
    """Fills every gap, whatever it costs."""

    def payments(self, gaps: Sequence[int]) -> list[int]:
        return list(gaps)


class L2ForL1(Proportional):
    """Pays by the L2 norm where the noise is for L1. (The reverse is safe: L1 ≤ 1 is L2 ≤ 1.)."""

    def payments(self, gaps: Sequence[int]) -> list[int]:
        return Proportional(L2, self.target, self.unit_bits).payments(gaps)


class AlwaysAll(Proportional):
    """Spends all of the budget, even above the target."""

    def payments(self, gaps: Sequence[int]) -> list[int]:
        whole = max(1, sum(gap**self.power for gap in gaps))
        return [int(gap * self.scale(whole)) for gap in gaps]


class Squared(Proportional):
    """Prefers large gaps: of norm 1, but not a projection."""

    def payments(self, gaps: Sequence[int]) -> list[int]:
        budget = 1 << self.unit_bits
        if sum(gap**self.power for gap in gaps) <= budget**self.power:
            return list(gaps)
        norm = sum(gap ** (2 * self.power) for gap in gaps) ** (1 / self.power)
        return [min(gap, int(gap**2 / norm * budget)) for gap in gaps]


TARGET, BITS = 2.3, 40


@pytest.mark.parametrize(
    ("variant", "power"),
    [
        (WithoutCap, L1),
        (WithoutCap, L2),
        (L2ForL1, L1),
        (AlwaysAll, L1),
        (AlwaysAll, L2),
        (Squared, L2),
    ],
)
def test_broken_policies_are_caught(variant: type[Proportional], power: int) -> None:
    target = round(TARGET * 2**BITS)
    assert not caught(Proportional(power, target, BITS))
    assert caught(variant(power, target, BITS))


@pytest.mark.parametrize("policy", [Proportional(L2, 5 << 39, 40), Favourite(3)])
def test_a_fold_whose_order_depends_on_the_data_is_caught(
    policy: Proportional | Favourite,
) -> None:
    """Every other user pays first, so that one user more turns the order of all later ones."""

    def turned(sets: Sets) -> Sets:
        return sets[::2] + sets[1::2][::-1]

    def fine(more: Sets, less: Sets) -> bool:
        differences = moves(folded(more, policy), folded(less, policy))
        if isinstance(policy, Favourite):
            return one_place_by_one(differences)
        return within_budget(policy, differences, len(more), 6)

    pairs = list(random_neighbours(400))
    assert all(fine(more, less) for more, less in pairs)
    assert not all(fine(turned(more), turned(less)) for more, less in pairs)


# GW as published pays fractions: the gap of its favourite, then the rest of 1 to the next.


def published(sets: list[list[str]], target: Fraction) -> dict[str, Fraction]:
    """Return the weights of GW with a target that need not be whole (Carvalho et al. 2022)."""
    weights: dict[str, Fraction] = {}
    for items in sets:
        left = Fraction(1)
        for item in items:
            payment = min(left, target - weights.get(item, Fraction(0)))
            if payment > 0:
                weights[item] = weights.get(item, Fraction(0)) + payment
                left -= payment
    return weights


@dataclass(frozen=True)
class Cascade:
    """Users in an order in which one more, before the last four, brings four items to life.

    The target is n + ¼. Gaps in units of ¼, after n users with nothing but X (gap 1): one with X, Y
    pays ¼ and ¾; n − 1 more leave Y a gap of ½; one with Y, P pays ½ and ½; n − 1 more leave P a
    gap of ¾. One with P₀, A pays ¾ and ¼; n − 1 more leave A a gap of 1. The last four users pay
    ¾ to their own P and ¼ to A, unless A is full: then to an item that nobody else pays.
    """

    whole: int

    def sets(self, *, one_more: bool) -> list[list[str]]:
        n = self.whole
        found: list[list[str]] = []
        for i in range(5):
            found += n * [[f"X{i}"]] + [[f"X{i}", f"Y{i}"]] + (n - 1) * [[f"Y{i}"]]
            found += [[f"Y{i}", f"P{i}"]] + (n - 1) * [[f"P{i}"]]
        found += [["P0", "A"]] + (n - 1) * [["A"]]
        found += [["A"]] * one_more
        return found + [[f"P{i}", "A", f"new {i}"] for i in range(1, 5)]


@pytest.mark.parametrize(
    ("epsilon", "delta", "factor"), [(1.0, 1e-5, 1.889), (0.1, 1e-5, 3.711), (0.1, 1e-6, 3.711)]
)
def test_the_published_gw_exceeds_its_delta(epsilon: float, delta: float, factor: float) -> None:
    """Four items of weight ¼ come to life, under a threshold for one item of weight 1."""
    threshold = 1 - math.log(2 * delta) / epsilon
    target = Fraction(math.ceil(threshold + 3 / epsilon)) + Fraction(1, 4)
    cascade = Cascade(math.floor(target))
    more, less = (published(cascade.sets(one_more=one), target) for one in (True, False))
    new = {item: weight for item, weight in more.items() if item not in less}
    assert new == {f"new {i}": Fraction(1, 4) for i in range(1, 5)}
    # Otherwise the weights are the same: an L1 distance of 1, as it should be.
    assert {item: weight for item, weight in more.items() if item in less} == less

    each = math.exp(-epsilon * (threshold - 0.25)) / 2
    some = -math.expm1(4 * math.log1p(-each))  # without the user, the chance is 0
    assert some == pytest.approx(factor * delta, rel=1e-3)
    assert some > delta


def test_a_whole_target_brings_one_item_to_life() -> None:
    """The same users, with Γ rounded as `Gw` does it."""
    made = plan(Gw(), epsilon=1.0, delta=1e-5)
    policy = made.rounds[0].policy
    sets = {one: Cascade(15).sets(one_more=one) for one in (True, False)}
    more, less = (
        folded([[(item,) for item in items] for items in sets[one]], policy)
        for one in (True, False)
    )
    assert one_place_by_one(moves(more, less))


@settings(max_examples=100)
@given(st.integers(1, 6), st.lists(st.permutations("abcdef"), min_size=2, max_size=14))
def test_published_gw_with_a_whole_target_is_ours(whole: int, orders: list[list[str]]) -> None:
    sets: Sets = [[(item,) for item in items[: 1 + len(items) // 2]] for items in orders]
    theirs = published([items[: 1 + len(items) // 2] for items in orders], Fraction(whole))
    assert folded(sets, Favourite(whole)) == theirs  # type: ignore[comparison-overlap]
