"""What tests of samplers share: how much they draw, from what, and how sure they are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ALPHA = 1e-8
SAMPLES = 300_000
Floats = NDArray[np.float64]


def blocks(count: int) -> Any:
    """Return blocks as integers have them, one after the other: the least random of inputs."""
    columns = [np.arange(count, dtype=np.uint64), np.full(count, 0xF0 << 56, dtype=np.uint64)]
    return np.stack(columns, axis=1)


def bits_of(tail: int, sign: int) -> Any:
    """Return the 128 bits whose tail probability is (tail + ½)/2¹²⁸, of that sign."""
    return np.array([[tail >> 63, (tail & (1 << 63) - 1) << 1 | sign]], dtype=np.uint64)
