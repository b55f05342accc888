"""Spark data frames. This module is imported only when the caller passes one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from dp_sips.errors import InputError
from dp_sips.sources import json_lines
from dp_sips.sources.base import Feed, Part
from dp_sips.sources.columns import Columns
from dp_sips.sources.types import typed_table

_LABEL = "the Spark data frame"


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
    needed = _needed(frame, columns, _LABEL)
    fields = [_item_field(field) for field in needed.schema.fields[1:]]

    def restore(items: pa.Table) -> DataFrame:
        # Counts may be beside the items.
        counts = [StructField(name, LongType()) for name in items.column_names[len(fields) :]]
        own = None if columns.types else StructType([*fields, *counts])
        return frame.sparkSession.createDataFrame(items, own)

    return _feed(needed, _LABEL, restore)


def open_files(files: SparkFiles, columns: Columns) -> Feed:
    """Take the needed columns of files."""
    if files.lines:
        return _lines_feed(files, columns)
    return _feed(_needed(files.frame, columns, files.label), files.label, typed_table)


def _lines_feed(files: SparkFiles, columns: Columns) -> Feed:
    schema = json_lines.schema_of(columns, files.label)
    unpack = json_lines.Lines(schema, files.label, lists=columns.lists)
    part = Part(files.label, lambda: unpack(_batches(files.frame)))
    return Feed(files.label, schema, (part,), typed_table, frame=files.frame, unpack=unpack)


def _needed(frame: DataFrame, columns: Columns, label: str) -> DataFrame:
    names = columns.pick(frame.columns, label)
    return frame.select(*(f"`{name.replace('`', '``')}`" for name in names))


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
