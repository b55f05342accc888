from numpy import uint8, uint32, uint64
from numpy.typing import NDArray

def add_claims(
    items: NDArray[uint32],
    ends: NDArray[uint64],
    claims: NDArray[uint8],
    max_items: int,
    totals: NDArray[uint32],
    first: int,
    stop: int,
) -> None: ...
def take_largest(
    items: NDArray[uint32],
    ends: NDArray[uint64],
    claims: NDArray[uint8],
    totals: NDArray[uint32],
    order: NDArray[uint32],
    weight_of_total: NDArray[uint64],
    step_bits: int,
    most: int,
    taken: NDArray[uint32],
    weights: NDArray[uint64],
    low: int,
    high: int,
) -> None: ...
