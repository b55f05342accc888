"""Numbers for distinct blocks, by the memory engine's table."""

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.block_sets import hash_blocks
from dp_sips.engines.memory import tables
from dp_sips.privacy.arrays import Blocks


def number_blocks(blocks: Blocks) -> tuple[Blocks, NDArray[np.uint32]]:
    """Return the distinct blocks, sorted as in a `BlockSet`, and the number of each block there."""
    if not len(blocks):
        return blocks, np.empty(0, dtype=np.uint32)
    shard = tables.Shard(0, 1, 2, 0)
    distinct = np.empty((len(blocks) + 2 * tables.LOT_SIZE, 2), dtype=np.uint64)
    numbers = np.empty(len(blocks), dtype=np.uint32)
    firsts = np.empty(len(blocks) + 1, dtype=np.uint32)
    rows = np.arange(len(blocks), dtype=np.uint32)
    count = shard.number(blocks, rows, distinct, numbers, firsts)
    order = np.argsort(hash_blocks(distinct[:count]))
    positions = np.empty(count, dtype=np.uint32)
    positions[order] = np.arange(count, dtype=np.uint32)
    return distinct[order], positions[numbers]
