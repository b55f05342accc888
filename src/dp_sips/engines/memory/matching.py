"""Who is seated where, over sets as arrays: the lists, the turns, and the compiled loop.

Most items have no more holders than seats, so that nobody is ever turned away there: a user's list
ends at the first of them. The others are contested.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.memory import settling
from dp_sips.engines.memory.disk import Arrays, InMemory
from dp_sips.engines.memory.numbering import Numbers
from dp_sips.engines.memory.sets import begin_of, gathered, sizes_of
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks, Bools, Weights, Words
from dp_sips.privacy.bounding import BoundingKey
from dp_sips.privacy.weights import UNIT

CONTESTED: Final = np.uint64(1)
"""The last bit of an item's word: it may have to turn users away."""
_GONE: Final = np.uint64(2)
_LAST_RANK: Final = np.iinfo(np.uint64).max
_PAIRS: Final = 1 << 20
"""Pairs of loyal users whose items are looked up together."""
_TOGETHER: Final = 1 << 15
"""Pairs of loyal users that are ranked together: few enough for the cache."""

_USERS: Final = 1 << 14
"""Users who come in one after the other, in one of several threads."""

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
class Votes:
    """Where users are seated.

    Attributes:
        seating: What was asked for.
        desks: The contested items.
        weights: Their weights.
        elsewhere: The items of all other users who have a seat, one for each user.
    """

    seating: Seating
    desks: NDArray[np.int64]
    weights: Weights
    elsewhere: Numbers

    def write(self, weights: Weights) -> Weights:
        """Return the weights of all items, written over what is given."""
        weights.fill(0)
        settling.count(self.elsewhere, weights, UNIT)
        weights[self.desks] = self.weights
        return weights


@dataclass(frozen=True)
class Sets:
    """The users' sets.

    Attributes:
        items: Numbers of items.
        ends: The items of user u are items[ends[u − 1] : ends[u]].
        words: `bounding.user_words` of the users.
        arrays: Where as many more numbers go as there are items, or pairs.
    """

    items: Numbers
    ends: NDArray[np.uint64]
    words: Words
    arrays: Arrays = field(default_factory=InMemory)


@dataclass(frozen=True)
class Items:
    """What settling asks about items, by their numbers.

    Attributes:
        words: `bounding.precedence` of each, and `CONTESTED` where an item has more holders than
            seats; `settling.GONE` where it is in nobody's set.
        blocks: Returns the blocks of some of them.
        key: The key of bounding.
    """

    words: Words
    blocks: Callable[[NDArray[Any]], Blocks]
    key: BoundingKey


@dataclass(frozen=True)
class Lists:
    """Users' lists: the list of user u is listed[begins[u] : begins[u] + lengths[u]].

    Attributes:
        listed: Numbers of contested items.
        sizes: How long the whole lists are.
        lasts: The item at which a user's list ends, as nobody is turned away there.
        loyal_to: The number of the contested item that a user asks before its list.
        tied: Whether words alone do not say where the list ends.
    """

    listed: Numbers
    begins: NDArray[np.uint64]
    lengths: Numbers
    sizes: Numbers
    lasts: Numbers
    tied: NDArray[np.uint8]
    loyal_to: Numbers

    @classmethod
    def empty(cls, users: int, pairs: int, arrays: Arrays) -> "Lists":
        """Make room."""
        lengths, sizes, lasts = (np.empty(users, dtype=np.uint32) for _ in range(3))
        begins, tied = np.empty(users, dtype=np.uint64), np.empty(users, dtype=np.uint8)
        listed: Numbers = arrays.zeros(pairs, np.uint32)
        loyal_to = np.full(users, settling.NOWHERE, dtype=np.uint32)
        return cls(listed, begins, lengths, sizes, lasts, tied, loyal_to)

    def asking(self) -> Bools:
        """Return which users ask contested items; the others are seated at their last at once."""
        return np.asarray((self.lengths > 0) | (self.loyal_to != settling.NOWHERE))

    def at_once(self) -> Numbers:
        """Return the items at which users are seated at once, one for each of them."""
        lasts = self.lasts[~self.asking()]
        somewhere: Numbers = lasts[lasts != settling.NOWHERE]
        return somewhere


