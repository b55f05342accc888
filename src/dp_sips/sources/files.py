"""Data files of any kind become one feed, once their columns agree."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as kinds

from dp_sips.errors import InputError
from dp_sips.sources import delimited, ipc, json_lines, parquet
from dp_sips.sources.base import Feed, Part
from dp_sips.sources.columns import Columns
from dp_sips.sources.csv_files import CsvFiles, Dialect
from dp_sips.sources.data_files import DataFile, find_data_files
from dp_sips.sources.first_bytes import explaining
from dp_sips.sources.headers import FileHeader
from dp_sips.sources.path_columns import KIND, check_alike, value_of, with_constants
from dp_sips.sources.types import is_list, typed_table
from dp_sips.sources.values import AnyKind, is_text

_MAY_BE_EMPTY = {"csv", "tsv"}
_USUAL = Dialect()


def open_files(places: Iterable[str | os.PathLike[str]], columns: Columns) -> Feed:
    """Read the header of every file before the first row."""
    files = _with_columns(find_data_files(places))
    with _explained(files, columns):
        return _feed({file: _read_header(file, columns) for file in files}, columns)


def open_csv_files(files: CsvFiles, columns: Columns) -> Feed:
    """Read files of any suffix as delimited text."""
    found = find_data_files(files.places, any_suffix=True)
    full = [file for file in found if not _is_empty(file, first_is_row=not files.header)]
    if not full and files.header:
        raise InputError(f"{_label(found)} has no header: 0 bytes")
    with _explained(full, columns):
        headers = {file: _delimited(file, columns, files) for file in full}
    return _feed(headers or {found[0]: _no_rows(columns, str(found[0]))}, columns)


@contextmanager
def _explained(files: Sequence[DataFile], columns: Columns) -> Iterator[None]:
    """If a column is missing, say so if it is in the paths of other files."""
    try:
        yield
    except InputError:
        check_alike([(str(file), file.in_path) for file in files], (columns.user, *columns.items))
        raise


def _delimited(file: DataFile, columns: Columns, dialect: Dialect) -> FileHeader:
    with explaining(file, "csv", first_is_row=not dialect.header):
        return _with_path(file, columns, delimited.read_header(file, columns, dialect))


def _no_rows(columns: Columns, label: str) -> FileHeader:
    """Return the columns that are named: a file without a header and without rows has any."""
    names = columns.pick([columns.user, *columns.items], label)
    return FileHeader(pa.schema([(name, pa.string()) for name in names]), list)


def _feed(headers: dict[DataFile, FileHeader], columns: Columns) -> Feed:
    schema = _agreed(
        [(str(file), header.schema) for file, header in headers.items()], columns.types
    )
    parts = (Part(str(file), header.read, header.schema) for file, header in headers.items())
    counts = [header.rows for header in headers.values()]
    return Feed(
        label=_label(list(headers)),
        schema=schema,
        parts=tuple(parts),
        restore=typed_table,
        rows=None if None in counts else sum(count or 0 for count in counts),
    )


def _with_columns(files: list[DataFile]) -> list[DataFile]:
    """Leave out files of 0 bytes, which distributed writers make of empty partitions."""
    full = [file for file in files if file.kind not in _MAY_BE_EMPTY or not _is_empty(file)]
    if not full:
        raise InputError(f"{_label(files)} has no header: 0 bytes")
    return full


def _is_empty(file: DataFile, *, first_is_row: bool = False) -> bool:
    with explaining(file, file.kind or "csv", first_is_row=first_is_row), file.stream() as stream:
        return not stream.read(1)


def _read_header(file: DataFile, columns: Columns) -> FileHeader:
    with explaining(file, file.kind):
        return _with_path(file, columns, _own_header(file, columns))


def _own_header(file: DataFile, columns: Columns) -> FileHeader:
    match file.kind:
        case "parquet":
            return parquet.read_header(file, columns)
        case "ipc":
            return ipc.read_header(file, columns)
        case "json":
            return json_lines.read_header(file, columns)
        case _:
            return delimited.read_header(file, columns, _USUAL)


def _with_path(file: DataFile, columns: Columns, header: FileHeader) -> FileHeader:
    """Add the needed columns that are in the file's path alone."""
    own = {field.name: field for field in header.schema}
    names = columns.pick([*own, *(name for name in file.in_path if name not in own)], str(file))
    values = {name: value_of(file.in_path[name]) for name in names if name not in own}
    if not values:
        return header
    schema = pa.schema([own.get(name, pa.field(name, KIND)) for name in names])
    return replace(
        header,
        schema=schema,
        read=lambda: (with_constants(batch, values, names) for batch in header.read()),
    )


def _agreed(
    schemas: Sequence[tuple[str, pa.Schema]], types: Mapping[str, pa.DataType]
) -> pa.Schema:
    """Return the schema of all files, or name two that differ in a type that is not declared."""
    (first, known), *others = schemas
    agreed = {field.name: (field.type, first) for field in known}
    for path, schema in others:
        for field in schema:
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
    if one == other or kinds.is_null(other) or (is_text(one) and is_text(other)):
        return one
    if kinds.is_null(one):
        return other
    if is_list(one) and is_list(other):
        merged = _merged(one.value_type, other.value_type)
        return None if merged is None else pa.list_(merged)
    return None


def _said(kind: pa.DataType) -> str:
    return "without a type" if isinstance(kind, AnyKind) else str(kind)


def _label(files: list[DataFile]) -> str:
    first = files[0].label
    return first if len(files) == 1 else f"{len(files)} files from {first} on"
