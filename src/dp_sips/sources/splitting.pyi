from collections.abc import Sequence

from numpy import int32, uint8
from numpy.typing import NDArray

def lines(text: NDArray[uint8]) -> int: ...
def is_ascii(text: NDArray[uint8]) -> bool: ...
def split(
    text: NDArray[uint8],
    delimiter: int,
    fields: int,
    wanted: Sequence[int],
    datas: Sequence[NDArray[uint8]],
    ends: Sequence[NDArray[int32]],
    valids: Sequence[NDArray[uint8]],
) -> tuple[int, int]: ...
