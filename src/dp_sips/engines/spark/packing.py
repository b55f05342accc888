"""Columns of words as bytes: of a column whose words are all the same, one is enough."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def pack(columns: list[Words]) -> bytes:
    """Return columns of any lengths as bytes: how many, their lengths and what is sent of each."""
    sent = [column[:1] if _is_constant(column) else column for column in columns]
    head = [len(columns), *map(len, columns), *map(len, sent)]
    return b"".join([np.array(head, np.uint64).tobytes(), *(part.tobytes() for part in sent)])


def unpack(buffer: Any) -> list[Words]:
    """Undo `pack`; what can be is a view of the buffer."""
    words = np.frombuffer(buffer, np.uint64)
    count = int(words[0])
    lengths, sent = words[1 : 2 * count + 1].reshape(2, -1).astype(np.int64)
    parts = np.split(words[2 * count + 1 :], np.cumsum(sent)[:-1])
    return [
        part if len(part) == length else np.broadcast_to(part, length)
        for part, length in zip(parts, lengths.tolist(), strict=True)
    ]


def _is_constant(column: Words) -> bool:
    return len(column) > 1 and bool((column == column[0]).all())
