"""Families of neighbours: a few users with their items, and one user who is there or not.

Items are numbered from 0 within a pair of neighbours, so that thousands of pairs, each with users
and items of its own, fit into one data set (`worlds.py`). A user's tuple is their rows: an item
that stands there twice is two rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dp_sips.plan import Plan
from dp_sips.privacy.arrays import Floats

_MOST_OWN: Final = 100
"""A user with more items of their own than this would fill the audit with rows."""

_MOST_OTHERS: Final = 20_000
_CHANCES: Final = (0.1, 0.5, 0.9)
_SHAPES: Final = 3

Rows = tuple[int, ...]
"""A user's items, row by row."""


@dataclass(frozen=True)
class Neighbours:
    """Two data sets, of which one has an additional user.

    Attributes:
        others: The rows of all users that are in both.
        extra: The rows of the additional user.
    """

    others: tuple[Rows, ...]
    extra: Rows

    @property
    def items(self) -> int:
        """How many items there are; their numbers begin with 0."""
        return 1 + max(max(rows) for rows in (*self.others, self.extra))

    @property
    def rows(self) -> int:
        """How many rows both data sets have at most."""
        return sum(map(len, self.others)) + len(self.extra)

    @property
    def novel(self) -> frozenset[int]:
        """The items that nobody but the additional user has."""
        return frozenset(self.extra) - {item for rows in self.others for item in rows}


@dataclass(frozen=True)
class Family:
    """A kind of neighbours that is hard to protect.

    Attributes:
        name: What it is called in the table.
        members: One or more pairs of neighbours of this kind.
    """

    name: str
    members: tuple[Neighbours, ...]


def families(plan: Plan, seed: int = 0) -> list[Family]:
    """Return the worst cases that we know of, at sizes that matter to a plan.

    - own: items that nobody else has: one, in one row or several, Δ0 of them, and more than Δ0
    - shared: one item that others have, too, at several chances of release
    - several: items that all others have together
    - mixed: a shared item and one's own, and an item of others beside them
    - hypergraph: random small sets
    - displaced: an item that is full without the user, so that others must move on
    """
    half, full = users_for(plan, 0.5), _full(plan)
    some = min(plan.max_items, 3)
    own = tuple(range(min(plan.max_items, _MOST_OWN)))
    above = tuple(range(3 * plan.max_items))
    found = [
        Family("own item", (Neighbours((), (0,)), Neighbours((), (0, 0, 0)))),
        Family("own items, Δ0", (Neighbours((), own),)),
        Family("shared item", tuple(_shared(plan))),
        Family("several shared", (_several(plan, some),)),
        Family("own and shared", tuple(_mixed(half))),
        Family("hypergraph", tuple(hypergraphs(plan, _SHAPES, 4, seed))),
        Family("displaced", tuple(_displaced(sorted({half, full})))),
    ]
    if len(above) <= _MOST_OWN:
        found.append(Family("own items, above Δ0", (Neighbours((), above),)))
    return found


@lru_cache(maxsize=256)
def users_for(plan: Plan, chance: float, items: int = 1) -> int:
    """Return how many users an item needs for a chance of release, or for most of what can be."""
    most = plan.release_probability(_MOST_OTHERS, items)
    return min(_MOST_OTHERS, plan.users_needed(min(chance, 0.99 * most), items))


@lru_cache(maxsize=64)
def _full(plan: Plan) -> int:
    """Return how many users fill an item, after whom nothing changes its chance.

    A Gaussian's chance reaches 1 far out: displacement needs no more than twice the usual crowd.
    """
    low, high = 0, 2 * users_for(plan, 0.9)
    most = plan.release_probability(high + 1)
    while high - low > 1 and plan.release_probability(high) == most:
        middle = (low + high) // 2
        if plan.release_probability(middle) < most:
            low = middle
        else:
            high = middle
    return high


def _shared(plan: Plan) -> Iterator[Neighbours]:
    """One item, whose chance the additional user changes most, relatively, at different places."""
    for chance in _CHANCES:
        yield Neighbours(((0,),) * max(1, users_for(plan, chance) - 1), (0,))


def _several(plan: Plan, items: int) -> Neighbours:
    """All users have the same items."""
    rows = tuple(range(items))
    return Neighbours((rows,) * max(1, users_for(plan, 0.5, items) - 1), rows)


def _mixed(half: int) -> Iterator[Neighbours]:
    """Items of one's own beside a shared one, which moves weight between them."""
    yield Neighbours(((0,),) * (half - 1) + ((0, 1),), (0, 2))
    yield Neighbours(((0,),) * half + ((1,),) * (half // 2) + ((0, 1),) * 2, (0, 1, 2))


def _displaced(sizes: list[int]) -> Iterator[Neighbours]:
    """Others prefer item 0, of which they have two rows, and move on to 1 or 2 when it is full."""
    for size in sizes:
        yield Neighbours(((0, 0, 1),) * size, (0,))
        yield Neighbours(((0, 0, 1, 2),) * (size - 1) + ((0,),), (0,))


def hypergraphs(
    plan: Plan, count: int, items: int, seed: int, *, bounded: bool = False
) -> Iterator[Neighbours]:
    """Draw users with random sets, in numbers around those that items need.

    Of up to that many items, and with sets of any size; or, `bounded`, of that many items, and with
    sets of at most Δ0.
    """
    random = np.random.default_rng(seed)
    usual = users_for(plan, 0.5, min(2, plan.max_items))
    for _ in range(count):
        size = int(random.integers(items if bounded else 1, items + 1))
        popularity = random.dirichlet(np.ones(size))
        others = int(random.integers(0, max(2, round(usual * size * random.uniform(0.1, 1.2)))))
        most = min(size, plan.max_items) if bounded else size
        users = [_draw(random, popularity, most) for _ in range(others + 1)]
        yield Neighbours(tuple(users[1:]), users[0])


def _draw(random: np.random.Generator, popularity: Floats, most: int) -> Rows:
    """Draw a user's set, and now and then a row twice."""
    wanted = int(random.integers(1, most + 1))
    chances = 0.9 * popularity + 0.1 / len(popularity)
    chosen = random.choice(len(popularity), wanted, replace=False, p=chances / chances.sum())
    rows = [int(item) for item in chosen]
    return tuple(rows + rows[: int(random.integers(0, 2))])
