"""How many users count for each key, over whole sets: a piece of the users at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.memory import kernels
from dp_sips.engines.memory.sets import UserSets, begin_of, cuts, edges_of
from dp_sips.privacy.arrays import Blocks, Integers, Weights, Words

_PAIRS: Final = 1 << 20
"""Pairs of a piece: what is copied of them stays small."""


def places_of(keys: Blocks) -> Callable[[Blocks], NDArray[np.int32]]:
    """Return the function from items to their places among the keys, −1 for all others."""
    known = BlockSet.of(keys)
    places = np.append(known.find(keys).argsort(), -1).astype(np.int32)
    return lambda blocks: places[known.find(blocks)]


@dataclass(frozen=True)
class KeyCounter:
    """Counts users by key.

    Attributes:
        sets: The users' whole sets.
        places: The place of each item among the keys, by its number; −1 for all others.
        user_words: The users' words of bounding.
        key_words: The keys' words of bounding.
        max_items: How many keys a user counts for.
    """

    sets: UserSets
    places: NDArray[np.int32]
    user_words: Words
    key_words: Words
    max_items: int

    def pieces(self) -> list[tuple[int, int]]:
        """Cut the users into pieces that `add` can take."""
        return cuts(self.sets.ends, -(-int(self.sets.ends[-1]) // _PAIRS))

    def add(self, piece: tuple[int, int], sums: Weights) -> int:
        """Add 1 to the keys that each user counts for; return how many users hold none."""
        first, stop = piece
        begin = begin_of(first, self.sets.ends)
        edges = np.append(begin, self.sets.ends[first:stop]).astype(np.int64)
        held, ends = _held(self.places[self.sets.items[begin : edges[-1]]], edges[1:] - begin)
        sizes = np.diff(ends, prepend=np.uint64(0))
        if len(held):
            words = self.user_words[first:stop], self.key_words
            kernels.order_items(held, held[:0], ends, *words, self.max_items, 0, len(ends))
            ones = np.ones(min(self.max_items, int(sizes.max())) + 1, dtype=np.uint64)
            kernels.add_weights(held, ends, _none_removed(len(sums)), ones, sums, 0, len(ends))
        present = np.diff(edges) > 0  # data without rows has a user without items
        return int((present & (sizes == 0)).sum())


def _held(
    places: NDArray[np.int32], ends: Integers
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return the keys that users hold, side by side, and where each user's end."""
    kept = places >= 0
    return places[kept].astype(np.uint32), edges_of(kept)[ends].astype(np.uint64)


def _none_removed(keys: int) -> NDArray[np.uint8]:
    return np.zeros(keys // 8 + 1, dtype=np.uint8)
