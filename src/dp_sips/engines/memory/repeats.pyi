from numpy import uint32, uint64
from numpy.typing import NDArray

def drop_recent(items: NDArray[uint64], starts: NDArray[uint32], kept: NDArray[uint64]) -> int: ...

class Together:
    def held(self) -> int: ...
    def keep(
        self,
        users: NDArray[uint32],
        starts: NDArray[uint32],
        items: NDArray[uint32],
        pairs: NDArray[uint32],
        at: int,
        lengths: NDArray[uint32],
    ) -> int: ...
