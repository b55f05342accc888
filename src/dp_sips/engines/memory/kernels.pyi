from typing import Any

from numpy import uint8, uint32, uint64
from numpy.typing import NDArray

def runs(values: NDArray[Any], starts: NDArray[uint32]) -> int: ...
def rising(users: NDArray[uint32], latest: int) -> bool: ...
def add_sizes(users: NDArray[uint32], lengths: NDArray[uint32], sizes: NDArray[uint64]) -> None: ...
def regroup(
    items: NDArray[uint32],
    users: NDArray[uint32],
    lengths: NDArray[uint32],
    places: NDArray[uint64],
    grouped: NDArray[uint32],
) -> None: ...
def drop_repeats(
    items: NDArray[uint32],
    counts: NDArray[uint32],
    ends: NDArray[uint64],
    begin: int,
    first: int,
    stop: int,
) -> int: ...
def order_items(
    items: NDArray[uint32],
    counts: NDArray[uint32],
    ends: NDArray[uint64],
    user_words: NDArray[uint64],
    item_words: NDArray[uint64],
    max_items: int,
    first: int,
    stop: int,
) -> None: ...
def cut_items(
    items: NDArray[uint32],
    ends: NDArray[uint64],
    new_ends: NDArray[uint64],
    first: int,
    stop: int,
) -> None: ...
def add_weights(
    items: NDArray[uint32],
    ends: NDArray[uint64],
    removed: NDArray[uint8],
    weight_of_count: NDArray[uint64],
    weights: NDArray[uint64],
    first: int,
    stop: int,
) -> None: ...
def add_claimed_weights(
    items: NDArray[uint32],
    ends: NDArray[uint64],
    claims: NDArray[uint8],
    step_bits: int,
    weights: NDArray[uint64],
    begin: int,
    first: int,
    stop: int,
) -> int: ...
