"""The input as a Spark table: how Spark reads files, and how workers read a table's partitions."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from dp_sips.engines.encoding import plain_type
from dp_sips.engines.spark.session import JAVA_ERRORS, condition, find_session
from dp_sips.engines.spark.wire import payloads_of, to_ipc
from dp_sips.errors import InputError, UsageError
from dp_sips.sources.addresses import WEB, is_remote, shown_address, split_address
from dp_sips.sources.base import Feed, Keep, Part, Source, Unpack
from dp_sips.sources.csv_files import CsvFiles, Dialect
from dp_sips.sources.finding import find_any_files, find_files, kind_of
from dp_sips.sources.path_columns import without_values
from dp_sips.sources.spark_frames import SparkFiles

_BATCH_SIZE: Final = 1 << 18
"""Rows that are read at a time."""

_CHARSETS: Final = {
    "utf-8": "UTF-8",
    "ascii": "US-ASCII",
    "iso8859-1": "ISO-8859-1",
    "utf-16": "UTF-16",
    "utf-32": "UTF-32",
}

_NO_CONNECTOR: Final = re.compile(
    r"UnsupportedFileSystemException|UNSUPPORTED_FILE_SYSTEM|"
    r"ClassNotFoundException: Class org\.apache\.hadoop\.fs\."
)
_CONNECTORS: Final = {
    "s3": "add hadoop-aws (spark.jars.packages) and write s3a://",
    "s3n": "add hadoop-aws (spark.jars.packages) and write s3a://",
    "s3a": "add hadoop-aws (spark.jars.packages)",
    "abfs": "add hadoop-azure (spark.jars.packages)",
    "abfss": "add hadoop-azure (spark.jars.packages)",
    **dict.fromkeys(WEB, "copy the files first"),
}


def are_paths(data: Any) -> bool:
    """Whether these are paths, and not a table or pairs."""
    if isinstance(data, CsvFiles):
        return True
    paths = data if isinstance(data, (list, tuple)) and data else [data]
    return all(isinstance(path, (str, os.PathLike)) for path in paths)


def read_files(data: Any, start: Callable[[], SparkSession]) -> Any:
    """Return Parquet, CSV or JSON lines as a Spark table; Arrow files as they came.

    Workers read them from their own disks or storage, not through the driver. Spark itself finds
    paths with a scheme, such as s3://.
    """
    if isinstance(data, CsvFiles):
        paths = _find_paths(data.places, find_any_files)
        return _as_spark_files(paths, lambda: _read_csv(start(), paths, data))
    paths = _find_paths(data if isinstance(data, (list, tuple)) else [data], find_files)
    kinds = {kind_of(Path(path)) for path in paths}
    if kinds == {"ipc"}:
        return data
    if len(kinds) > 1:
        listed = ", ".join(sorted(str(kind) for kind in kinds))
        raise InputError(f"Spark reads files of one kind at a time, got {listed}")
    kind = kinds.pop()
    return _as_spark_files(paths, lambda: _read(start(), kind, paths), lines=kind == "json")


def _as_spark_files(
    paths: list[str], read: Callable[[], DataFrame], *, lines: bool = False
) -> SparkFiles:
    first = shown_address(paths[0]) if is_remote(paths[0]) else without_values(paths[0])
    label = first if len(paths) == 1 else f"{len(paths)} files from {first} on"
    try:
        return SparkFiles(read(), label, lines)
    except JAVA_ERRORS as error:
        raise InputError(f"{label} cannot be read: {_why(error, paths[0])}") from None


def _why(error: Exception, address: str) -> str:
    """Name what happened, or what this Spark lacks to read such addresses."""
    if not is_remote(address) or not _NO_CONNECTOR.search(str(error)):
        return condition(error)
    scheme, *_ = split_address(address)
    fix = _CONNECTORS.get(scheme, "add one (spark.jars.packages)")
    return f"this Spark has no connector for {scheme}://: {fix}, or leave out engine='spark'"


def _find_paths(
    paths: Sequence[str | os.PathLike[str]],
    find: Callable[[list[str | os.PathLike[str]]], list[Path]],
) -> list[str]:
    remote = [str(path) for path in paths if is_remote(path)]
    local = [path for path in paths if not is_remote(path)]
    return remote + ([str(path.absolute()) for path in find(local)] if local else [])


def _read(spark: SparkSession, kind: str | None, paths: list[str]) -> DataFrame:
    """Read by the rules of the memory engine: CSV is text, and an empty field of it is null.

    Of JSON, Spark would infer types from all rows: workers read its lines as other engines do. Of
    columns in paths, it would infer them from all paths: a recursive look-up leaves them alone.
    """
    if kind == "json":
        return spark.read.text(paths, lineSep="\n", recursiveFileLookup=True)
    if kind in ("csv", "tsv"):
        return _read_csv(spark, paths, Dialect(delimiter="\t" if kind == "tsv" else ","))
    return spark.read.parquet(*paths, recursiveFileLookup=True)


def _charset(dialect: Dialect) -> str:
    """Return Spark's name of the encoding; it knows a few."""
    if dialect.codec not in _CHARSETS:
        raise UsageError(
            f"Spark reads CSV in {', '.join(_CHARSETS)}, got the encoding {dialect.encoding!r}: "
            "choose engine='memory', or convert it first"
        )
    return _CHARSETS[dialect.codec]


