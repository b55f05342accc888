"""One 16-byte block for each value: what an item is called where its noise is drawn.

Every engine uses these blocks, so that the same item has the same noise and the same rank in
each. The last byte says how the others are to be read:

    0 … 15    that many bytes of text or binary, padded with zeros
    INTEGER   a number, a date, a time or a truth value, as 64 bits
    NULL      the null item of `nulls="group"`
    HASHED    15 bytes of a keyed hash: of longer values, decimals, and items of several columns

Distinct values have distinct blocks, but for hashes, which are 120 bits under the run's secret
key: among n items, some two agree with probability at most n²/2¹²¹.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dp_sips.privacy.noise import Blocks, Scrambler

Words = NDArray[np.uint64]

INTEGER: Final = np.uint64(0xF0 << 56)
NULL: Final = np.uint64(0xF1 << 56)
_HASHED: Final = np.uint64(0xFF << 56)
_LONGEST: Final = 15
_LONGEST_CHAIN: Final = 1024
"""Values of up to this many bytes are hashed side by side; longer ones are faster one by one."""
_KEY_BLOCKS: Final = np.array([[0, 1], [0, 2]], dtype=np.uint64)
_FIRST_BYTES: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)


def value_blocks(values: pa.Array, scrambler: Scrambler) -> Blocks:
    """Return the block of each value of one column."""
    if pa.types.is_dictionary(values.type):
        entries = value_blocks(values.dictionary, scrambler)
        # A row without a value still needs an entry to point to, and there may be none.
        entries = np.vstack((entries, np.zeros((1, 2), dtype=np.uint64)))
        blocks: Blocks = entries[flat(pc.fill_null(values.indices, 0))]
    elif is_integer_like(values.type):
        blocks = integer_blocks(integer_words(values))
    else:
        blocks = _bytes_blocks(values, scrambler)
    if values.null_count:
        blocks[_is_null(values)] = (0, NULL)
    return blocks


def combine(columns: Sequence[Blocks], scrambler: Scrambler) -> Blocks:
    """Return one block for each row of several columns of blocks; a single one stays as it is."""
    if len(columns) == 1:
        return columns[0]
    state = np.zeros_like(columns[0])
    for column in columns:
        state = scrambler(state ^ column)
    return _hashed(state)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, where a column is stored as a dictionary of them."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_integer_like(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers of at most 64 bits, decimals aside."""
    if pa.types.is_dictionary(kind):
        return is_integer_like(kind.value_type)
    return bool(
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    )


