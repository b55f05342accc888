"""Public frequencies of items, from a file."""

from collections import Counter
from typing import Any, Final

import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources import open_source

COUNT: Final = "count"
"""The column of a histogram's file that holds the counts."""


def read_histogram(path: str, items: pa.Schema) -> dict[Any, int]:
    """Return the counts of a file's items, which has the data's item columns and `count`.

    What is text there, as all of a CSV file is, is read as what the data has.
    """
    # A table of contributions, whose "users" are the counts.
    source = open_source([path], user=COUNT, item=items.names, nulls="error", text=True)
    histogram: Counter[Any] = Counter()
    for batch in source.batches():
        fields = (pa.field(COUNT, pa.int64()), *items)
        counts, *columns = (_like(*pair, path) for pair in zip(batch.columns, fields, strict=True))
        if not pa.types.is_integer(counts.type):
            raise InputError(
                f"{path}: the column {COUNT!r} must have whole numbers, and is {counts.type}"
            )
        lists = [column.to_pylist() for column in columns]
        values = zip(*lists, strict=True) if len(lists) > 1 else lists[0]
        for item, count in zip(values, counts.to_pylist(), strict=True):
            histogram[item] += count
    return dict(histogram)


def _like(column: pa.Array, field: pa.Field, path: str) -> pa.Array:
    """Read text as values of the field's type; leave other values as they are."""
    plain, meant = (getattr(kind, "value_type", kind) for kind in (column.type, field.type))
    values = column.cast(plain)
    if plain not in (pa.string(), pa.large_string()):
        return values
    try:
        return values.cast(meant)
    except pa.ArrowException as error:
        words = "whole numbers" if field.name == COUNT else f"values like the data's ({meant})"
        raise InputError(f"{path}: the column {field.name!r} must have {words}: {error}") from error
