"""From Arrow's values to the blocks that items are known by (privacy/blocks.py), and back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Blocks, Bools, Words
from dp_sips.privacy.blocks import NULL, bytes_blocks, combine, integer_blocks
from dp_sips.privacy.noise import Key, Purpose, Scrambler
from dp_sips.sources import Source
from dp_sips.sources.flat import as_arrow, flat

PublicCounts = Callable[[Blocks], NDArray[np.uint32]]
"""The public frequency of each item, by its block."""


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
        blocks = bytes_blocks(*_bytes_of(values), scrambler)
    if values.null_count:
        blocks[is_null(values)] = (0, NULL)
    return blocks


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


def is_null(values: pa.Array) -> Bools:
    """Say which values are null."""
    return flat(pc.is_null(values).cast(pa.uint8())).view(np.bool_)


def integers_from_words(words: Words, kind: pa.DataType) -> pa.Array:
    """Undo `integer_words` for values of type `kind`; those of a dictionary type come decoded."""
    if pa.types.is_dictionary(kind):
        return integers_from_words(words, kind.value_type)
    if pa.types.is_boolean(kind):
        return as_arrow(words.astype(np.uint8)).cast(kind)
    signed = pa.types.is_integer(kind) and not pa.types.is_unsigned_integer(kind)
    numbers = words.view(np.int64) if signed or pa.types.is_temporal(kind) else words
    storage = np.dtype(f"{numbers.dtype.kind}{kind.bit_width // 8}")
    return as_arrow(numbers.astype(storage)).view(kind)


def as_bytes(values: pa.Array) -> pa.Array:
    """Return values, numbers aside, in a type of text or bytes with offsets."""
    if pa.types.is_decimal(values.type):
        values = values.view(pa.binary(values.type.byte_width))
    fixed = pa.types.is_fixed_size_binary(values.type)
    return values.cast(pa.large_binary()) if fixed else values


def _bytes_of(values: pa.Array) -> tuple[Any, Any, Any]:
    """Return a buffer of bytes and where in it each value starts, and how long it is."""
    values = as_bytes(values).cast(pa.large_binary())
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    buffer = values.buffers()[2]
    data = np.frombuffer(buffer or b"", dtype=np.uint8)
    data = np.concatenate((data, np.zeros(16, dtype=np.uint8)))
    lengths = np.diff(offsets)
    if values.null_count:
        lengths = np.where(is_null(values), 0, lengths)
    return data, offsets[:-1], lengths


def item_blocks(columns: Sequence[pa.Array], scrambler: Scrambler) -> Blocks:
    """Return one block for each row of the item columns."""
    return combine([value_blocks(column, scrambler) for column in columns], scrambler)


def table_blocks(items: pa.Table, key: Key) -> Blocks:
    """Return one block for each row of a table of items."""
    columns = [column.combine_chunks() for column in items.columns]
    return item_blocks(columns, key.scrambler(Purpose.LONG_ITEMS))


def public_counts(
    counts: Mapping[Any, int] | None, source: Source, key: Key
) -> PublicCounts | None:
    """Return the function from items to their public counts, 0 for the others; None without any.

    The items are values of the item column, or tuples of values where there are several columns.
    """
    if counts is None:
        return None
    histogram, schema = source.counts_as_batched(counts), source.item_schema
    rows = [item if len(schema) > 1 else (item,) for item in histogram]
    columns = zip(*rows, strict=True) if rows else [[]] * len(schema)
    scrambler = key.scrambler(Purpose.LONG_ITEMS)
    try:
        arrays = [
            pa.array(list(values), plain_type(field.type))
            for values, field in zip(columns, schema, strict=True)
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        kinds = ", ".join(f"{field.name}: {field.type}" for field in schema)
        raise UsageError(
            f"the items of the histogram must be like those of the data ({kinds}): {error}"
        ) from error
    blocks = item_blocks(arrays, scrambler)
    by_block = {
        block.tobytes(): count for block, count in zip(blocks, histogram.values(), strict=True)
    }

    def count(items: Blocks) -> NDArray[np.uint32]:
        return np.array([by_block.get(block.tobytes(), 0) for block in items], dtype=np.uint32)

    return count
