"""The compiled loops of matching against plain Python, on their own arrays."""

import heapq
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.memory import matching, settling
from dp_sips.engines.memory.matching import (
    CONTESTED,
    Items,
    Lists,
    Seating,
    Sets,
    Votes,
    arranged,
    listed,
    seated,
)
from dp_sips.privacy import bounding
from dp_sips.privacy.noise import Key

ITEMS = 12
BLOCKS = np.stack((np.arange(ITEMS), np.zeros(ITEMS)), axis=1).astype(np.uint64)
sets_of_users = st.lists(
    st.lists(st.integers(0, ITEMS - 1), max_size=ITEMS, unique=True), min_size=1, max_size=30
)


POOL = ThreadPoolExecutor(3)
KEY = Key.for_tests(1)
LOYAL, NOT_LOYAL = 7, 2**64 - 1
"""Users' words."""


@pytest.fixture(autouse=True, scope="module")
def few_users_at_a_time() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_USERS", 2)
        yield


def laid_out(lists: list[list[int]], words: list[int] | None = None) -> Sets:
    flat = np.array([item for items in lists for item in items], dtype=np.uint32)
    ends = np.cumsum([len(items) for items in lists]).astype(np.uint64)
    return Sets(flat, ends, np.array(words or [NOT_LOYAL] * len(lists), dtype=np.uint64))


def holders_of(lists: list[list[int]]) -> Any:
    return np.bincount(np.concatenate([[], *lists]).astype(np.int64), minlength=ITEMS)


def items_of(lists: list[list[int]], words: Any, seats: int) -> Items:
    precedence = np.array(words, dtype=np.uint64)
    precedence[holders_of(lists) > seats] |= CONTESTED
    return Items(precedence, BLOCKS.__getitem__, KEY)


def votes_of(lists: list[list[int]], words: list[int] | None, seating: Seating) -> list[int]:
    """Return how many users are seated at each item."""
    items = Items(2 * np.arange(ITEMS, dtype=np.uint64), BLOCKS.__getitem__, KEY)
    contested = np.flatnonzero(holders_of(lists) > seating.seats)
    everyone = (0, len(lists))
    desks, made = listed(
        laid_out(lists, words), items, contested, seating, lambda work: work(everyone)
    )
    votes = Votes(seating, desks, *seated(made, by_order, seating, len(desks), POOL))
    before = np.full(ITEMS, 99, dtype=np.uint64)
    return (votes.write(before) >> np.uint64(30)).tolist()  # type: ignore[no-any-return]


def first_of(items: list[int]) -> int:
    """Return the item that comes first in the bounding order of loyal users."""
    words = bounding.item_words(KEY, BLOCKS[items])
    return items[int(bounding.rank(np.full(len(items), LOYAL, np.uint64), words).argmin())]


def by_order(users: Any) -> Any:
    return np.arange(len(users), dtype=np.uint32)


words_of_users = st.sampled_from([LOYAL, NOT_LOYAL])

# Few words, so that many items tie; by block, which is their number.
word_lists = st.lists(st.integers(0, 5).map(lambda n: 2 * n), min_size=ITEMS, max_size=ITEMS)


@given(sets_of_users, word_lists, st.integers(1, 4), st.integers(1, ITEMS))
def test_lists_end_where_nobody_is_turned_away(
    lists: list[list[int]], words: list[int], seats: int, most: int
) -> None:
    counted = [items[:most] for items in lists]
    sets, items = laid_out(lists), items_of(counted, words, seats)
    crowded = holders_of(counted) > seats
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


@given(sets_of_users, st.integers(1, 5), st.integers(0, 4), st.integers(1, 3), st.data())
def test_seats(
    lists: list[list[int]], seats: int, spare: int, laps: int, data: st.DataObject
) -> None:
    words = data.draw(st.lists(words_of_users, min_size=len(lists), max_size=len(lists)))
    loyal = [word == LOYAL and len(items) > 1 for word, items in zip(words, lists, strict=True)]
    expected = in_python(lists, loyal, seats, spare, laps)
    assert votes_of(lists, words, Seating(seats, spare, laps, ITEMS)) == expected


def requests_of(items: list[int], *, loyal: bool, spare: bool, laps: int) -> Any:
    """Yield each desk that a user asks, with the negated key."""
    if loyal:
        for desk in [first_of(items), first_of(items) + ITEMS][: 1 + spare]:
            yield desk, (0, -len(items) - 1)
    for lap in range(laps + spare):
        for place, item in enumerate(sorted(items)):
            yield item + ITEMS * (lap == laps), (lap, place - len(items))


