"""One door for every kind of input."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from dp_sips.errors import UsageError
from dp_sips.progress import Progress
from dp_sips.sources.arrow_tables import open_stream, open_table
from dp_sips.sources.base import Feed, Source
from dp_sips.sources.columns import Columns
from dp_sips.sources.csv_files import CsvFiles
from dp_sips.sources.declared import check_casts
from dp_sips.sources.files import open_csv_files, open_files
from dp_sips.sources.python_pairs import open_columns, open_pairs
from dp_sips.sources.texts import tokenized
from dp_sips.sources.types import check_types
from dp_sips.text import TextItems

Opener = Callable[[Any, Columns], Feed]

NULL_RULES = ("error", "drop", "group")
_FOREIGN = {
    ("pyarrow", "Dataset"): "arrow_tables.open_dataset",
    ("pyarrow", "Scanner"): "arrow_tables.open_scanner",
    ("pandas", "DataFrame"): "pandas_frames.open_pandas",
    ("pandas", "TextFileReader"): "pandas_frames.reject_reader",
    ("pandas", "JsonReader"): "pandas_frames.reject_reader",
    ("pandas", "StataReader"): "pandas_frames.reject_reader",
    ("pandas", "SAS7BDATReader"): "pandas_frames.reject_reader",
    ("pandas", "XportReader"): "pandas_frames.reject_reader",
    ("pandas", "TableIterator"): "pandas_frames.reject_reader",
    ("polars", "DataFrame"): "polars_frames.open_eager",
    ("polars", "LazyFrame"): "polars_frames.open_lazy",
    ("duckdb", "DuckDBPyRelation"): "duckdb_relations.open_relation",
    ("duckdb", "DuckDBPyConnection"): "duckdb_relations.reject_connection",
    ("pyspark", "DataFrame"): "spark_frames.open_frame",
    ("dp_sips", "SparkFiles"): "spark_frames.open_files",
}
"""Who opens a class of which library: in words, as nothing is imported before it is needed."""


def open_source(
    data: Any,
    *,
    user: str | None,
    item: str | Sequence[str] | TextItems | None,
    nulls: str = "error",
    types: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Source:
    """Open paths, a table or plain Python data as a stream of users and items.

    Args:
        data: A path, glob, folder or list of these; a pandas, Polars, PyArrow or DuckDB table; an
            object with `__arrow_c_stream__`; a mapping from users to items, pairs of these, or a
            mapping from names to columns.
        user: The column that says whose a row is; `None` for plain Python data.
        item: The column, or the columns, that make an item, or the words of a column; `None` for
            plain Python data.
        nulls: "error", "drop" (leave such rows out) or "group" (a null item is an item).
        types: The types of columns by name, such as "string", "int", "date" or an Arrow type. A
            column without one has the type of its file or table; where that has none, as CSV
            (text), JSON and Python objects, each value is taken by itself.
        progress: Where to show how many texts were taken apart; nowhere by default.
    """
    if nulls not in NULL_RULES:
        raise UsageError(f"nulls must be one of {', '.join(NULL_RULES)}, got {nulls!r}")
    texts = isinstance(item, TextItems)
    names = item.column if isinstance(item, TextItems) else item
    if user is not None or names is not None:
        _refuse_names_of_pairs(data)
    columns = Columns.named(user, names, types, texts=texts, rename=_rename(data))
    feed = _open_paths(data, columns) or open_any_table(data, columns)
    if feed is None:
        feed = _open_python(data, columns)
    for part in feed.parts:
        schema = part.schema or feed.schema
        check_types(schema, columns.types, part.label)
        check_casts(schema, columns.types, part.label)
    if not isinstance(item, TextItems):
        return Source(feed, nulls, columns.types)
    return Source(tokenized(feed, columns.types, item, progress or Progress(show=False)), nulls)


def _rename(data: Any) -> str:
    """Say how columns get names that are text, where this kind of data may have others."""
    first = "name the columns as text first"
    if any(_library(base) == "pandas" for base in type(data).__mro__):
        return f"{first}, as frame.rename(columns=str)"
    return first if isinstance(data, Mapping) else ""


def _open_paths(data: Any, columns: Columns) -> Feed | None:
    if isinstance(data, (str, os.PathLike)):
        return open_files([data], columns)
    if isinstance(data, CsvFiles):
        return open_csv_files(data, columns)
    # Without column names a list of strings is a list of pairs gone wrong, not of paths.
    if columns.given and _are_paths(data):
        return open_files(data, columns)
    return None


def _are_paths(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and all(
        isinstance(entry, (str, os.PathLike)) for entry in data
    )


def _refuse_names_of_pairs(data: Any) -> None:
    """Reject names of columns, of whatever kind, for users and items that have none."""
    others = str, os.PathLike, bytes, bytearray, Mapping
    if not isinstance(data, Iterable) or isinstance(data, others):
        return
    if not _are_paths(data) and _table_opener(data) is None:
        raise UsageError(
            f"user= and item= name columns, and a {type(data).__name__} has none: leave them out "
            "(with a mapping or pairs), or pass a table, a dict of columns or a path"
        )


def open_any_table(data: Any, columns: Columns) -> Feed | None:
    """Open a table of any library; return nothing for what is not one."""
    opener = _table_opener(data)
    return None if opener is None else opener(data, columns)


def _table_opener(data: Any) -> Opener | None:
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return open_table
    opener = _foreign_opener(type(data))
    if opener is None and hasattr(data, "__arrow_c_stream__"):
        return open_stream
    return opener


def _foreign_opener(kind: type) -> Opener | None:
    """Find the opener by the names of the class and its bases.

    Not by `isinstance`, which needs the library: even pyarrow.dataset imports pandas.
    """
    for base in kind.__mro__:
        name = (_library(base), base.__name__)
        if name in _FOREIGN:
            module, function = _FOREIGN[name].split(".")
            opener: Opener = getattr(import_module(f"dp_sips.sources.{module}"), function)
            return opener
    return None


def _library(kind: type) -> str:
    return kind.__module__.split(".")[0].lstrip("_")


def _open_python(data: Any, columns: Columns) -> Feed:
    if not isinstance(data, Iterable) or isinstance(data, (bytes, bytearray)):
        raise UsageError(
            f"cannot read data of type {type(data).__name__}: pass a path, a pandas, Polars, "
            "PyArrow or DuckDB table, or a mapping from users to items"
        )
    if columns.given and isinstance(data, Mapping):
        return open_columns(data, columns)
    return open_pairs(data, columns.types)
