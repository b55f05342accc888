"""DuckDB relations. This module is imported only when the caller passes one."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.base import Feed, Part
from dp_sips.sources.batches import ROWS
from dp_sips.sources.columns import Columns

_LABEL = "the relation"


def open_relation(relation: Any, columns: Columns) -> Feed:
    """Run the query when batches are asked for, and stream its result."""
    names = columns.pick(relation.columns, _LABEL)
    needed = relation.select(*(duckdb.ColumnExpression(name) for name in names))
    with _running():
        schema = needed.limit(0).to_arrow_table().schema
    part = Part(_LABEL, lambda: _read(needed))
    return Feed(_LABEL, schema, (part,), lambda items: _on_same_connection(relation, items))


def _read(needed: Any) -> Iterator[pa.RecordBatch]:
    with _running():
        yield from _reader(needed)


def _reader(needed: Any) -> Iterable[pa.RecordBatch]:
    # DuckDB 1 has the same method under its older name.
    name = "to_arrow_reader" if hasattr(needed, "to_arrow_reader") else "fetch_record_batch"
    batches: Iterable[pa.RecordBatch] = getattr(needed, name)(ROWS)
    return batches


def _on_same_connection(relation: Any, items: pa.Table) -> Any:  # noqa: ARG001
    """Return a relation that the caller can join with other tables of the connection.

    DuckDB finds the table by the name of the variable, and keeps it alive with the relation.
    """
    return relation.query("dp_sips_input", "SELECT * FROM items")


@contextmanager
def _running() -> Iterator[None]:
    """Turn a failed query into an `InputError`; DuckDB's own message may show values."""
    try:
        yield
    except duckdb.Error as error:
        name = type(error).__name__
        raise InputError(f"{_LABEL} cannot be read: its query failed ({name})") from error
