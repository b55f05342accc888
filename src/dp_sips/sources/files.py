"""Data files of any kind become one feed, once their columns agree."""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.types as kinds

from dp_sips.errors import InputError
from dp_sips.sources import delimited, ipc, json_lines, parquet
from dp_sips.sources.base import Feed, Part, reading
from dp_sips.sources.columns import Columns
from dp_sips.sources.finding import find_files, kind_of
from dp_sips.sources.looks import Look
from dp_sips.sources.types import check_types, is_list

_MAY_BE_EMPTY = {"csv", "tsv", "json"}


def open_files(places: Iterable[str | os.PathLike[str]], columns: Columns, *, text: bool) -> Feed:
    """Look at every file before the first row is read."""
    looks = {path: _look(path, columns, text=text) for path in _with_content(find_files(places))}
    schema = _agreed({path: look.schema for path, look in looks.items()})
    parts = (Part(str(path), partial(look.read, schema)) for path, look in looks.items())
    counts = [look.rows for look in looks.values()]
    return Feed(
        label=_label(list(looks)),
        schema=schema,
        parts=tuple(parts),
        restore=lambda items: items,
        rows=None if None in counts else sum(count or 0 for count in counts),
    )


def _with_content(paths: list[Path]) -> list[Path]:
    """Leave out empty text files, which distributed writers make of empty partitions."""
    full = [path for path in paths if kind_of(path) not in _MAY_BE_EMPTY or not _is_empty(path)]
    if not full:
        raise InputError(f"no rows in {_label(paths)}: 0 bytes")
    return full


def _is_empty(path: Path) -> bool:
    with reading(str(path)), pa.input_stream(str(path), compression="detect") as stream:
        return not stream.read(1)


def _look(path: Path, columns: Columns, *, text: bool) -> Look:
    with reading(str(path)):
        match kind_of(path):
            case "parquet":
                look = parquet.look(path, columns)
            case "ipc":
                look = ipc.look(path, columns)
            case "json":
                look = json_lines.look(path, columns)
            case _:
                look = delimited.look(path, columns, text=text)
    check_types(look.schema, str(path), hint=look.hint)
    return look


def _agreed(schemas: dict[Path, pa.Schema]) -> pa.Schema:
    """Return the schema of all files, or name two files that differ."""
    first, *others = schemas
    agreed = {field.name: (field.type, first) for field in schemas[first]}
    for path in others:
        for field in schemas[path]:
            kind, owner = agreed[field.name]
            merged = _merged(kind, field.type)
            if merged is None:
                raise InputError(
                    f"column {field.name!r} is {kind} in {owner} but {field.type} in {path}: "
                    "cast one of them, or read CSV files with text=True (--text)"
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


def _label(paths: list[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {paths[0]} on"
