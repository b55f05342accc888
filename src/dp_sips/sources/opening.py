"""One door for every kind of input."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from dp_sips.errors import UsageError
from dp_sips.sources import arrow_tables
from dp_sips.sources.base import Feed, Source
from dp_sips.sources.columns import Columns
from dp_sips.sources.files import open_files
from dp_sips.sources.python_pairs import open_pairs
from dp_sips.sources.types import check_types

NULL_RULES = ("error", "drop", "group")


def open_source(
    data: Any,
    *,
    user: str | None,
    item: str | Sequence[str] | None,
    nulls: str = "error",
    text: bool = False,
) -> Source:
    """Open paths, a table or plain Python data as a stream of users and items.

    Args:
        data: A path, glob, folder or list of these; a pandas, Polars, PyArrow or DuckDB table; an
            object with `__arrow_c_stream__`; a mapping from users to items, or pairs of these.
        user: The column that says whose a row is; `None` for plain Python data.
        item: The column, or the columns, that make an item; `None` for plain Python data.
        nulls: "error", "drop" (leave such rows out) or "group" (a null item is an item).
        text: Read all columns of CSV and TSV files as text.
    """
    if nulls not in NULL_RULES:
        raise UsageError(f"nulls must be one of {', '.join(NULL_RULES)}, got {nulls!r}")
    columns = Columns.named(user, item)
    feed = _open_paths(data, columns, text=text) or _open_table(data, columns)
    if feed is None:
        feed = _open_python(data, columns)
    check_types(feed.schema, feed.label)
    return Source(feed, nulls)


def _open_paths(data: Any, columns: Columns, *, text: bool) -> Feed | None:
    if isinstance(data, (str, os.PathLike)):
        return open_files([data], columns, text=text)
    # Without column names a list of strings is a list of pairs gone wrong, not of paths.
    if isinstance(data, (list, tuple)) and columns.given and _all_paths(data):
        return open_files(data, columns, text=text)
    return None


def _all_paths(data: Iterable[Any]) -> bool:
    return all(isinstance(entry, (str, os.PathLike)) for entry in data)


def _open_table(data: Any, columns: Columns) -> Feed | None:
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return arrow_tables.open_table(data, columns)
    if isinstance(data, pads.Dataset):
        return arrow_tables.open_dataset(data, columns)
    if isinstance(data, pads.Scanner):
        return arrow_tables.open_scanner(data, columns)
    return _open_foreign(data, columns)


def _open_foreign(data: Any, columns: Columns) -> Feed | None:
    """Open a table of another library, which is imported only because the caller has it."""
    match _library(data):
        case ("pandas", "DataFrame"):
            from dp_sips.sources.pandas_frames import open_pandas  # noqa: PLC0415

            return open_pandas(data, columns)
        case ("polars", "DataFrame"):
            from dp_sips.sources.polars_frames import open_eager  # noqa: PLC0415

            return open_eager(data, columns)
        case ("polars", "LazyFrame"):
            from dp_sips.sources.polars_frames import open_lazy  # noqa: PLC0415

            return open_lazy(data, columns)
        case ("duckdb", "DuckDBPyRelation"):
            from dp_sips.sources.duckdb_relations import open_relation  # noqa: PLC0415

            return open_relation(data, columns)
    if hasattr(data, "__arrow_c_stream__"):
        return arrow_tables.open_stream(data, columns)
    return None


def _library(data: Any) -> tuple[str, str] | None:
    """Return the library and the class that `data` is of, or inherits from."""
    for base in type(data).__mro__:
        library = base.__module__.split(".")[0].lstrip("_")
        if library in {"pandas", "polars", "duckdb"} and base.__name__ in {
            "DataFrame",
            "LazyFrame",
            "DuckDBPyRelation",
        }:
            return library, base.__name__
    return None


def _open_python(data: Any, columns: Columns) -> Feed:
    if not isinstance(data, Iterable) or isinstance(data, (bytes, bytearray)):
        raise UsageError(
            f"cannot read data of type {type(data).__name__}: pass a path, a pandas, Polars, "
            "PyArrow or DuckDB table, or a mapping from users to items"
        )
    if columns.given:
        raise UsageError(
            f"user= and item= name columns, and a {type(data).__name__} has none: leave them out "
            "(with a mapping or pairs), or pass a table or a path"
        )
    return open_pairs(data)
