"""The rows of a released table, of whatever kind it is.

Public: released items are.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def rows(table: Any) -> Iterator[Any]:
    """Yield the values of a table with one column, else a tuple for each row."""
    if isinstance(table, list):
        return iter(table)
    first, *others = _columns(table)
    return zip(first, *others, strict=True) if others else iter(first)


def count(table: Any) -> int:
    """Return the number of rows."""
    return len(table) if isinstance(table, list) else len(_columns(table)[0])


def is_distributed(table: Any) -> bool:
    """Whether it takes a cluster to look at it, as at a Spark table."""
    return hasattr(table, "toArrow")


def _columns(table: Any) -> list[Any]:
    if isinstance(table, Mapping):
        return list(table.values())
    import pyarrow as pa

    if is_distributed(table):
        table = table.toArrow()
    elif hasattr(table, "collect"):  # a lazy Polars frame
        table = table.collect()
    return [column.to_pylist() for column in pa.table(table).columns]
