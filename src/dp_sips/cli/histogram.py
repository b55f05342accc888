"""Public frequencies of items, from a file."""

from collections import Counter
from typing import Any, Final

import pyarrow as pa

from dp_sips.sources import Source, open_source

COUNT: Final = "count"
"""The column of a histogram's file that holds the counts."""


def read_histogram(path: str, data: Source) -> dict[Any, int]:
    """Return the counts of a file's items, which has the data's item columns and `count`.

    Items are read as the types that they have in the data.
    """
    types = {**data.item_types, COUNT: pa.int64()}
    # A table of contributions, whose "users" are the counts.
    source = open_source([path], user=COUNT, item=data.item_schema.names, types=types)
    histogram: Counter[Any] = Counter()
    for batch in source.batches():
        counts, *columns = source.values(batch)
        values = zip(*columns, strict=True) if len(columns) > 1 else columns[0]
        for item, count in zip(values, counts, strict=True):
            histogram[item] += count
    return dict(histogram)
