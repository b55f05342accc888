"""Repeats among rows that are together, against the plainest Python that says the same."""

from itertools import chain, pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.memory.repeats import Together, drop_recent

small = st.integers(0, 9)
item_lists = st.lists(small | st.integers(0, 2**32 - 2**20 - 1), min_size=1, max_size=40)
batch_lists = st.lists(st.lists(item_lists, min_size=1), min_size=1)


def u32(values: Any) -> Any:
    return np.array(values, dtype=np.uint32)


def starts_of(runs: list[list[int]]) -> Any:
    return u32(np.cumsum([0, *map(len, runs)]))


class TestDropRecent:
    @given(st.lists(st.lists(small | st.integers(0, 2**64 - 1), min_size=1), min_size=1))
    def test_drops_repeats_within_a_run(self, runs: list[list[int]]) -> None:
        items = np.array([*chain(*runs)], dtype=np.uint64).reshape(-1, 1)
        kept, starts = np.zeros_like(items), starts_of(runs)
        count = drop_recent(items, starts, kept)
        assert starts[-1] == count
        for run, (start, stop) in zip(runs, pairwise(starts.tolist()), strict=True):
            left = kept[start:stop, 0].tolist()
            assert list(dict.fromkeys(left)) == list(dict.fromkeys(run))

    def test_drops_most_of_them(self) -> None:
        # A few hundred items of which each comes ten times: hardly two share a place.
        runs = [[*range(200)] * 10, [*range(100, 300)] * 10]
        items = np.array([*chain(*runs)], dtype=np.uint64).reshape(-1, 1)
        assert 400 <= drop_recent(items, starts_of(runs), np.zeros_like(items)) < 1200

    def test_an_item_of_the_run_before_is_no_repeat(self) -> None:
        items = np.array([[7], [7], [7]], dtype=np.uint64)
        starts, kept = u32([0, 2, 3]), np.zeros_like(items)
        assert drop_recent(items, starts, kept) == 2
        assert starts.tolist() == [0, 1, 2]
        assert kept[:2, 0].tolist() == [7, 7]


class TestTogether:
    @given(batches=batch_lists, goes_on=st.booleans())
    def test_keeps_each_item_of_a_user_once(
        self, *, batches: list[list[list[int]]], goes_on: bool
    ) -> None:
        together, at = Together(), 0
        pairs = u32([0] * sum(len(items) for batch in batches for items in batch))
        expected: list[list[int]] = []
        user = 0
        for batch in batches:
            # The last user of a batch may have more rows in the next one.
            first = user if goes_on else user + 1
            users = range(first, first + len(batch))
            lengths = u32([0] * len(batch))
            items = u32([*chain(*batch)])
            before = at
            at = together.keep(u32(users), starts_of(batch), items, pairs, at, lengths)
            assert at - before == lengths.sum()
            for user, rows in zip(users, batch, strict=True):
                expected += [[] for _ in range(user + 1 - len(expected))]
                expected[user] = list(dict.fromkeys([*expected[user], *rows]))
        assert pairs[:at].tolist() == [*chain(*expected)]

    def test_a_user_with_many_rows_and_one_with_few_after_it(self) -> None:
        together, pairs = Together(), u32([0] * 30_000)
        lengths = u32([0])
        at = 0
        for first in range(0, 20_000, 5_000):
            rows = u32([*range(first, first + 6_000)])
            at = together.keep(u32([3]), u32([0, 6_000]), rows, pairs, at, lengths)
        assert at == 21_000
        assert 4 * 2 * 21_000 <= together.held() <= 4 * 4 * 26_000
        assert np.unique(pairs[:at]).tolist() == [*range(21_000)]
        at = together.keep(u32([4]), u32([0, 3]), u32([5, 5, 6]), pairs, at, lengths)
        assert pairs[21_000:at].tolist() == [5, 6]
