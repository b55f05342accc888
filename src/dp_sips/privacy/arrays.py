"""The kinds of arrays that everything here is made of."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

Words = NDArray[np.uint64]
"""64 bits each."""

Blocks = NDArray[np.uint64]
"""Shape (n, 2): n blocks of 16 bytes, each as two little-endian words."""

Weights = NDArray[np.uint64]
"""Sums of weights, in units of 2⁻³⁰ or as the round says."""

Claims = NDArray[np.uint8]
"""What items claim of the square of their holders' weight, up to `weights.WHOLE_CLAIM`."""
