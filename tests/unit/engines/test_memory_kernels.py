"""The compiled loops against the plainest Python that says the same."""

from collections import defaultdict
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.memory import kernels
from dp_sips.privacy import bounding
from dp_sips.privacy.weights import claimed_weight, weight, weight_table

small = st.integers(0, 9)
# Runs of (user, items); users come back, items repeat.
run_lists = st.lists(st.tuples(small, st.lists(small, min_size=1, max_size=12)), min_size=1)


def u32(values: Any) -> Any:
    return np.array(values, dtype=np.uint32)


def u64(values: Any) -> Any:
    return np.array(values, dtype=np.uint64)


def laid_out(sets: list[list[int]]) -> tuple[Any, Any]:
    """Return the items of all users, side by side, and where each user's end."""
    return u32([*chain(*sets)]), u64(np.cumsum([len(items) for items in sets]))


class TestRuns:
    @given(st.lists(st.tuples(small, small), min_size=1), st.sampled_from([1, 2]))
    def test_start_where_a_value_changes(self, rows: list[tuple[int, int]], width: int) -> None:
        values = u64(rows)[:, :width].copy()
        starts = u32([0] * (len(rows) + 1))
        count = kernels.runs(values, starts)
        changed = [i for i in range(len(rows)) if i == 0 or rows[i][:width] != rows[i - 1][:width]]
        assert starts[:count].tolist() == changed

    def test_large_values_and_no_rows(self) -> None:
        values = u64([2**64 - 1, 2**64 - 1, 0]).reshape(-1, 1)
        starts = u32([0] * 4)
        assert kernels.runs(values, starts) == 2
        assert starts[:2].tolist() == [0, 2]
        assert kernels.runs(np.empty((0, 1), dtype=np.uint64), starts) == 0


class TestRising:
    @given(st.lists(small, min_size=1))
    def test_sees_a_user_come_back(self, users: list[int]) -> None:
        assert kernels.rising(u32(users), 3) == (sorted([3, *users]) == [3, *users])


class TestAddSizes:
    @given(run_lists)
    def test_adds_up(self, runs: list[tuple[int, list[int]]]) -> None:
        sizes = np.zeros(10, dtype=np.uint64)
        users, lengths = [user for user, _ in runs], [len(held) for _, held in runs]
        kernels.add_sizes(u32(users), u32(lengths), sizes)
        expected = [sum(len(held) for owner, held in runs if owner == user) for user in range(10)]
        assert sizes.tolist() == expected


class TestRegroup:
    @given(run_lists)
    def test_puts_each_users_runs_together_in_order(
        self, runs: list[tuple[int, list[int]]]
    ) -> None:
        owned: dict[int, list[int]] = defaultdict(list)
        for user, held in runs:
            owned[user] += held
        expected, ends = laid_out([owned[user] for user in range(10)])
        grouped, places = np.empty_like(expected), u64([0, *ends[:-1]])
        items = u32([*chain(*(held for _, held in runs))])
        users, lengths = u32([user for user, _ in runs]), u32([len(held) for _, held in runs])
        kernels.regroup(items, users, lengths, places, grouped)
        assert grouped.tolist() == expected.tolist()


class TestDropRepeats:
    @pytest.mark.parametrize("counted", [True, False])
    @given(
        sets=st.lists(st.lists(st.integers(0, 40), max_size=60), min_size=1, max_size=9),
        data=st.data(),
    )
    def test_keeps_the_first_of_each_and_adds_up(
        self, sets: list[list[int]], data: st.DataObject, *, counted: bool
    ) -> None:
        first = data.draw(st.integers(0, len(sets) - 1))
        stop = data.draw(st.integers(first, len(sets)))
        items, ends = laid_out(sets)
        counts = u32(range(len(items)) if counted else [])
        before, old_ends, old_counts = items.tolist(), ends.tolist(), counts.tolist()
        begin = old_ends[first - 1] if first else 0
        expected = [[*dict.fromkeys(held)] for held in sets[first:stop]]
        end = kernels.drop_repeats(items, counts, ends, begin, first, stop)
        assert items[:begin].tolist() == before[:begin]
        assert items[begin:end].tolist() == [*chain(*expected)]
        assert ends[:first].tolist() + ends[stop:].tolist() == old_ends[:first] + old_ends[stop:]
        sizes = np.diff([begin, *ends[first:stop].tolist()])
        assert sizes.tolist() == [len(held) for held in expected]
        if counted:
            totals: dict[tuple[int, int], int] = defaultdict(int)
            for user in range(first, stop):
                for place in range(old_ends[user - 1] if user else 0, old_ends[user]):
                    totals[user, before[place]] += old_counts[place]
            assert counts[begin:end].tolist() == list(totals.values())

    def test_large_numbers(self) -> None:
        most = 2**32 - 2**20
        items, ends = laid_out([[most, 0, most, 1], [most]])
        assert kernels.drop_repeats(items, u32([]), ends, 0, 0, 2) == 4
        assert items[:4].tolist() == [most, 0, 1, most]

    @pytest.mark.parametrize("more", [1, 2, 2**32 - 1])
    def test_counts_stop_at_the_largest(self, more: int) -> None:
        top = 2**32 - 1
        items, ends = laid_out([[1, 1, 1]])
        counts = u32([top - 1, more, 5])
        assert kernels.drop_repeats(items, counts, ends, 0, 0, 1) == 1
        assert counts[0] == top


