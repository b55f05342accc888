from numpy import float64, uint8, uint32, uint64
from numpy.typing import NDArray

def pick(gone: NDArray[uint8], first: int, stop: int, numbers: NDArray[uint32]) -> int: ...
def gather(
    numbers: NDArray[uint32],
    weights: NDArray[uint64],
    evidence: NDArray[float64],
    own_weights: NDArray[uint64],
    own_evidence: NDArray[float64],
) -> None: ...
def scatter(
    numbers: NDArray[uint32],
    own_evidence: NDArray[float64],
    own_released: NDArray[uint8],
    own_claims: NDArray[uint8],
    evidence: NDArray[float64],
    released: NDArray[uint8],
    claims: NDArray[uint8],
    gone: NDArray[uint8],
) -> None: ...