def integer_words(values: pa.Array) -> Words:
    """Return each integer-like value as 64 bits; a null as 0."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    elif not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())  # noqa: PLR2004
    if values.null_count:
        values = pc.fill_null(values, 0)
    return flat(values).astype(np.int64, copy=False).view(np.uint64)


def flat(integers: pa.Array) -> NDArray[Any]:
    """Return an Arrow array of integers without nulls as a numpy array, without a copy.

    Arrow's own to_numpy imports pandas where that is installed, which takes half a second.
    """
    kind = "i" if pa.types.is_signed_integer(integers.type) else "u"
    dtype = np.dtype(f"{kind}{integers.type.bit_width // 8}")
    if not len(integers):
        return np.empty(0, dtype)
    return np.frombuffer(
        integers.buffers()[1], dtype, len(integers), integers.offset * dtype.itemsize
    )


def _is_null(values: pa.Array) -> NDArray[np.bool_]:
    return flat(pc.is_null(values).cast(pa.uint8())).view(np.bool_)


def integers_from_words(words: Words, kind: pa.DataType) -> pa.Array:
    """Undo `integer_words` for values of type `kind`; those of a dictionary type come decoded."""
    if pa.types.is_dictionary(kind):
        return integers_from_words(words, kind.value_type)
    if pa.types.is_boolean(kind):
        return pa.array(words.astype(np.uint8)).cast(kind)
    signed = pa.types.is_integer(kind) and not pa.types.is_unsigned_integer(kind)
    numbers = words.view(np.int64) if signed or pa.types.is_temporal(kind) else words
    storage = np.dtype(f"{numbers.dtype.kind}{kind.bit_width // 8}")
    return pa.array(numbers.astype(storage)).view(kind)


def integer_blocks(words: Words) -> Blocks:
    """Return the blocks of integer-like values, given as 64 bits."""
    blocks = np.empty((len(words), 2), dtype=np.uint64)
    blocks[:, 0] = words
    blocks[:, 1] = INTEGER
    return blocks


def _bytes_blocks(values: pa.Array, scrambler: Scrambler) -> Blocks:
    data, starts, lengths = _bytes_of(values)
    blocks = _sixteen_bytes(data, starts, np.minimum(lengths, _LONGEST))
    blocks[:, 1] |= np.minimum(lengths, _LONGEST).astype(np.uint64) << np.uint64(56)
    long = np.flatnonzero(lengths > _LONGEST)
    if len(long):
        blocks[long] = _hash_bytes(data, starts[long], lengths[long], scrambler)
    return blocks


def _bytes_of(values: pa.Array) -> tuple[Any, Any, Any]:
    """Return a buffer of bytes and where in it each value starts, and how long it is."""
    if pa.types.is_decimal(values.type):
        values = values.view(pa.binary(values.type.byte_width))
    values = values.cast(pa.large_binary())
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    buffer = values.buffers()[2]
    data = np.frombuffer(buffer or b"", dtype=np.uint8)
    data = np.concatenate((data, np.zeros(16, dtype=np.uint8)))
    lengths = np.diff(offsets)
    if values.null_count:
        lengths = np.where(_is_null(values), 0, lengths)
    return data, offsets[:-1], lengths


def _sixteen_bytes(data: Any, starts: Any, lengths: Any) -> Blocks:
    """Return up to 16 bytes from each start, padded with zeros, as blocks.

    `data` must go on for 16 bytes past the last start.
    """
    eight = np.ndarray(len(data) - 7, dtype="<u8", buffer=data, strides=(1,))
    blocks = np.empty((len(starts), 2), dtype=np.uint64)
    blocks[:, 0] = eight[starts] & _FIRST_BYTES[np.minimum(lengths, 8)]
    blocks[:, 1] = eight[starts + 8] & _FIRST_BYTES[np.clip(lengths - 8, 0, 8)]
    return blocks


def _hash_bytes(data: Any, starts: Any, lengths: Any, scrambler: Scrambler) -> Blocks:
    """Hash values by a pseudo-random function: CBC-MAC for many short ones, BLAKE2b for long ones.

    Which of the two depends on a value's length alone, so a value has one hash. To anyone without
    the key, the two are independent random functions: a hash of one kind meets one of the other
    as rarely as one of its own, and the bound n²/2¹²¹ holds for all n values together.
    """
    blocks = np.empty((len(starts), 2), dtype=np.uint64)
    short = np.flatnonzero(lengths <= _LONGEST_CHAIN)
    long = np.flatnonzero(lengths > _LONGEST_CHAIN)
    if len(short):
        blocks[short] = _hash_in_step(data, starts[short], lengths[short], scrambler)
    if len(long):
        blocks[long] = _hash_singly(data, starts[long], lengths[long], scrambler)
    return _hashed(blocks)


def _hash_in_step(data: Any, starts: Any, lengths: Any, scrambler: Scrambler) -> Blocks:
    """CBC-MAC with the length in front, 16 bytes of every value at a time."""
    state = np.zeros((len(starts), 2), dtype=np.uint64)
    state[:, 0] = lengths
    state = scrambler(state)
    for done in range(0, int(lengths.max()), 16):
        rest = np.flatnonzero(lengths > done)
        piece = _sixteen_bytes(data, starts[rest] + done, lengths[rest] - done)
        state[rest] = scrambler(state[rest] ^ piece)
    return state


def _hash_singly(data: Any, starts: Any, lengths: Any, scrambler: Scrambler) -> Blocks:
    """BLAKE2b under a key of its own, one value after the other.

    The key is AES of two blocks that are no value's, and that no chain begins with: those begin
    with a length and zeros.
    """
    key = scrambler(_KEY_BLOCKS).tobytes()
    digests = (
        hashlib.blake2b(data[start : start + length], key=key, digest_size=16).digest()
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)


def _hashed(state: Blocks) -> Blocks:
    state[:, 1] |= _HASHED
    return state
