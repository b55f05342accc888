"""Public frequencies of items, from a file."""

from collections import Counter
from typing import Any, Final

import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources import open_source

COUNT: Final = "count"
"""The column of a histogram's file that holds the counts."""


def read_histogram(path: str, items: list[str], *, text: bool) -> dict[Any, int]:
    """Return the counts of a file's items, which has the data's item columns and `count`."""
    # A table of contributions, whose "users" are the counts.
    source = open_source([path], user=COUNT, item=items, nulls="error", text=text)
    if not pa.types.is_integer(source.user_type):
        raise InputError(
            f"{path}: the column {COUNT!r} must have whole numbers, and is {source.user_type}"
        )
    histogram: Counter[Any] = Counter()
    for batch in source.batches():
        counts, *columns = (column.to_pylist() for column in batch.columns)
        values = zip(*columns, strict=True) if len(items) > 1 else columns[0]
        for item, count in zip(values, counts, strict=True):
            histogram[item] += count
    return dict(histogram)
