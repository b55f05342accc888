"""DuckDB relations. This module is imported only when the caller passes one."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import duckdb
import pyarrow as pa

from dp_sips.errors import InputError, UsageError
from dp_sips.sources.base import Feed, Part
from dp_sips.sources.batches import ROWS
from dp_sips.sources.columns import Columns

_LABEL = "the relation"
_CLOSED = (
    f"{_LABEL} cannot be read: its connection is closed; keep that open until the items are "
    "selected, or pass relation.to_arrow_table(), made before it is closed"
)
_NO_TABLES = (
    f"{_LABEL} is of a connection that takes no Arrow table with its item columns in, as one with "
    "python_enable_replacements=false: pass relation.to_arrow_table()"
)


def open_relation(relation: Any, columns: Columns) -> Feed:
    """Run the query when batches are asked for, and stream its result."""
    with _running():
        names = columns.pick(relation.columns, _LABEL)
        needed = relation.select(*(duckdb.ColumnExpression(name) for name in names))
        schema = needed.limit(0).to_arrow_table().schema
    _on_same_connection(relation, schema.empty_table().drop_columns(names[0]))  # or say so now
    part = Part(_LABEL, lambda: _read(needed))
    return Feed(_LABEL, schema, (part,), lambda items: _on_same_connection(relation, items))


def reject_connection(connection: Any, columns: Columns) -> NoReturn:
    """Ask for one of its tables."""
    del connection, columns
    raise UsageError(
        "a DuckDB connection has many tables: pass one, as connection.table('visits') or "
        "connection.sql('SELECT …')"
    )


def read_relation(relation: Any) -> pa.Table:
    """Run the query, and return its whole result."""
    with _running():
        return relation.to_arrow_table()


def _read(needed: Any) -> Iterator[pa.RecordBatch]:
    with _running():
        yield from _reader(needed)


def _reader(needed: Any) -> Iterable[pa.RecordBatch]:
    # DuckDB 1 has the same method under its older name.
    name = "to_arrow_reader" if hasattr(needed, "to_arrow_reader") else "fetch_record_batch"
    batches: Iterable[pa.RecordBatch] = getattr(needed, name)(ROWS)
    return batches


def _on_same_connection(relation: Any, items: pa.Table) -> Any:
    """Return a relation that the caller can join with other tables of the connection.

    DuckDB finds the table by the name of a variable, unless the database has a table of that name:
    so it is a name that nobody has. The relation keeps the table alive.
    """
    name = f"dp_sips_{time.time_ns():x}_{id(items):x}"
    globals()[name] = items
    try:
        released = relation.query(f"{name}_input", f"FROM {name}")
        # DuckDB 1 leaves a view of the input behind.
        relation.query(f"{name}_input", f"DROP VIEW IF EXISTS {name}_input")
    except duckdb.Error as error:
        raise InputError(_CLOSED if _is_closed(error) else _NO_TABLES) from None
    finally:
        del globals()[name]
    if released.columns != items.column_names:
        raise InputError(_NO_TABLES)
    return released


@contextmanager
def _running() -> Iterator[None]:
    """Turn a failed query into an `InputError`; DuckDB's own message may show values."""
    try:
        yield
    except duckdb.Error as error:
        if _is_closed(error):
            raise InputError(_CLOSED) from None
        name = type(error).__name__
        raise InputError(
            f"{_LABEL} cannot be read: its query failed ({name}); run "
            ".to_arrow_table() on it to see why"
        ) from None


def _is_closed(error: duckdb.Error) -> bool:
    """Whether the connection is closed; others cannot be opened, and say so in the same class."""
    return isinstance(error, duckdb.ConnectionException) and "closed" in str(error)
