from typing import Final

from numpy import float64, uint32, uint64
from numpy.typing import NDArray

LARGEST_SCALE: Final = 1e9

def pieces() -> NDArray[float64]: ...
def in_steps(
    bits: NDArray[uint64], scale: float, found: NDArray[float64], unsure: NDArray[uint32]
) -> int: ...
def candidates(
    bits: NDArray[uint64],
    weights: NDArray[uint64],
    rows: NDArray[uint32],
    bound: int,
    beyond: float,
    threshold: float,
    sigma: float,
    unit: float,
) -> int: ...
