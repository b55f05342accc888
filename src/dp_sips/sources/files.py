"""Data files of any kind become one feed, once their columns agree."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.types as kinds

from dp_sips.errors import InputError
from dp_sips.sources import delimited, ipc, json_lines, parquet
from dp_sips.sources.base import Feed, Part, reading
from dp_sips.sources.columns import Columns
from dp_sips.sources.csv_files import CsvFiles, Dialect
from dp_sips.sources.finding import find_any_files, find_files, kind_of
from dp_sips.sources.headers import FileHeader
from dp_sips.sources.types import is_list, typed_table
from dp_sips.sources.values import AnyKind

_MAY_BE_EMPTY = {"csv", "tsv"}
_USUAL = Dialect()


def open_files(places: Iterable[str | os.PathLike[str]], columns: Columns) -> Feed:
    """Read the header of every file before the first row."""
    return _feed(
        {path: _read_header(path, columns) for path in _with_columns(find_files(places))}, columns
    )


def open_csv_files(files: CsvFiles, columns: Columns) -> Feed:
    """Read files of any suffix as delimited text."""
    paths = find_any_files(files.places)
    full = [path for path in paths if not _is_empty(path)]
    if not full and files.header:
        raise InputError(f"{_label(paths)} has no header: 0 bytes")
    headers = {path: _delimited(path, columns, files) for path in full}
    return _feed(headers or {paths[0]: _no_rows(columns, str(paths[0]))}, columns)


def _delimited(path: Path, columns: Columns, dialect: Dialect) -> FileHeader:
    with reading(str(path)):
        return delimited.read_header(path, columns, dialect)


def _no_rows(columns: Columns, label: str) -> FileHeader:
    """Return the columns that are named: a file without a header and without rows has any."""
    names = columns.pick([columns.user, *columns.items], label)
    return FileHeader(pa.schema([(name, pa.string()) for name in names]), list)


def _feed(headers: dict[Path, FileHeader], columns: Columns) -> Feed:
    schema = _agreed({path: header.schema for path, header in headers.items()}, columns.types)
    parts = (Part(str(path), header.read, header.schema) for path, header in headers.items())
    counts = [header.rows for header in headers.values()]
    return Feed(
        label=_label(list(headers)),
        schema=schema,
        parts=tuple(parts),
        restore=typed_table,
        rows=None if None in counts else sum(count or 0 for count in counts),
    )


def _with_columns(paths: list[Path]) -> list[Path]:
    """Leave out files of 0 bytes, which distributed writers make of empty partitions."""
    full = [path for path in paths if kind_of(path) not in _MAY_BE_EMPTY or not _is_empty(path)]
    if not full:
        raise InputError(f"{_label(paths)} has no header: 0 bytes")
    return full


def _is_empty(path: Path) -> bool:
    with reading(str(path)), pa.input_stream(str(path), compression="detect") as stream:
        return not stream.read(1)


def _read_header(path: Path, columns: Columns) -> FileHeader:
    with reading(str(path)):
        match kind_of(path):
            case "parquet":
                return parquet.read_header(path, columns)
            case "ipc":
                return ipc.read_header(path, columns)
            case "json":
                return json_lines.read_header(path, columns)
            case _:
                return delimited.read_header(path, columns, _USUAL)


def _agreed(schemas: dict[Path, pa.Schema], types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the schema of all files, or name two that differ in a type that is not declared."""
    first, *others = schemas
    agreed = {field.name: (field.type, first) for field in schemas[first]}
    for path in others:
        for field in schemas[path]:
            kind, owner = agreed[field.name]
            merged = kind if field.name in types else _merged(kind, field.type)
            if merged is None:
                raise InputError(
                    f"column {field.name!r} is {_said(kind)} in {owner} but {_said(field.type)} in "
                    f'{path}: declare its type, as types={{{field.name!r}: "string"}} '
                    f"(--type {field.name}=string)"
                )
            agreed[field.name] = (merged, path if kinds.is_null(kind) else owner)
    return pa.schema([(name, kind) for name, (kind, _) in agreed.items()])


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type for both; no values fit every type, and text is text in any layout."""
    if one == other or kinds.is_null(other) or (_is_text(one) and _is_text(other)):
        return one
    if kinds.is_null(one):
        return other
    if is_list(one) and is_list(other):
        merged = _merged(one.value_type, other.value_type)
        return None if merged is None else pa.list_(merged)
    return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _said(kind: pa.DataType) -> str:
    return "without a type" if isinstance(kind, AnyKind) else str(kind)


def _label(paths: list[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {paths[0]} on"
