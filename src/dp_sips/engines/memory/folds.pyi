from numpy import uint32, uint64
from numpy.typing import NDArray

class Turns:
    def __init__(
        self,
        items: NDArray[uint32],
        ends: NDArray[uint64],
        order: NDArray[uint32],
        max_items: int,
    ) -> None: ...

def pay_shares(
    turns: Turns, weights: NDArray[uint64], power: int, target: int, budget: int, shave: float
) -> None: ...
def pay_favourites(
    turns: Turns,
    weights: NDArray[uint64],
    target: int,
    counts: NDArray[uint32],
    of_items: bool,
    words: NDArray[uint64],
) -> None: ...
def keep_counted(
    users: NDArray[uint32],
    starts: NDArray[uint32],
    items: NDArray[uint32],
    last: NDArray[uint32],
    places: NDArray[uint64],
    kept: NDArray[uint32],
    counts: NDArray[uint32],
    at: int,
    lengths: NDArray[uint32],
) -> int: ...
