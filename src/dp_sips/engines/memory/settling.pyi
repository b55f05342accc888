from typing import Final

from numpy import uint8, uint32, uint64
from numpy.typing import NDArray

GONE: Final[int]
NOWHERE: Final[int]
SIDE_BY_SIDE: Final[bool]

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

class Hall:
    def __init__(
        self, listed: NDArray[uint32], people: int, items: int, seats: int, spare: int, laps: int
    ) -> None: ...
    def invite(
        self,
        begins: NDArray[uint64],
        lengths: NDArray[uint32],
        sizes: NDArray[uint32],
        lasts: NDArray[uint32],
        loyal_to: NDArray[uint32],
        users: NDArray[uint32],
        first: int,
        stop: int,
    ) -> None: ...
    def let_in(self, schedule: NDArray[uint32], first: int, stop: int) -> int: ...
    def seated(self, counts: NDArray[uint64]) -> None: ...
