from typing import Final

from numpy import uint8, uint32, uint64
from numpy.typing import NDArray

GONE: Final[int]
NOWHERE: Final[int]

def arrange(
    items: NDArray[uint32],
    ends: NDArray[uint64],
    words: NDArray[uint64],
    numbers: NDArray[uint32],
    max_items: int,
    first: int,
    stop: int,
    listed: NDArray[uint32],
    begins: NDArray[uint64],
    lengths: NDArray[uint32],
    sizes: NDArray[uint32],
    lasts: NDArray[uint32],
    tied: NDArray[uint8],
) -> None: ...
def count(items: NDArray[uint32], weights: NDArray[uint64], unit: int) -> None: ...
def settle(
    listed: NDArray[uint32],
    begins: NDArray[uint64],
    lengths: NDArray[uint32],
    sizes: NDArray[uint32],
    lasts: NDArray[uint32],
    loyal_to: NDArray[uint32],
    users: NDArray[uint32],
    schedule: NDArray[uint32],
    seats: int,
    spare: int,
    laps: int,
    keys: NDArray[uint64],
    bars: NDArray[uint64],
    seated: NDArray[uint32],
) -> int: ...