def in_python(
    lists: list[list[int]], loyal: list[bool], seats: int, spare: int, laps: int
) -> list[int]:
    """Settle with heaps of negated keys, the last user first."""
    # Turns count among users who have contested items, which leaves their order as it is.
    seated: dict[int, list[tuple[int, int, int]]] = {}
    requests = [
        requests_of(items, loyal=first, spare=spare > 0, laps=laps)
        for items, first in zip(lists, loyal, strict=True)
    ]
    standing = list(range(len(lists)))
    while standing:
        turn = standing.pop()
        desk, key = next(requests[turn], (None, (0, 0)))
        if desk is None:
            continue
        heap = seated.setdefault(desk, [])
        heapq.heappush(heap, (*key, -turn))
        if len(heap) > (spare if desk >= ITEMS else seats):
            standing.append(-heapq.heappop(heap)[-1])
    return [len(seated.get(n, [])) + len(seated.get(n + ITEMS, [])) for n in range(ITEMS)]


def test_long_lists_are_sorted_as_short_ones() -> None:
    """More numbers than are sorted by insertion."""
    random = np.random.default_rng(1)
    lists = [random.permutation(500).tolist() for _ in range(3)]
    sets = laid_out(lists)
    items = Items(
        2 * np.arange(500, dtype=np.uint64) | CONTESTED,
        lambda _: np.empty((0, 2), np.uint64),
        KEY,
    )
    numbers, everyone = np.arange(500, dtype=np.uint32), (0, 3)
    made = arranged(sets, items, numbers, Seating(1, 0, 1, 500), lambda work: work(everyone))
    assert made.listed.reshape(3, 500).tolist() == [list(range(500))] * 3


@pytest.mark.parametrize("pairs", [1, 7, 10**6])
def test_loyal_users_are_taken_some_at_a_time(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_PAIRS", pairs)
    random = np.random.default_rng(2)
    lists = [random.permutation(ITEMS - 2)[: 2 + n % 3].tolist() for n in range(40)]
    lists[5].append(ITEMS - 2)  # these two have one holder each
    lists[9].append(ITEMS - 1)
    sets, items = laid_out(lists, [LOYAL] * 40), items_of(lists, 2 * np.arange(ITEMS), 1)
    gone = items.words.copy()
    gone[3] = settling.GONE
    items, numbers = replace(items, words=gone), np.arange(ITEMS, dtype=np.uint32)
    made = arranged(sets, items, numbers, Seating(1, 0, 1, ITEMS), lambda work: work((0, 40)))
    left = [[item for item in mine if item != 3] for mine in lists]
    for user, mine in enumerate(left):
        first = first_of(mine) if len(mine) > 1 else settling.NOWHERE
        if first >= ITEMS - 2:  # nobody is turned away there, and nobody is loyal to one item
            first = settling.NOWHERE
            assert len(mine) == 1 or made.lengths[user] == 0
        assert made.loyal_to[user] == first


def test_threads_that_ask_for_the_same_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tens of thousands of users, most of whom lose their seats to others."""
    monkeypatch.setattr(matching, "_USERS", 1000)
    random = np.random.default_rng(3)
    users, items = 60_000, 20
    sizes = random.integers(1, 6, users).astype(np.uint32)
    lists = Lists(
        listed=random.integers(0, items, int(sizes.sum()), dtype=np.uint32),
        begins=(np.cumsum(sizes) - sizes).astype(np.uint64),
        lengths=sizes,
        sizes=sizes,
        lasts=np.where(random.random(users) < 0.3, np.uint32(7), np.uint32(settling.NOWHERE)),
        tied=np.zeros(users, dtype=np.uint8),
        loyal_to=np.full(users, settling.NOWHERE, dtype=np.uint32),
    )

    def turns(asking: Any) -> Any:
        return np.random.default_rng(4).permutation(len(asking)).astype(np.uint32)

    def outcome(pool: ThreadPoolExecutor) -> tuple[list[int], int]:
        weights, at_last = seated(lists, turns, Seating(900, 90, 2, 6), items, pool)
        return weights.tolist(), len(at_last)

    with ThreadPoolExecutor(1) as alone:
        expected = outcome(alone)
    for _ in range(60):
        assert outcome(POOL) == expected


def test_nobody_asks() -> None:
    expected = [1, 1] + [0] * (ITEMS - 2)
    assert votes_of([[0], [1]], None, Seating(1, 1, 1, ITEMS)) == expected
