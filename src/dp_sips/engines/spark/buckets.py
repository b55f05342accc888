"""Where Spark sends a row: the bucket numbers that its hash spreads over all shuffle partitions."""

import numpy as np
from numpy.typing import NDArray

_WORD = 0xFFFFFFFF


def bucket_labels(partitions: int) -> NDArray[np.int32]:
    """Return one integer for each shuffle partition, which `repartition` sends just there.

    Numbers 0, 1, 2 … would leave a third of the partitions empty, as hashes do.
    """
    labels = np.full(partitions, -1, dtype=np.int32)
    left, candidate = partitions, 0
    while left:
        place = _spark_hash(candidate) % partitions
        if labels[place] < 0:
            labels[place] = candidate
            left -= 1
        candidate += 1
    return labels


def _spark_hash(number: int) -> int:
    """Return Spark's hash of a non-negative int column: Murmur3 of 4 bytes, seed 42, signed."""
    h = _rotated(number * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    h = (_rotated(42 ^ h, 13) * 5 + 0xE6546B64) & _WORD
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & _WORD
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD
