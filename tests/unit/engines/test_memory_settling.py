"""The compiled loops of matching against plain Python, on their own arrays."""

import heapq
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.memory import settling
from dp_sips.engines.memory.matching import Items, Seating, Sets, arranged, settle

ITEMS = 12
sets_of_users = st.lists(
    st.lists(st.integers(0, ITEMS - 1), max_size=ITEMS, unique=True), min_size=1, max_size=30
)


def laid_out(lists: list[list[int]]) -> Sets:
    flat = np.array([item for items in lists for item in items], dtype=np.uint32)
    ends = np.cumsum([len(items) for items in lists]).astype(np.uint64)
    return flat, ends


def items_of(lists: list[list[int]], words: Any) -> Items:
    holders = np.bincount(np.concatenate([[], *lists]).astype(np.int64), minlength=ITEMS)
    blocks = np.stack((np.arange(ITEMS), np.zeros(ITEMS)), axis=1).astype(np.uint64)
    return Items(np.array(words, dtype=np.uint64), holders.astype(np.uint64), blocks.__getitem__)


def by_order(users: Any) -> Any:
    return np.arange(len(users), dtype=np.uint32)


# Few words, so that many items tie; by block, which is their number.
word_lists = st.lists(st.integers(0, 5).map(lambda n: 2 * n), min_size=ITEMS, max_size=ITEMS)


@given(sets_of_users, word_lists, st.integers(1, 4), st.integers(1, ITEMS))
def test_lists_end_where_nobody_is_turned_away(
    lists: list[list[int]], words: list[int], seats: int, most: int
) -> None:
    sets, items = laid_out(lists), items_of([items[:most] for items in lists], words)
    crowded = items.holders > seats
    numbers = np.arange(ITEMS, dtype=np.uint32)
    numbers[sorted(range(ITEMS), key=lambda item: (words[item], item))] = np.arange(ITEMS)
    shares = [(0, len(lists) // 2), (len(lists) // 2, len(lists))]

    def for_shares(work: Any) -> None:
        for share in shares:
            work(share)

    made = arranged(sets, items, numbers, Seating(seats, 0, 1, most), for_shares)
    for user, mine in enumerate(lists):
        order = sorted(mine[:most], key=lambda item: (words[item], item))
        before = next((n for n, item in enumerate(order) if not crowded[item]), len(order))
        begin, length = int(made.begins[user]), int(made.lengths[user])
        assert made.listed[begin : begin + length].tolist() == numbers[order[:before]].tolist()
        last = order[before] if before < len(order) else settling.NOWHERE
        assert made.lasts[user] == last
        assert made.sizes[user] == len(order)


@given(sets_of_users, st.integers(1, 5), st.integers(0, 4), st.integers(1, 3))
def test_seats(lists: list[list[int]], seats: int, spare: int, laps: int) -> None:
    expected = in_python([sorted(items) for items in lists], seats, spare, laps)
    items = items_of(lists, 2 * np.arange(ITEMS))
    everyone = (0, len(lists))
    found = settle(
        laid_out(lists), items, by_order, Seating(seats, spare, laps, ITEMS),
        lambda work: work(everyone),
    )  # fmt: skip
    assert (found >> np.uint64(30)).tolist() == expected


def in_python(lists: list[list[int]], seats: int, spare: int, laps: int) -> list[int]:
    """Settle with heaps of negated keys, the last user first."""
    # Turns count among users who have contested items, which leaves their order as it is.
    seated: dict[int, list[tuple[int, int, int]]] = {}
    requests = [
        iter([(lap, place) for lap in range(laps + (spare > 0)) for place in range(len(items))])
        for items in lists
    ]
    standing = list(range(len(lists)))
    while standing:
        turn = standing.pop()
        lap, place = next(requests[turn], (None, 0))
        if lap is None:
            continue
        desk = lists[turn][place] + ITEMS * (lap == laps)
        heap = seated.setdefault(desk, [])
        heapq.heappush(heap, (lap, place - len(lists[turn]), -turn))
        if len(heap) > (spare if lap == laps else seats):
            standing.append(-heapq.heappop(heap)[-1])
    return [len(seated.get(n, [])) + len(seated.get(n + ITEMS, [])) for n in range(ITEMS)]


def test_long_lists_are_sorted_as_short_ones() -> None:
    """More numbers than are sorted by insertion."""
    random = np.random.default_rng(1)
    lists = [random.permutation(500).tolist() for _ in range(3)]
    sets = laid_out(lists)
    items = Items(
        2 * np.arange(500, dtype=np.uint64),
        np.full(500, 3, np.uint64),
        lambda _: np.empty((0, 2), np.uint64),
    )
    numbers, everyone = np.arange(500, dtype=np.uint32), (0, 3)
    made = arranged(sets, items, numbers, Seating(1, 0, 1, 500), lambda work: work(everyone))
    assert made.listed.reshape(3, 500).tolist() == [list(range(500))] * 3


def test_nobody_asks() -> None:
    found = settle(
        laid_out([[0], [1]]), items_of([[0], [1]], 2 * np.arange(ITEMS)), by_order,
        Seating(1, 1, 1, ITEMS), lambda work: work((0, 2)),
    )  # fmt: skip
    assert (found >> np.uint64(30)).tolist() == [1, 1] + [0] * (ITEMS - 2)
