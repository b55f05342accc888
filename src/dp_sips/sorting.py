"""A release is sorted by value: its order says nothing about the data."""

import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.engines.encoding import integer_words, is_integer_like
from dp_sips.sources.flat import as_arrow


def sorted_items(items: pa.Table, schema: pa.Schema) -> pa.Table:
    """Sort by the first column, then the next; nulls come last. The columns get their own types.

    Guarantee: the result is a function of the set of items. That holds for the dictionaries of
    dictionary columns too: they are made anew of what is released, in sorted order.
    """
    keys = pa.table({str(i): _sortable(column) for i, column in enumerate(items.columns)})
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    columns = [
        _typed(column.take(order), kind)
        for column, kind in zip(items.columns, schema.types, strict=True)
    ]
    return pa.table(columns, names=schema.names)


def _sortable(column: pa.ChunkedArray) -> pa.Array:
    """Return values of a type that Arrow can sort, in the same order."""
    values = column.combine_chunks()
    if pa.types.is_unsigned_integer(values.type) or not is_integer_like(values.type):
        return values
    numbers = as_arrow(integer_words(values).view("int64"))
    if not values.null_count:
        return numbers
    return pc.if_else(pc.is_valid(values), numbers, pa.scalar(None, pa.int64()))


def _typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    values = column.combine_chunks()
    if not pa.types.is_dictionary(kind):
        return values
    # Not in the order of the rows, which the columns before this one decide.
    entries = values.unique().drop_null()
    entries = entries.take(pc.sort_indices(_sortable(pa.chunked_array([entries]))))
    indices = pc.index_in(values, entries)
    # Batches with small dictionaries of their own can hold more values than one such index.
    if len(entries) <= 1 << (kind.index_type.bit_width - 1):
        indices = indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, entries, ordered=kind.ordered)
