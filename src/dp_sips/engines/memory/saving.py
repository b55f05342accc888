"""What a run that is saved needs: a sum that tells data sets apart, and items found by blocks."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.memory.counting import places_of
from dp_sips.engines.memory.numbering import Column
from dp_sips.engines.memory.sets import UserSets, begin_of, cuts
from dp_sips.errors import InputError
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks, Words

_PAIRS: Final = 1 << 20
"""Pairs that are hashed at a time."""
_ITEMS: Final = 1 << 16
"""Items that are looked up at a time, at the least."""


def sum_of_ranks(sets: UserSets, user_words: Words, item_words: Words, pool: Executor) -> int:
    """Return the sum of the bounding ranks of all pairs, in 64 bits, whatever their order.

    Sensitive: it is made with the run's key, and is to be kept where that is kept.
    """

    def work(share: tuple[int, int]) -> int:
        begin = begin_of(share[0], sets.ends)
        edges = np.append(begin, sets.ends[slice(*share)].astype(np.int64))
        owners = np.repeat(user_words[slice(*share)], edges[1:] - edges[:-1])
        ranks = bounding.rank(owners, item_words[sets.items[begin : edges[-1]]])
        if len(sets.counts):
            ranks *= sets.counts[begin : edges[-1]].astype(np.uint64)
        return int(ranks.sum(dtype=np.uint64))

    shares = cuts(sets.ends, -(-len(sets.items) // _PAIRS))
    return sum(pool.map(work, shares)) % (1 << 64)


def numbers_of(
    blocks: Blocks, items: Column, by_pieces: Callable[[Callable[[slice], None], int], Any]
) -> NDArray[np.int64]:
    """Return the numbers of distinct items that are known by their blocks."""
    numbers, find = np.full(len(blocks), -1, dtype=np.int64), places_of(blocks)

    def work(piece: slice) -> None:
        places = find(items.blocks(piece))
        found = np.flatnonzero(places >= 0)
        numbers[places[found]] = found + piece.start

    by_pieces(work, max(_ITEMS, len(blocks)))  # the blocks are hashed for each piece
    if (numbers < 0).any():
        raise InputError("the items are not those of the run that is to go on: begin anew")
    return numbers
