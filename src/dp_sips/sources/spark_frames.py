"""Spark data frames. This module is imported only when the caller passes one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from dp_sips.errors import InputError
from dp_sips.sources import json_lines
from dp_sips.sources.base import Feed, Part, Unpack
from dp_sips.sources.columns import Columns
from dp_sips.sources.path_columns import KIND, PathColumns
from dp_sips.sources.spark_paths import path_values
from dp_sips.sources.types import typed_table

_LABEL = "the Spark data frame"
_STOPPED = (
    f"{_LABEL} cannot be read: its Spark session has been stopped; make a new session, and the "
    "frame again"
)


@dataclass(frozen=True)
class SparkFiles:
    """Files as Spark reads them: the release is an Arrow table, as it is for files elsewhere.

    `lines` says that the frame has one column, with lines of JSON.
    """

    frame: DataFrame
    label: str
    lines: bool = False


def open_frame(data: Any, columns: Columns) -> Feed:
    """Take the needed columns of a frame; a pandas-on-Spark frame is one, too."""
    # A frame of Spark Connect has any attribute that one asks for: each may be a column.
    frame = data if isinstance(data, DataFrame) else data.to_spark()
    if _is_stopped(frame.sparkSession):
        raise InputError(_STOPPED)
    needed = _needed(frame, columns, _LABEL)
    fields = [_item_field(field) for field in needed.schema.fields[1:]]

    def restore(items: pa.Table) -> DataFrame:
        # Counts may be beside the items.
        counts = [StructField(name, LongType()) for name in items.column_names[len(fields) :]]
        own = None if columns.types else StructType([*fields, *counts])
        return frame.sparkSession.createDataFrame(items, own)

    return _feed(needed, _LABEL, restore)


def _is_stopped(session: Any) -> bool:
    """Whether a session has been stopped; only one of Spark Connect says so itself."""
    if isinstance(session, SparkSession):
        return session.sparkContext._jsc is None  # noqa: SLF001
    return bool(session.is_stopped)


def open_files(files: SparkFiles, columns: Columns) -> Feed:
    """Take the needed columns of files."""
    known = () if files.lines else files.frame.columns
    needed = [name for name in (columns.user, *columns.items) if name and name not in known]
    in_paths = path_values(files.frame, needed) if needed else {}
    if files.lines:
        return _lines_feed(files, columns, in_paths)
    if in_paths:
        return _paths_feed(files, columns, in_paths)
    return _feed(_needed(files.frame, columns, files.label), files.label, typed_table)


def _lines_feed(files: SparkFiles, columns: Columns, in_paths: Mapping[str, Column]) -> Feed:
    inside = json_lines.schema_of(columns, files.label, in_paths)
    lists = json_lines.list_column(columns)
    lines = json_lines.Lines(inside, files.label, lists, columns.types)
    if not in_paths:
        return _unpacked_feed(files.label, files.frame, inside, lines)
    frame = files.frame.select("value", *in_paths.values())
    schema = _with_paths(inside, columns, in_paths, files.label)
    unpack = PathColumns((), tuple(in_paths), tuple(schema.names), lines)
    return _unpacked_feed(files.label, frame, schema, unpack)


def _paths_feed(files: SparkFiles, columns: Columns, in_paths: Mapping[str, Column]) -> Feed:
    known = files.frame.columns
    names = columns.pick([*known, *in_paths], files.label)
    inside = [name for name in names if name in known]
    own = _arrow_schema(_selected(files.frame, inside), files.label)
    schema = _with_paths(own, columns, in_paths, files.label)
    unpack = PathColumns(tuple(inside), tuple(in_paths), tuple(names))
    frame = _selected(files.frame, inside, in_paths.values())
    return _unpacked_feed(files.label, frame, schema, unpack)


def _with_paths(
    inside: pa.Schema, columns: Columns, in_paths: Iterable[str], label: str
) -> pa.Schema:
    """Return the needed columns: those that the files have, and those in their paths."""
    names = columns.pick([*inside.names, *in_paths], label)
    return pa.schema(
        [inside.field(name) if name in inside.names else (name, KIND) for name in names]
    )


def _unpacked_feed(label: str, frame: DataFrame, schema: pa.Schema, unpack: Unpack) -> Feed:
    part = Part(label, lambda: unpack(_batches(frame)))
    plain = frame.toDF(*map(str, range(len(frame.columns))))
    return Feed(label, schema, (part,), typed_table, frame=plain, unpack=unpack)


def _needed(frame: DataFrame, columns: Columns, label: str) -> DataFrame:
    return _selected(frame, columns.pick(frame.columns, label))


def _selected(frame: DataFrame, names: Sequence[str], others: Iterable[Column] = ()) -> DataFrame:
    return frame.select(*(f"`{name.replace('`', '``')}`" for name in names), *others)


def _feed(needed: DataFrame, label: str, restore: Any) -> Feed:
    schema = _arrow_schema(needed, label)
    part = Part(label, lambda: _batches(needed))
    # Spark's Arrow functions stumble over names with dots; workers take columns by position.
    plain = needed.toDF(*map(str, range(len(schema))))
    return Feed(label, schema, (part,), restore, frame=plain)


def _batches(frame: DataFrame) -> Iterable[pa.RecordBatch]:
    return frame.toArrow().to_batches()  # type: ignore[no-any-return]


def _arrow_schema(frame: DataFrame, label: str) -> pa.Schema:
    """Ask Spark itself, of no rows, which Arrow types its columns have."""
    try:
        return frame.limit(0).toArrow().schema
    except PySparkException:
        kinds = ", ".join(f"{f.name!r}: {f.dataType.simpleString()}" for f in frame.schema.fields)
        raise InputError(
            f"{label} has a column that Arrow does not know ({kinds}): cast it first"
        ) from None


def _item_field(field: StructField) -> StructField:
    """Return the type of one item; of an array column, of its elements."""
    kind = field.dataType
    return StructField(field.name, kind.elementType if isinstance(kind, ArrayType) else kind)
