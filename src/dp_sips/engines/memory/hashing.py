"""`encoding.value_blocks`, to the bit, with compiled loops for text and bytes.

Values are taken a few thousand at a time, so that their chains stay in the cache from one
encryption to the next.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines import encoding
from dp_sips.engines.memory import texts
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.blocks import HASHED, LONGEST_CHAIN, NULL, combine
from dp_sips.privacy.noise import Scrambler
from dp_sips.sources.flat import as_arrow

_AT_A_TIME: Final = 1 << 13

_OFFSETS: Final[dict[pa.DataType, Any]] = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}


def value_blocks(values: pa.Array, scrambler: Scrambler) -> Blocks:
    """Return the block of each value of one column."""
    if pa.types.is_dictionary(values.type) or encoding.is_integer_like(values.type):
        return encoding.value_blocks(values, scrambler)
    blocks = _bytes_blocks(encoding.as_bytes(values), scrambler)
    if values.null_count:
        blocks[encoding.is_null(values)] = (0, NULL)
    return blocks


def item_blocks(columns: Sequence[pa.Array], scrambler: Scrambler) -> Blocks:
    """Return one block for each row of the item columns."""
    return combine([value_blocks(column, scrambler) for column in columns], scrambler)


def _bytes_blocks(values: pa.Array, scrambler: Scrambler) -> Blocks:
    """Return the blocks of what values are in bytes; those of nulls mean nothing."""
    blocks = np.empty((len(values), 2), dtype=np.uint64)
    data, offsets = _buffers(values)
    heads = _heads(offsets, scrambler)
    for start in range(0, len(values), _AT_A_TIME):
        stop = min(start + _AT_A_TIME, len(values))
        piece = blocks[start:stop]
        longer = _fill(piece, data, offsets[start : stop + 1], heads, scrambler)
        if len(longer):
            rest = values.slice(start, stop - start).take(as_arrow(longer))
            piece[longer] = encoding.value_blocks(rest, scrambler)
    return blocks


def _buffers(values: pa.Array) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return all bytes, and where in them each value begins and the last one ends."""
    _, ends, content = values.buffers()
    kind = _OFFSETS[values.type]
    skipped = values.offset * np.dtype(kind).itemsize
    offsets = np.frombuffer(ends, kind, len(values) + 1, skipped) if len(values) else np.zeros(1)
    return np.frombuffer(content or b"", np.uint8), offsets


def _heads(offsets: NDArray[Any], scrambler: Scrambler) -> Blocks:
    """Return how chains of each length begin: with the length itself, encrypted."""
    longest = min(LONGEST_CHAIN, int(np.diff(offsets).max(initial=0)))
    lengths = np.zeros((longest + 1, 2), dtype=np.uint64)
    lengths[:, 0] = np.arange(longest + 1)
    return scrambler(lengths)


def _fill(
    blocks: Blocks,
    data: NDArray[np.uint8],
    offsets: NDArray[Any],
    heads: Blocks,
    scrambler: Scrambler,
) -> NDArray[np.uint32]:
    """Write the blocks of values that are not too long to chain; return the rows of the others."""
    rows, longer = np.empty((2, len(blocks)), dtype=np.uint32)
    states = np.empty_like(blocks)
    left, skipped = texts.begin(data, offsets, heads, blocks, rows, states, longer)
    done = 16
    while left:
        states = scrambler(states[:left])
        left = texts.absorb(data, offsets, done, int(HASHED), blocks, rows, states)
        done += 16
    return longer[:skipped]