class TestOrderItems:
    @given(
        st.lists(st.lists(st.integers(0, 299), unique=True, max_size=80), min_size=1, max_size=12),
        st.integers(0, 40),
        st.data(),
    )
    def test_is_the_order_of_ranks(
        self, sets: list[list[int]], most: int, data: st.DataObject
    ) -> None:
        random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
        user_words = random.integers(0, 2**64 - 1, len(sets), dtype=np.uint64)
        item_words = random.integers(0, 2**64 - 1, 300, dtype=np.uint64)
        items, ends = laid_out(sets)
        first = data.draw(st.integers(0, len(sets)))
        stop = data.draw(st.integers(first, len(sets)))
        counts = items * 3  # so that each says which item it belongs to
        words = user_words, item_words
        kernels.order_items(items, counts, ends, *words, most, first, stop)
        assert (counts == items * 3).all()
        for user, part in enumerate(np.split(items, ends[:-1].astype(np.int64))):
            held = u32(sets[user])
            ranks = bounding.rank(user_words[user], item_words[held])
            ordered = first <= user < stop and len(held) > most
            assert part.tolist() == (held[np.argsort(ranks)] if ordered else held).tolist()

    def test_one_user_with_very_many_items(self) -> None:
        random = np.random.default_rng(1)
        items = random.permutation(200_000).astype(np.uint32)
        words = random.integers(0, 2**64 - 1, 200_000, dtype=np.uint64)
        held = items.copy()
        user = u64([12345])
        kernels.order_items(items, u32([]), u64([200_000]), user, words, 10, 0, 1)
        assert (items == held[np.argsort(bounding.rank(user, words[held]))]).all()


class TestAddWeights:
    @given(
        st.lists(st.lists(st.integers(0, 20), unique=True), min_size=1, max_size=15),
        st.sets(st.integers(0, 20)),
        st.integers(1, 12),
        st.data(),
    )
    def test_is_the_papers_loop(
        self, sets: list[list[int]], removed: set[int], most: int, data: st.DataObject
    ) -> None:
        items, ends = laid_out(sets)
        gone = np.isin(np.arange(21), list(removed))
        first = data.draw(st.integers(0, len(sets)))
        stop = data.draw(st.integers(first, len(sets)))
        weights = u64([7] * 21)
        kernels.add_weights(
            items,
            ends,
            np.packbits(gone, bitorder="little"),
            weight_table(most),
            weights,
            first,
            stop,
        )
        expected = [7] * 21
        for held in sets[first:stop]:
            counted = [item for item in held if item not in removed][:most]
            for item in counted:
                expected[item] += weight(len(counted))
        assert weights.tolist() == expected


class TestAddClaimedWeights:
    @given(
        st.lists(st.lists(small, max_size=12, unique=True), min_size=1, max_size=8),
        st.lists(st.integers(0, 16), min_size=10, max_size=10),
        st.integers(1, 15),
        st.data(),
    )
    def test_is_the_plain_loop(
        self, sets: list[list[int]], claims: list[int], step_bits: int, data: Any
    ) -> None:
        items, ends = laid_out(sets)
        first = data.draw(st.integers(0, len(sets) - 1))
        begin = int(ends[first - 1]) if first else 0
        weights, before = u64([0] * 10), items.copy()
        end = kernels.add_claimed_weights(
            items, ends, np.array(claims, np.uint8), step_bits, weights, begin, first, len(sets)
        )
        expected: dict[int, int] = defaultdict(int)
        left = [[item for item in items if claims[item]] for items in sets[first:]]
        for mine in left:
            for item in mine:
                total = sum(claims[other] for other in mine)
                expected[item] += claimed_weight(claims[item], total, step_bits)
        assert weights.tolist() == [expected[item] for item in range(10)]
        assert items[begin:end].tolist() == [*chain(*left)]
        assert items[:begin].tolist() == before[:begin].tolist()
        assert ends[first:].tolist() == [
            begin + sum(map(len, left[: n + 1])) for n in range(len(left))
        ]
        assert (items[end:] < 10).all()

    def test_one_user_with_very_many_items(self) -> None:
        """The least claim beside a million whole ones still weighs a step."""
        items, ends = u32(range(1 << 20)), u64([1 << 20])
        claims = np.full(1 << 20, 16, np.uint8)
        claims[0] = 1
        weights = u64([0] * (1 << 20))
        kernels.add_claimed_weights(items, ends, claims, 12, weights, 0, 0, 1)
        assert weights[:2].tolist() == [1, 4]
