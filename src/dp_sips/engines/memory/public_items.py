"""Public items leave the users' sets, by their numbers: a piece of the users at a time."""

from typing import Final

import numpy as np

from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.memory.disk import Arrays
from dp_sips.engines.memory.numbering import Column
from dp_sips.engines.memory.sets import UserSets, begin_of, cuts, edges_of
from dp_sips.privacy.arrays import Bools

_PIECE: Final = 1 << 20
"""Items that are looked up, and pairs that are moved, at a time."""


def without(
    sets: UserSets, items: Column, known: BlockSet, arrays: Arrays, *, keep_whole: bool
) -> UserSets:
    """Return the sets without some items; users who hold nothing else stay, with empty sets.

    Pairs move together where they are, unless the whole sets are to be kept.
    """
    gone = _find(items, known)
    columns = [sets.items, sets.counts]
    moved = [arrays.empty_like(column) for column in columns] if keep_whole else columns
    ends, at = np.empty_like(sets.ends), 0
    for first, stop in cuts(sets.ends, -(-len(sets.items) // _PIECE)):
        begin, end = begin_of(first, sets.ends), begin_of(stop, sets.ends)
        kept = ~gone[sets.items[begin:end]]
        before = edges_of(kept)
        ends[first:stop] = at + before[sets.ends[first:stop].astype(np.int64) - begin]
        for column, target in zip(columns, moved, strict=True):
            if len(column):
                target[at : at + before[-1]] = column[begin:end][kept]
        at += int(before[-1])
    left, counts = moved[0][:at], moved[1][:at]
    return UserSets(left, ends, counts)


def _find(items: Column, known: BlockSet) -> Bools:
    """Return which numbers belong to known items."""
    gone = np.zeros(items.size(), dtype=np.bool_)
    for start in range(0, len(gone), _PIECE):
        piece = slice(start, start + _PIECE)
        gone[piece] = known.find(items.blocks(piece)) >= 0
    return gone
