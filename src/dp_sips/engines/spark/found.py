"""Which blocks are among those that earlier rounds found."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dp_sips.privacy.bounding import mix
from dp_sips.privacy.noise import Blocks


@dataclass(frozen=True)
class Found:
    """Distinct blocks, sorted by a word of each; `most` of them share one word, mostly 1."""

    blocks: Blocks
    words: NDArray[np.uint64]
    most: int

    @classmethod
    def of(cls, blocks: Blocks) -> Self:
        """Sort the blocks."""
        words = _words(blocks)
        order = np.argsort(words)
        words = words[order]
        most = int(np.unique(words, return_counts=True)[1].max(initial=1))
        return cls(blocks[order], words, most)

    def __len__(self) -> int:
        return len(self.blocks)

    def contain(self, blocks: Blocks) -> NDArray[np.bool_]:
        """Return whether each block is among these."""
        hits = np.zeros(len(blocks), dtype=np.bool_)
        if len(self):
            places = np.searchsorted(self.words, _words(blocks))
            for step in range(self.most):
                near = np.minimum(places + step, len(self) - 1)
                hits |= (self.blocks[near] == blocks).all(axis=1)
        return hits


def _words(blocks: Blocks) -> NDArray[np.uint64]:
    return mix(blocks[:, 0] ^ mix(blocks[:, 1]))