def _read_csv(spark: SparkSession, paths: list[str], dialect: Dialect) -> DataFrame:
    frame = spark.read.csv(
        paths,
        sep=dialect.separator(Path(paths[0])),
        header=dialect.header,
        encoding=_charset(dialect),
        enforceSchema=False,  # otherwise Spark applies the first file's header to all of them
        mode="FAILFAST",
        multiLine=True,
        escape='"',
        recursiveFileLookup=True,
    )
    return frame if dialect.header else frame.toDF(*dialect.names(len(frame.columns)))


@dataclass(frozen=True)
class PartitionReader:
    """How workers read a Spark partition of the input: as the memory engine reads a file.

    Attributes:
        label: The input's name in messages.
        schema: The user's column and the items', as the source has them.
        nulls: How nulls are treated.
        types: The types that the caller declared.
        unpack: Makes rows of what Spark has, such as lines of JSON; without it, Spark has rows.
        keep: Leaves out rows that do not count.
    """

    label: str
    schema: pa.Schema
    nulls: str
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    unpack: Unpack | None = None
    keep: Keep | None = None

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream users and items, with lists exploded and nulls treated as the caller asked."""
        feed = Feed(
            self.label,
            self.schema,
            (Part(self.label, lambda: self._larger(batches)),),
            restore=lambda items: items,
        )
        return Source(feed, self.nulls, self.types, self.keep).batches()

    def _larger(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Concatenate Spark's small batches, as each batch has a fixed cost."""
        held: list[pa.RecordBatch] = []
        for batch in self.unpack(batches) if self.unpack else batches:
            held.append(batch)
            if sum(one.num_rows for one in held) >= _BATCH_SIZE:
                yield from _concatenate(held)
                held = []
        yield from _concatenate(held)


def without_users(frame: DataFrame, reader: PartitionReader) -> tuple[DataFrame, PartitionReader]:
    """Return the same items, where Spark has rows: with one user for all, less is moved."""
    if reader.unpack is not None:
        return frame, reader
    first, *items = frame.columns
    nobody = reader.schema.set(0, pa.field("", pa.int64()))
    columns = [lit(0).cast("long").alias(first), *(frame[name] for name in items)]
    return frame.select(*columns), replace(reader, schema=nobody)


def _concatenate(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []


def _unpack_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for payload in payloads_of(batches):
        yield from pa.ipc.open_stream(payload)


def read_source(source: Source, master: str | None) -> tuple[DataFrame, PartitionReader]:
    """Return the source as a Spark table, and how workers read it."""
    feed = source.feed
    if feed.frame is not None:
        reader = PartitionReader(
            feed.label, feed.schema, source.nulls, source.types, feed.unpack, source.keep
        )
        return feed.frame, reader
    spark = find_session(master)
    # Spark lacks some of Arrow's types, so batches travel as payloads. Their dictionaries are
    # decoded, as those of several batches may not fit together.
    rows = [[without_dictionary(column) for column in batch.columns] for batch in source.batches()]
    kinds = [plain_type(kind) for kind in (source.user_type, *source.item_schema.types)]
    schema = pa.schema([(str(n), kind) for n, kind in enumerate(kinds)])
    payloads = [to_ipc(pa.RecordBatch.from_arrays(columns, schema=schema)) for columns in rows]
    table = pa.table({"payload": pa.array(payloads, pa.binary())})
    frame = spark.createDataFrame(table, "payload binary")
    return frame, PartitionReader(feed.label, schema, source.nulls, unpack=_unpack_rows)


def without_dictionary(column: pa.Array) -> pa.Array:
    """Return a column with its values in place of a dictionary's codes."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
