"""Sums of what users give by a `Split`, over sets as arrays: a few thousand pairs at a time."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.memory.sets import begin_of, cuts, edges_of
from dp_sips.privacy.arrays import Weights
from dp_sips.privacy.contributions import MOST, Split

_PAIRS: Final = 1 << 14
"""So few pairs at a time that their sum cannot overflow before it is stopped."""


def pieces(ends: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Cut users into pieces that `add_split` can take."""
    return cuts(ends, -(-int(ends[-1]) // _PAIRS))


def add_split(
    split: Split,
    items: NDArray[np.uint32],
    sizes: NDArray[np.int64],
    signals: NDArray[np.int64],
    sums: Weights,
) -> None:
    """Add what users give to their items, as many as `sizes` says each; sums stop at MOST."""
    np.add.at(sums, items, split(sizes, signals[items]))
    sums[items] = np.minimum(sums[items], np.uint64(MOST))


def counted(
    items: NDArray[np.uint32],
    ends: NDArray[np.uint64],
    gone: NDArray[np.bool_],
    max_items: int,
    piece: tuple[int, int],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the items that count of a piece of the users, and how many each user has."""
    first, stop = piece
    begin = begin_of(first, ends)
    edges = np.append(begin, ends[first:stop]).astype(np.int64) - begin
    mine = items[begin : begin + int(edges[-1])]
    active = ~gone[mine]
    before = edges_of(active)
    rank = before[:-1] - np.repeat(before[edges[:-1]], np.diff(edges))
    counts = active & (rank < max_items)
    return mine[counts], np.minimum(np.diff(before[edges]), max_items)
