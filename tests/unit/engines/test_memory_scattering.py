"""Lists of pairs, against a dictionary; the users are many enough for lists to be joined."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dp_sips.engines.memory.scattering import Scattered

Pairs = list[tuple[int, int]]
BIG = 5000

pairs = st.lists(
    st.tuples(st.one_of(st.integers(0, 3), st.integers(0, 300_000)), st.integers(0, 9)), min_size=1
)


def u32(values: object) -> NDArray[np.uint32]:
    return np.array(values, dtype=np.uint32)


def add(scattered: Scattered, rows: Pairs, last: NDArray[np.uint32], user_count: int) -> None:
    users, items = u32([user for user, _ in rows]), u32([item for _, item in rows])
    scattered.add(users, u32(range(len(rows) + 1)), items, last, user_count)


def gathered(scattered: Scattered, user_count: int) -> dict[int, list[int]]:
    sizes = np.zeros(user_count, dtype=np.uint64)
    for part in range(scattered.lists):
        scattered.add_sizes(part, sizes)
    ends = np.cumsum(sizes, dtype=np.uint64)
    assert int(ends[-1]) == scattered.count
    places, grouped = ends - sizes, np.zeros(scattered.count, dtype=np.uint32)
    for part in range(scattered.lists):
        scattered.place(part, places, grouped)
    assert places.tolist() == ends.tolist()
    found = np.flatnonzero(sizes).tolist()
    return {
        user: grouped[int(ends[user] - sizes[user]) : int(ends[user])].tolist() for user in found
    }


def expected(rows: Pairs) -> dict[int, list[int]]:
    owned: dict[int, list[int]] = defaultdict(list)
    for user, item in rows:
        owned[user].append(item)
    return owned


class TestScattered:
    def test_its_memory_has_room_for_the_items_of_all_pairs(self) -> None:
        scattered, rows = Scattered(), [(n % 700, n) for n in range(BIG)]
        add(scattered, rows, u32([]), 700)
        memory = scattered.memory()
        assert memory.nbytes >= 4 * BIG
        assert set(range(BIG)) <= set(memory.view(np.uint32).tolist())

    @given(st.lists(pairs, min_size=1, max_size=4))
    def test_keeps_each_users_items_in_order(self, batches: list[Pairs]) -> None:
        scattered, users = Scattered(), 1
        for rows in batches:
            users = max(users, 1 + max(user for user, _ in rows))
            add(scattered, rows, u32([]), users)
        assert gathered(scattered, users) == expected([row for rows in batches for row in rows])

    @pytest.mark.parametrize("users", [10, BIG, 100_000, 17_000_000])
    def test_many_rows(self, users: int) -> None:
        rng, scattered = np.random.default_rng(1), Scattered()
        seen: Pairs = []
        for most in (min(users, 300), min(users, 66_000), users):
            batch = np.column_stack([rng.integers(0, most, BIG), rng.integers(0, 99, BIG)])
            rows = [(user, item) for user, item in batch.tolist()]
            add(scattered, rows, u32([]), 1 + max(user for user, _ in rows + seen))
            seen += rows
        assert gathered(scattered, 1 + max(user for user, _ in seen)) == expected(seen)

    @given(pairs)
    def test_leaves_out_what_its_last_user_repeats(self, rows: Pairs) -> None:
        scattered, last, left = Scattered(), u32([0] * 10), []
        users = 1 + max(user for user, _ in rows)
        add(scattered, rows, last, users)
        latest: dict[int, int] = {}
        for user, item in rows:
            if latest.get(item) != user:
                left.append((user, item))
            latest[item] = user
        assert gathered(scattered, users) == expected(left)

    def test_runs_of_one_user(self) -> None:
        scattered = Scattered()
        scattered.add(u32([7, 2]), u32([0, 3, 5]), u32([1, 2, 3, 4, 5]), u32([]), 8)
        assert gathered(scattered, 8) == {7: [1, 2, 3], 2: [4, 5]}
        assert scattered.held() > 0
