"""write_tokens: the words of texts as a file of users and items, to be selected from many times."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from dp_sips.errors import UsageError
from dp_sips.formats import format_of
from dp_sips.output import write_files
from dp_sips.progress import Progress
from dp_sips.room import clear_about_memory
from dp_sips.sources import Source, open_source
from dp_sips.sources.types import batch_type
from dp_sips.sources.values import ANY_KIND, texts
from dp_sips.text import TextItems


@clear_about_memory()
def write_tokens(
    data: Any,
    path: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: TextItems,
    nulls: str = "error",
    types: Mapping[str, Any] | None = None,
    overwrite: bool = True,
    progress: bool | None = None,
) -> None:
    """Write a Parquet file with one row for each word of each text; columns keep their names.

    Words are in the order of the texts, and repeated as they are there. The file is complete or
    not there at all; an existing one is replaced, and stays as it was if anything fails.

    Args:
        data: What `select_partitions` takes.
        path: The .parquet file to write.
        user: The column that says whose text it is.
        item: `dp_sips.text.words("body")` or `dp_sips.text.ngrams("body", 5)`.
        nulls: "error", "drop" such rows, or "group" null texts as a null word.
        types: The types of columns by name, as `select_partitions` takes them.
        overwrite: Whether to replace a file of that name; without, one that appears is an error.
        progress: Whether to show a progress bar on stderr; on a terminal unless told otherwise.

    Sensitive: the file holds every user's words, as the data does.
    """
    place = check_tokens_path(path)
    if not isinstance(item, TextItems):
        raise UsageError(f"item must be dp_sips.text.words(…) or ngrams(…), got {item!r}")
    if item.levels is not False:
        raise UsageError("levels are for select_partitions: leave them out")
    shown = Progress(show=progress)
    source = open_source(data, user=user, item=item, nulls=nulls, types=types, progress=shown)
    write_files({place: lambda sink: _write(source, sink)}, overwrite=overwrite)


def check_tokens_path(path: str | os.PathLike[str]) -> Path:
    """Reject paths that are not Parquet files."""
    place = Path(path)
    if format_of(place) != "parquet":
        raise UsageError(f"words are written as Parquet: name a .parquet file, not {place}")
    return place


def _write(source: Source, sink: BinaryIO) -> None:
    names = source.feed.schema.names
    types = [pa.large_string() if t == ANY_KIND else batch_type(t) for t in source.schema.types]
    schema = pa.schema(list(zip(names, types, strict=True)))
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in source.batches():
            writer.write_batch(pa.record_batch(list(_columns(source, batch, types)), schema=schema))


def _columns(source: Source, batch: pa.RecordBatch, types: list[pa.DataType]) -> Iterator[pa.Array]:
    """Yield the columns in the types of the file; users may come dictionary-encoded."""
    for column, own, kind in zip(batch.columns, source.schema, types, strict=True):
        untyped = own.type == ANY_KIND
        yield texts(column, own.name, source.feed.label) if untyped else column.cast(kind)
