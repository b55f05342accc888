"""Columns in the paths of files, as Hive writes them: logs/day=2026-01-01/country=FR/0.parquet.

Each folder that is called name=value, anywhere on the way to a file, is a column of that file. Its
values are text unless the caller declares a type. Spark and Arrow infer types from all folders; but
whether a folder exists may depend on the rows of one user, who would then change what the values of
all others mean.

A column that the file itself has is read from the file. Where a file does not say which columns it
has (JSON lines), the path decides.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.errors import InputError

KIND: Final = pa.string()
"""The type of every column in a path."""
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_SEGMENT: Final = re.compile(r"(^|/)([^/=]+)=[^/]*(?=/)")


def raw_columns(folders: Iterable[str]) -> dict[str, str]:
    """Return each column in a path with its value as it is written there; the innermost counts."""
    pairs = (folder.partition("=") for folder in folders)
    return {unquote(name): value for name, equals, value in pairs if name and equals}


def value_of(raw: str) -> str | None:
    """Return what a value in a path means, by itself: %2F is a slash, and one word is null."""
    return None if raw == _NULL else unquote(raw, errors="strict")


def without_values(path: str) -> str:
    """Return a path for messages: a value in it is one of the data's."""
    return _SEGMENT.sub(r"\1\2=…", path)


def check_alike(paths: Sequence[tuple[str, Container[str]]], needed: Iterable[str | None]) -> None:
    """Reject files of which some have a needed column in their paths, and others do not.

    Public: the names of files, without values, and the columns in their paths.
    """
    for name in needed:
        having = next((label for label, names in paths if name in names), None)
        lacking = next((label for label, names in paths if name not in names), None)
        if having is not None and lacking is not None:
            raise InputError(
                f"column {name!r} is in the path of {having} but not in that of {lacking}: files "
                "that are read together need the same columns in their paths"
            )


def with_constants(
    batch: pa.RecordBatch, values: Mapping[str, str | None], names: Sequence[str]
) -> pa.RecordBatch:
    """Return a batch's columns, and the values of a path beside them, in the order of names."""
    columns = [
        _constant(values[name], batch.num_rows) if name in values else batch.column(name)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _constant(value: str | None, rows: int) -> pa.DictionaryArray:
    """Return one value for all rows, as a dictionary: it is then hashed once."""
    index = pa.scalar(None if value is None else 0, pa.int32())
    return pa.DictionaryArray.from_arrays(pa.repeat(index, rows), pa.array([value or ""], KIND))


@dataclass(frozen=True)
class PathColumns:
    """Makes columns of what Spark says of the path of each row, in the last columns of a batch.

    Attributes:
        inside: The names of the columns that the file has.
        paths: The names of the columns in the path.
        names: All of them, in the order that is asked for.
        unpack: Makes rows of what the file has, such as lines of JSON.
    """

    inside: tuple[str, ...]
    paths: tuple[str, ...]
    names: tuple[str, ...]
    unpack: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream the columns; rows of one path at a time, as lines need not be rows."""
        runs = (run for batch in batches for run in _runs(batch, len(self.paths)))
        for raw, group in groupby(runs, key=lambda run: run[0]):
            values = dict(zip(self.paths, map(value_of, map(unquote, raw)), strict=True))
            rows = (rows for _, rows in group)
            for batch in self.unpack(rows) if self.unpack else rows:
                own = batch if self.unpack else batch.rename_columns(list(self.inside))
                yield with_constants(own, values, self.names)


def _runs(batch: pa.RecordBatch, count: int) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
    """Yield the last columns' values, and the others' rows, of each run of equal values."""
    whole = batch.num_columns - count
    rows = batch.select(range(whole))
    ends = [pc.run_end_encode(column) for column in batch.columns[whole:]]
    start = 0
    for end in sorted({end for column in ends for end in column.run_ends.to_pylist()}):
        raw = tuple(batch.column(whole + n)[start].as_py() for n in range(count))
        yield raw, rows.slice(start, end - start)
        start = end
