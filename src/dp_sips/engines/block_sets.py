"""Sets of blocks, sorted by hash: the order in which they fall into buckets."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np

from dp_sips.privacy.arrays import Blocks, Integers, Words
from dp_sips.privacy.bounding import mix

NO_BLOCKS: Final[Blocks] = np.empty((0, 2), dtype=np.uint64)


@dataclass(frozen=True)
class BlockSet:
    """Distinct blocks, sorted by their hashes; few blocks, usually none, share a hash."""

    blocks: Blocks

    @classmethod
    def of(cls, blocks: Blocks) -> Self:
        """Sort distinct blocks."""
        return cls(blocks[np.argsort(hash_blocks(blocks))])

    def __len__(self) -> int:
        return len(self.blocks)

    @cached_property
    def _hashes(self) -> Words:
        return hash_blocks(self.blocks)

    @cached_property
    def _longest_run(self) -> int:
        return _longest_run(self._hashes)

    def find(self, blocks: Blocks) -> Integers:
        """Return the position of each block in the set, or −1."""
        found = np.full(len(blocks), -1, dtype=np.int64)
        if not len(self):
            return found
        first = np.searchsorted(self._hashes, hash_blocks(blocks))
        for step in range(self._longest_run):
            candidates = np.minimum(first + step, len(self) - 1)
            hits = (self.blocks[candidates] == blocks).all(axis=1)
            found[hits] = candidates[hits]
        return found


def first_rows(blocks: Blocks) -> Integers:
    """Return the rows in which each block stands first, in the order of the blocks."""
    order = np.lexsort(blocks.T)  # several times as fast as np.unique is with rows
    ordered = blocks[order]
    new = np.ones(len(blocks), dtype=np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[new]


def hash_blocks(blocks: Blocks) -> Words:
    """Return a 64-bit hash of each block, not a cryptographic one."""
    return mix(blocks[:, 0] ^ mix(blocks[:, 1]))


def _longest_run(hashes: Words) -> int:
    """Return the length of the longest run of equal values in these sorted hashes."""
    length = 1
    while (hashes[length:] == hashes[:-length]).any():
        length += 1
    return length