def listed(
    sets: Sets, items: Items, desks: NDArray[np.int64], seating: Seating, for_shares: ForShares
) -> tuple[NDArray[np.int64], Lists]:
    """Return the contested items in the order of lists, and the users' lists.

    `desks` are these items in any order; they are marked here. On lists, they have their places in
    that order as numbers.
    """
    items.words[desks] |= CONTESTED
    desks = desks[bounding.in_precedence(items.words[desks], items.blocks(desks))]
    numbers: Numbers = sets.arrays.zeros(len(items.words), np.uint32)
    numbers[desks] = np.arange(len(desks), dtype=np.uint32)
    return desks, arranged(sets, items, numbers, seating, for_shares)


def arranged(
    sets: Sets, items: Items, numbers: Numbers, seating: Seating, for_shares: ForShares
) -> Lists:
    """Return the users' lists; `numbers` are the contested items' places among each other."""
    words, most = items.words, seating.max_items
    lists = Lists.empty(len(sets.ends), len(sets.items), sets.arrays)

    def work(share: tuple[int, int]) -> None:
        settling.arrange(
            sets.items,
            sets.ends,
            words,
            numbers,
            most,
            *share,
            lists.listed,
            lists.begins,
            lists.lengths,
            lists.sizes,
            lists.lasts,
            lists.tied,
        )

    for_shares(work)
    for user in np.flatnonzero(lists.tied).tolist():
        _untie(lists, user, _counted(sets, user, words, most), items, numbers)
    _put_first(lists, sets, items, numbers)
    return lists


def _counted(sets: Sets, user: int, words: Words, max_items: int) -> Numbers:
    mine = sets.items[begin_of(user, sets.ends) : begin_of(user + 1, sets.ends)]
    held: Numbers = mine[words[mine] != settling.GONE]
    return held[:max_items]


def _untie(lists: Lists, user: int, mine: Numbers, items: Items, numbers: Numbers) -> None:
    """Make the list of one user where words alone do not say where it ends."""
    words = items.words[mine]
    mine = mine[bounding.in_precedence(words & ~CONTESTED, items.blocks(mine))]
    free = np.flatnonzero(items.words[mine] & CONTESTED == 0)
    length = int(free[0]) if len(free) else len(mine)
    begin = int(lists.begins[user])
    lists.listed[begin : begin + length] = numbers[mine[:length]]
    lists.lengths[user] = length
    lists.lasts[user] = mine[length] if len(free) else settling.NOWHERE


