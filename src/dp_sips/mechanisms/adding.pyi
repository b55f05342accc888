from numpy import float64, int64, uint8, uint64
from numpy.typing import NDArray

def add_round(
    weights: NDArray[uint64],
    evidence: NDArray[float64],
    factor: float,
    edges: NDArray[float64],
    steps: NDArray[uint8],
    total: NDArray[float64],
    claims: NDArray[uint8],
) -> None: ...
def add_claim(
    chances: NDArray[float64],
    claims: NDArray[int64],
    places: NDArray[int64],
    row: NDArray[float64],
    more: NDArray[float64],
) -> None: ...
def first_reached(
    places: NDArray[int64],
    row: NDArray[float64],
    chances: NDArray[float64],
    found: NDArray[int64],
) -> None: ...
