"""Integers of Arrow as numpy arrays and back, without a copy.

Arrow's own `to_numpy` and `pa.array` import pandas where that is installed, which takes as long as
a million rows.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def flat(integers: pa.Array) -> NDArray[Any]:
    """Return an Arrow array of integers without nulls as a numpy array."""
    kind = "i" if pa.types.is_signed_integer(integers.type) else "u"
    dtype = np.dtype(f"{kind}{integers.type.bit_width // 8}")
    if not len(integers):
        return np.empty(0, dtype)
    return np.frombuffer(
        integers.buffers()[1], dtype, len(integers), integers.offset * dtype.itemsize
    )


def as_arrow(integers: NDArray[Any]) -> pa.Array:
    """Return a contiguous numpy array of integers as an Arrow array."""
    buffers = [None, pa.py_buffer(integers)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(integers.dtype), len(integers), buffers)
