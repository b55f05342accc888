from numpy import uint32, uint64
from numpy.typing import NDArray

def scrambled(blocks: NDArray[uint64], seed: int, words: NDArray[uint64]) -> None: ...
def precedence(
    blocks: NDArray[uint64], seed: int, counts: NDArray[uint32], words: NDArray[uint64]
) -> None: ...
