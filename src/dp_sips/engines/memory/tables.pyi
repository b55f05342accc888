from numpy import uint32, uint64
from numpy.typing import NDArray

LOT_SIZE: int

def share_out(
    values: NDArray[uint64],
    known: NDArray[uint32],
    seed: int,
    numbers: NDArray[uint32],
    rows: NDArray[uint32],
    ends: NDArray[uint64],
) -> None: ...

class Shard:
    shard: int
    shards: int
    width: int
    count: int
    direct: int
    def __init__(self, shard: int, shards: int, width: int, seed: int) -> None: ...
    def number(
        self,
        values: NDArray[uint64],
        rows: NDArray[uint32],
        words: NDArray[uint64],
        numbers: NDArray[uint32],
        firsts: NDArray[uint32],
    ) -> int: ...
    def use_direct(self, numbers: NDArray[uint32], small: int, words: NDArray[uint64]) -> None: ...
    def held(self) -> int: ...
    def free(self) -> None: ...