def _put_first(lists: Lists, sets: Sets, items: Items, numbers: Numbers) -> None:
    """Let loyal users begin with the first item in their bounding order."""
    loyal = _loyal(sets.words, lists.sizes)
    if not len(loyal):
        return
    some = np.array_split(loyal, -(-int(lists.sizes[loyal].sum()) // _TOGETHER))
    pairs = np.concatenate([gathered(sets.items, sets.ends, users) for users in some])
    size = len(items.words)
    words = _fetched(lambda n: bounding.item_words(items.key, items.blocks(n)), pairs, size)
    states = _fetched(lambda n: _states(items.words[n]), pairs, size)
    places = _places_of_firsts(some, sets, words, states == _GONE)
    firsts, contested = pairs[places], states[places] == CONTESTED
    lists.loyal_to[loyal[contested]] = _fetched(numbers.__getitem__, firsts[contested], size)
    free = loyal[~contested]
    lists.lengths[free], lists.lasts[free] = 0, firsts[~contested]


def _loyal(words: Words, sizes: Numbers) -> NDArray[np.int64]:
    """Return which users are loyal; a few are checked at a time, within the cache."""
    found = [np.empty(0, dtype=np.int64)]
    for first in range(0, len(sizes), _USERS):
        some = slice(first, first + _USERS)
        found.append(first + np.flatnonzero(bounding.loyal(words[some], sizes[some])))
    return np.concatenate(found)


def _fetched(fetch: Callable[[Numbers], NDArray[Any]], numbers: Numbers, size: int) -> NDArray[Any]:
    """Return what is known of items, of which there are `size`.

    Few items are fetched once each; for many pairs, they are fetched in their order on disk.
    """
    if size <= min(len(numbers), _PAIRS):
        return fetch(np.arange(size, dtype=np.uint32))[numbers]
    if len(numbers) <= _PAIRS:
        return fetch(numbers)
    found = np.empty(len(numbers), fetch(numbers[:0]).dtype)
    for part in np.array_split(np.argsort(numbers), -(-len(numbers) // _PAIRS)):
        found[part] = fetch(numbers[part])
    return found


def _states(words: Words) -> NDArray[np.uint8]:
    """Return what words say of items: `_GONE`, `CONTESTED` or 0."""
    return np.where(words == settling.GONE, _GONE, words & CONTESTED).astype(np.uint8)


def _places_of_firsts(
    some: list[NDArray[Any]], sets: Sets, words: Words, gone: Bools
) -> NDArray[np.int64]:
    """Return the place among all pairs of each user's first item, in its bounding order.

    `words` and `gone` are of the pairs of these users, who are taken some at a time.
    """
    found, begin = [], 0
    for users in some:
        sizes = sizes_of(users, sets.ends)
        mine = slice(begin, begin + int(sizes.sum()))
        ranks = bounding.rank(np.repeat(sets.words[users], sizes), words[mine])
        ranks[gone[mine]] = _LAST_RANK
        starts = np.cumsum(sizes) - sizes
        least = np.flatnonzero(ranks == np.repeat(np.minimum.reduceat(ranks, starts), sizes))
        found.append(begin + least[np.searchsorted(least, starts)])
        begin = mine.stop
    return np.concatenate(found)


def seated(
    lists: Lists,
    turns: Callable[[NDArray[Any]], Numbers],
    seating: Seating,
    desks: int,
    pool: Executor,
) -> tuple[Weights, Numbers]:
    """Return the weights of contested items, and the items of users who are seated at their last.

    `turns` orders some of the users, given by their numbers; they come in side by side.
    """
    asking = np.flatnonzero(lists.asking()).astype(np.uint32)
    order = turns(asking)
    schedule, at_last = _schedule(lists.sizes[asking], order), [lists.at_once()]
    users = asking[order]
    del asking, order
    hall = settling.Hall(
        lists.listed, len(users), desks, seating.seats, seating.spare, seating.laps
    )
    known = lists.begins, lists.lengths, lists.sizes, lists.lasts, lists.loyal_to, users

    def let_in(first: int, stop: int) -> None:
        found = hall.let_in(schedule, first, stop)
        at_last.append(schedule[first : first + found])  # appending is safe from any thread

    firsts = range(0, len(users), _USERS if settling.SIDE_BY_SIDE else len(users) or 1)
    stops = [*firsts[1:], len(users)]
    list(pool.map(partial(hall.invite, *known), firsts, stops))
    list(pool.map(let_in, firsts, stops))
    weights = np.empty(desks, dtype=np.uint64)
    hall.seated(weights)
    return weights * np.uint64(UNIT), np.concatenate(at_last)


def _schedule(sizes: Numbers, order: Numbers) -> Numbers:
    """Return turns in the order in which users come in, which does not change what comes of it.

    `order` has the users' numbers in the order of their turns. Short lists first is fast: their
    keys are the better ones, so fewer users are turned away later. Lists of about the same length
    come as they stand in memory, or on disk.
    """
    turn_of = np.empty_like(order)
    turn_of[order] = np.arange(len(order), dtype=np.uint32)
    bits = np.frexp(np.arange(int(sizes.max(initial=0)) + 1) - 1.0)[1].astype(np.uint8)
    return turn_of[np.argsort(bits[sizes], kind="stable")]
