"""One 16-byte block for each value: what an item is called where its noise is drawn.

Every engine uses these blocks, so that the same item has the same noise and the same rank in
each. The last byte says how the others are to be read:

    0 … 15    that many bytes of text or binary, padded with zeros
    INTEGER   a number, a date, a time or a truth value, as 64 bits
    NULL      the null item of `nulls="group"`
    HASHED    15 bytes of a keyed hash: of longer values, decimals, and items of several columns

Guarantee: distinct values have distinct blocks, except for hashes, which are 120 bits under the
run's secret key: among n items, some two agree with probability at most n²/2¹²¹.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.privacy.arrays import Blocks, Integers, Words
from dp_sips.privacy.noise import Scrambler

INTEGER: Final = np.uint64(0xF0 << 56)
NULL: Final = np.uint64(0xF1 << 56)
HASHED: Final = np.uint64(0xFF << 56)
LONGEST: Final = 15
"""Text of up to this many bytes is in the block itself."""

LONGEST_CHAIN: Final = 1024
"""Values of up to this many bytes are hashed side by side; longer ones are faster one by one."""

_KEY_BLOCKS: Final = np.array([[0, 1], [0, 2]], dtype=np.uint64)
_FIRST_BYTES: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
_POWERS_OF_TEN: Final = np.array([10**n for n in range(1, 20)], dtype=np.uint64)


def integer_blocks(words: Words) -> Blocks:
    """Return the blocks of integer-like values, given as 64 bits."""
    blocks = np.empty((len(words), 2), dtype=np.uint64)
    blocks[:, 0] = words
    blocks[:, 1] = INTEGER
    return blocks


def bytes_blocks(
    data: NDArray[np.uint8], starts: Integers, lengths: Integers, scrambler: Scrambler
) -> Blocks:
    """Return the blocks of byte strings: slices of `data`, which goes on for 16 bytes past them."""
    blocks = _sixteen_bytes(data, starts, np.minimum(lengths, LONGEST))
    blocks[:, 1] |= np.minimum(lengths, LONGEST).astype(np.uint64) << np.uint64(56)
    long = np.flatnonzero(lengths > LONGEST)
    if len(long):
        blocks[long] = _hash_bytes(data, starts[long], lengths[long], scrambler)
    return blocks


def combine(columns: Sequence[Blocks], scrambler: Scrambler) -> Blocks:
    """Return one block for each row of several columns of blocks; a single one stays as it is."""
    if len(columns) == 1:
        return columns[0]
    state = np.zeros_like(columns[0])
    for column in columns:
        state = scrambler(state ^ column)
    return _hashed(state)


def lengths(blocks: Blocks) -> Integers:
    """Return how long values are in text: of hashed ones 16, as of all that are longer than 15.

    An integer is as long as its decimal digits, so that 7 and "7" are alike; null has length 0.
    """
    tags = blocks[:, 1] >> np.uint64(56)
    found: Integers = np.minimum(tags, LONGEST + 1).astype(np.int64)
    found[tags == NULL >> np.uint64(56)] = 0
    integers = np.flatnonzero(tags == INTEGER >> np.uint64(56))
    found[integers] = _digits(blocks[integers, 0].view(np.int64))
    return found


def _digits(numbers: Integers) -> Integers:
    """Return how many characters numbers have, the minus sign included."""
    sizes = np.where(numbers < 0, -numbers, numbers).view(np.uint64)  # right for −2⁶³, too
    return np.searchsorted(_POWERS_OF_TEN, sizes, side="right") + 1 + (numbers < 0)


def _sixteen_bytes(data: NDArray[np.uint8], starts: Integers, lengths: Integers) -> Blocks:
    """Return up to 16 bytes from each start, padded with zeros, as blocks."""
    eight = np.ndarray(len(data) - 7, dtype="<u8", buffer=data, strides=(1,))
    blocks = np.empty((len(starts), 2), dtype=np.uint64)
    blocks[:, 0] = eight[starts] & _FIRST_BYTES[np.minimum(lengths, 8)]
    blocks[:, 1] = eight[starts + 8] & _FIRST_BYTES[np.clip(lengths - 8, 0, 8)]
    return blocks


def _hash_bytes(
    data: NDArray[np.uint8], starts: Integers, lengths: Integers, scrambler: Scrambler
) -> Blocks:
    """Hash values by a pseudo-random function: CBC-MAC for many short ones, BLAKE2b for long ones.

    Which of the two depends on a value's length alone, so a value has one hash. To anyone without
    the key, the two are independent random functions: a hash of one kind meets one of the other
    as rarely as one of its own, and the bound n²/2¹²¹ holds for all n values together.
    """
    blocks = np.empty((len(starts), 2), dtype=np.uint64)
    short = np.flatnonzero(lengths <= LONGEST_CHAIN)
    long = np.flatnonzero(lengths > LONGEST_CHAIN)
    if len(short):
        blocks[short] = _hash_in_step(data, starts[short], lengths[short], scrambler)
    if len(long):
        blocks[long] = _hash_singly(data, starts[long], lengths[long], scrambler)
    return _hashed(blocks)


def _hash_in_step(
    data: NDArray[np.uint8], starts: Integers, lengths: Integers, scrambler: Scrambler
) -> Blocks:
    """CBC-MAC with the length in front, 16 bytes of every value at a time."""
    state = np.zeros((len(starts), 2), dtype=np.uint64)
    state[:, 0] = lengths
    state = scrambler(state)
    for done in range(0, int(lengths.max()), 16):
        rest = np.flatnonzero(lengths > done)
        piece = _sixteen_bytes(data, starts[rest] + done, lengths[rest] - done)
        state[rest] = scrambler(state[rest] ^ piece)
    return state


def _hash_singly(
    data: NDArray[np.uint8], starts: Integers, lengths: Integers, scrambler: Scrambler
) -> Blocks:
    """BLAKE2b under a key of its own, one value after the other.

    The key is AES of two blocks that are no value's, and that no chain begins with: those begin
    with a length and zeros.
    """
    key = scrambler(_KEY_BLOCKS).tobytes()
    digests = (
        hashlib.blake2b(data[start : start + length].data, key=key, digest_size=16).digest()
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)


def _hashed(state: Blocks) -> Blocks:
    state[:, 1] |= HASHED
    return state
