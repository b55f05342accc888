"""A release is sorted by value: its order says nothing about the data."""

import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.engines.blocks import integer_words, is_integer_like


def sorted_items(items: pa.Table) -> pa.Table:
    """Sort by the first column, then the next; nulls come last."""
    keys = pa.table({str(i): _sortable(column) for i, column in enumerate(items.columns)})
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    return items.take(order)


def _sortable(column: pa.ChunkedArray) -> pa.Array:
    """Return values of a type that Arrow can sort, in the same order."""
    values = column.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_unsigned_integer(values.type) or not is_integer_like(values.type):
        return values
    numbers = pa.array(integer_words(values).view("int64"))
    return pc.if_else(pc.is_valid(values), numbers, pa.scalar(None, pa.int64()))
