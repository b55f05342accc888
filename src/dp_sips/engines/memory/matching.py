"""Who is seated where, over sets as arrays: the lists, the turns, and the compiled loop.

Most items have no more holders than seats, so that nobody is ever turned away there: a user's list
ends at the first of them. The others are contested.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.memory import settling
from dp_sips.engines.memory.numbering import Numbers
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks, Weights, Words
from dp_sips.privacy.weights import UNIT

_CONTESTED: Final = np.uint64(1)
_NO_BAR: Final = np.iinfo(np.uint64).max
_LONG: Final = np.iinfo(np.uint16).max

Sets = tuple[Numbers, NDArray[np.uint64]]
"""Items, and where those of each user end: the items of user u are items[ends[u − 1] : ends[u]]."""

ForShares = Callable[[Callable[[tuple[int, int]], None]], None]
"""Calls a function for shares of the users, first and stop, side by side."""


@dataclass(frozen=True)
class Seating:
    """How many seats and spare seats an item has, how often users go over their lists, and Δ0."""

    seats: int
    spare: int
    laps: int
    max_items: int


@dataclass(frozen=True)
class Items:
    """What settling asks about items, by their numbers.

    Attributes:
        words: `bounding.precedence` of each; `settling.GONE` where an item is in nobody's set.
        holders: How many users hold each.
        blocks: Returns the blocks of some of them.

    An item is contested where it has more holders than seats.
    """

    words: Words
    holders: NDArray[np.uint64]
    blocks: Callable[[NDArray[Any]], Blocks]


@dataclass(frozen=True)
class Lists:
    """Users' lists: the list of user u is listed[begins[u] : begins[u] + lengths[u]].

    Attributes:
        listed: Numbers of contested items.
        sizes: How long the whole lists are.
        lasts: The item at which a user's list ends, as nobody is turned away there.
        tied: Whether words alone do not say where the list ends.
    """

    listed: Numbers
    begins: NDArray[np.uint64]
    lengths: Numbers
    sizes: Numbers
    lasts: Numbers
    tied: NDArray[np.uint8]

    @classmethod
    def empty(cls, users: int, pairs: int) -> "Lists":
        """Make room."""
        lengths, sizes, lasts = (np.empty(users, dtype=np.uint32) for _ in range(3))
        begins, tied = np.empty(users, dtype=np.uint64), np.empty(users, dtype=np.uint8)
        return cls(np.empty(pairs, dtype=np.uint32), begins, lengths, sizes, lasts, tied)


def settle(
    sets: Sets,
    items: Items,
    turns: Callable[[NDArray[Any]], Numbers],
    seating: Seating,
    for_shares: ForShares,
) -> Weights:
    """Return how many users are seated at each item; the result takes the place of `holders`.

    `turns` orders some of the users, given by their numbers.
    """
    desks = np.flatnonzero(items.holders > seating.seats)
    desks = desks[bounding.in_precedence(items.words[desks], items.blocks(desks))]
    numbers = np.empty(len(items.words), dtype=np.uint32)
    numbers[desks] = np.arange(len(desks), dtype=np.uint32)
    lists = arranged(sets, items, numbers, seating, for_shares)
    weights = items.holders
    weights.fill(0)
    at_once = (lists.lengths == 0) & (lists.lasts != settling.NOWHERE)
    settling.count(lists.lasts[at_once], weights, UNIT)
    weights[desks] = seated(lists, turns, seating, len(desks), weights)
    return weights


def arranged(
    sets: Sets,
    items: Items,
    numbers: Numbers,
    seating: Seating,
    for_shares: ForShares,
) -> Lists:
    """Return the users' lists; `numbers` are the contested items' places among each other."""
    words, most = items.words, seating.max_items
    np.bitwise_or(words, _CONTESTED, out=words, where=items.holders > seating.seats)
    lists = Lists.empty(users=len(sets[1]), pairs=len(sets[0]))

    def work(share: tuple[int, int]) -> None:
        made = (getattr(lists, field.name) for field in fields(lists))
        settling.arrange(*sets, words, numbers, most, *share, *made)

    for_shares(work)
    for user in np.flatnonzero(lists.tied).tolist():
        _untie(lists, user, _counted(sets, user, words, most), items, numbers)
    return lists


def _counted(sets: Sets, user: int, words: Words, max_items: int) -> Numbers:
    items, ends = sets
    mine = items[int(ends[user - 1]) if user else 0 : int(ends[user])]
    held: Numbers = mine[words[mine] != settling.GONE]
    return held[:max_items]


def _untie(lists: Lists, user: int, mine: Numbers, items: Items, numbers: Numbers) -> None:
    """Make the list of one user where words alone do not say where it ends."""
    words = items.words[mine]
    mine = mine[bounding.in_precedence(words & ~_CONTESTED, items.blocks(mine))]
    free = np.flatnonzero(items.words[mine] & _CONTESTED == 0)
    length = int(free[0]) if len(free) else len(mine)
    begin = int(lists.begins[user])
    lists.listed[begin : begin + length] = numbers[mine[:length]]
    lists.lengths[user] = length
    lists.lasts[user] = mine[length] if len(free) else settling.NOWHERE


def seated(
    lists: Lists,
    turns: Callable[[NDArray[Any]], Numbers],
    seating: Seating,
    desks: int,
    weights: Weights,
) -> Weights:
    """Return the weights of contested items; votes of other users are added to `weights`."""
    asking = np.flatnonzero(lists.lengths)
    users = asking[turns(asking)].astype(np.uint32)
    counts = np.zeros(2 * desks, dtype=np.uint32)
    settling.settle(
        lists.listed,
        lists.begins,
        lists.lengths,
        lists.sizes,
        lists.lasts,
        users,
        _schedule(lists.sizes[users]),
        seating.seats,
        seating.spare,
        seating.laps,
        np.empty(desks * (seating.seats + seating.spare), dtype=np.uint64),
        np.full(2 * desks, _NO_BAR, dtype=np.uint64),
        counts,
        weights,
        UNIT,
    )
    return (counts[:desks] + counts[desks:]).astype(np.uint64) * np.uint64(UNIT)


def _schedule(sizes: Numbers) -> Numbers:
    """Return turns in the order in which users come in: any will do, and short lists first is fast.

    Their keys are the better ones, so fewer users are turned away later.
    """
    few = np.minimum(sizes, _LONG).astype(np.uint16)
    return np.argsort(few, kind="stable").astype(np.uint32)
