from numpy import uint8, uint32, uint64
from numpy.typing import NDArray

class Scattered:
    count: int
    bits: int
    lists: int
    def __init__(self) -> None: ...
    def held(self) -> int: ...
    def memory(self) -> NDArray[uint8]: ...
    def add(
        self,
        users: NDArray[uint32],
        starts: NDArray[uint32],
        items: NDArray[uint32],
        last: NDArray[uint32],
        user_count: int,
    ) -> None: ...
    def add_sizes(self, part: int, sizes: NDArray[uint64]) -> None: ...
    def place(self, part: int, places: NDArray[uint64], grouped: NDArray[uint32]) -> None: ...
