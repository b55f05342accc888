from typing import Any

from numpy import uint8, uint32, uint64
from numpy.typing import NDArray

def begin(
    data: NDArray[uint8],
    offsets: NDArray[Any],
    heads: NDArray[uint64],
    blocks: NDArray[uint64],
    rows: NDArray[uint32],
    states: NDArray[uint64],
    longer: NDArray[uint32],
) -> tuple[int, int]: ...
def absorb(
    data: NDArray[uint8],
    offsets: NDArray[Any],
    done: int,
    mark: int,
    blocks: NDArray[uint64],
    rows: NDArray[uint32],
    states: NDArray[uint64],
) -> int: ...
