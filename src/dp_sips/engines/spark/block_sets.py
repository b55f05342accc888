"""Sets of blocks, in the order in which they fall into buckets."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.memory import kernels
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.bounding import mix

Words = NDArray[np.uint64]
_HALF = np.uint64(32)
NO_BLOCKS: Final[Blocks] = np.empty((0, 2), dtype=np.uint64)


@dataclass(frozen=True)
class BlockSet:
    """Distinct blocks, sorted by a word of each: few of them, mostly none, share a word."""

    blocks: Blocks

    @classmethod
    def of(cls, blocks: Blocks) -> Self:
        """Sort distinct blocks."""
        return cls(blocks[np.argsort(words_of(blocks))])

    def __len__(self) -> int:
        return len(self.blocks)

    def places(self, blocks: Blocks) -> NDArray[np.int64]:
        """Return where each block is in the set, or −1."""
        found = np.full(len(blocks), -1, dtype=np.int64)
        if not len(self):
            return found
        words = words_of(self.blocks)
        first = np.searchsorted(words, words_of(blocks))
        for step in range(_longest_run(words)):
            near = np.minimum(first + step, len(self) - 1)
            hits = (self.blocks[near] == blocks).all(axis=1)
            found[hits] = near[hits]
        return found


def numbered(blocks: Blocks) -> tuple[Blocks, NDArray[np.uint32]]:
    """Return the distinct blocks, in the order of a set, and the place of each block among them."""
    if not len(blocks):
        return blocks, np.empty(0, dtype=np.uint32)
    shard = kernels.Shard(0, 1, 2, 0)
    distinct = np.empty((len(blocks) + 2 * kernels.LOT_SIZE, 2), dtype=np.uint64)
    numbers = np.empty(len(blocks), dtype=np.uint32)
    firsts = np.empty(len(blocks) + 1, dtype=np.uint32)
    count = shard.number(blocks, distinct, numbers, firsts)
    order = np.argsort(words_of(distinct[:count]))
    places = np.empty(count, dtype=np.uint32)
    places[order] = np.arange(count, dtype=np.uint32)
    return distinct[order], places[numbers]


def words_of(blocks: Blocks) -> Words:
    """Return the word of each block."""
    return mix(blocks[:, 0] ^ mix(blocks[:, 1]))


def buckets_of(words: Words, count: int) -> Words:
    """Return in which of `count` buckets each word falls: ranges of words, of the same size."""
    return (words >> _HALF) * np.uint64(count) >> _HALF


def _longest_run(words: Words) -> int:
    """Return how many of these sorted words are the same, at the most."""
    length = 1
    while (words[length:] == words[:-length]).any():
        length += 1
    return length
