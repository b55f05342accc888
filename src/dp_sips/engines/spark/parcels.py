"""From rows to parcels, one for each bucket of users: Spark moves few large rows, not many."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.blocks import combine, value_blocks
from dp_sips.engines.spark.block_sets import buckets_of
from dp_sips.engines.spark.chunks import chunks_of
from dp_sips.engines.spark.pairs import (
    USER,
    Pairs,
    distinct,
    first_of_each,
    make_pairs,
    ranked,
    to_bytes,
)
from dp_sips.engines.spark.worker_key import WorkerKey
from dp_sips.privacy.noise import Blocks
from dp_sips.sources.base import Feed, Part, Source
from dp_sips.sources.spark_frames import Unpack

SCHEMA: Final = "bucket int, parcel binary"
ROWS: Final = 1 << 20
"""Rows that are sorted, rid of repeats and cut into parcels at a time."""


@dataclass(frozen=True)
class Rows:
    """How workers read a Spark partition of the input: as the memory engine reads a file.

    Attributes:
        schema: The user's column and the items', as the source has them.
        types: The types that are declared.
        unpack: Makes rows of what Spark has, such as lines of JSON; by default it has rows.
    """

    label: str
    schema: pa.Schema
    nulls: str
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    unpack: Unpack | None = None

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream users and items, lists exploded, nulls settled."""
        feed = Feed(
            self.label,
            self.schema,
            (Part(self.label, lambda: self._gathered(batches)),),
            restore=lambda items: items,
        )
        return Source(feed, self.nulls, self.types).batches()

    def _gathered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join Spark's small batches: work on each is quick, but not free."""
        held: list[pa.RecordBatch] = []
        for batch in self.unpack(batches) if self.unpack else batches:
            held.append(batch)
            if sum(one.num_rows for one in held) >= ROWS // 4:
                yield from _joined(held)
                held = []
        yield from _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Undo `packed`, for each row of Spark's."""
    for batch in batches:
        for parcel in batch.column(0):
            yield from pa.ipc.open_stream(parcel.as_buffer())


def packed(batch: pa.RecordBatch) -> bytes:
    """Return a batch as Arrow IPC bytes: Spark need not know its types."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def item_blocks(columns: list[pa.Array], key: WorkerKey) -> Blocks:
    """Return one block for each row of the item columns."""
    return combine([value_blocks(column, key.long_items) for column in columns], key.long_items)


@dataclass(frozen=True, repr=False)
class Encode:
    """The first pass: rows become pairs, sorted, rid of repeats, and cut by bucket of users."""

    rows: Rows
    key: WorkerKey
    labels: NDArray[np.int32]
    most: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream parcels of `SCHEMA`."""
        return parcels(map(self._pairs, self.rows.read(batches)), self.labels, self.most)

    def _pairs(self, batch: pa.RecordBatch) -> Pairs:
        users, *items = batch.columns
        blocks = value_blocks(users, self.key.long_users)
        return make_pairs(blocks, item_blocks(items, self.key), self.key)


@dataclass(frozen=True, repr=False)
class EncodeAgain:
    """Pairs that a join has thinned out become parcels again."""

    key: WorkerKey
    labels: NDArray[np.int32]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream parcels of `SCHEMA`."""
        return parcels(map(self._pairs, batches), self.labels)

    def _pairs(self, batch: pa.RecordBatch) -> Pairs:
        names = ("user", "tag", "low", "high")
        users, tags, *items = (np.asarray(batch.column(n)).view(np.uint64) for n in names)
        return ranked(users, tags, np.stack(items, axis=1), self.key)


PAIRS: Final = "user long, tag long, low long, high long"


def unchunked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn chunks into rows of `PAIRS`, for a join."""
    for chunk in chunks_of(batches):
        sizes = np.diff(chunk.ends, prepend=np.uint64(0)).astype(np.int64)
        users = np.repeat(chunk.users, sizes, axis=0)
        words = np.concatenate((users, chunk.blocks[chunk.items]), axis=1).view(np.int64)
        columns = [pa.array(np.ascontiguousarray(column)) for column in words.T]
        yield pa.RecordBatch.from_arrays(columns, names=["user", "tag", "low", "high"])


def parcels(
    pieces: Iterable[Pairs], labels: NDArray[np.int32], most: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Gather pairs, and cut them into one parcel a bucket, with the first `most` of each user."""
    held: list[Pairs] = []
    for piece in pieces:
        held.append(piece)
        if sum(one.shape[1] for one in held) >= ROWS:
            yield _cut(held, labels, most)
            held = []
    if held:
        yield _cut(held, labels, most)


def _cut(held: list[Pairs], labels: NDArray[np.int32], most: int | None) -> pa.RecordBatch:
    """Cut where buckets begin: a bucket is a range of users' words, and pairs are in that order."""
    pairs = distinct(np.concatenate(held, axis=1))
    if most is not None:
        pairs = first_of_each(pairs, most)
    buckets = buckets_of(pairs[USER], len(labels))
    present, starts = np.unique(buckets, return_index=True)
    ends = [*starts[1:], pairs.shape[1]]
    cargo = [to_bytes(pairs[:, a:b]) for a, b in zip(starts, ends, strict=True)]
    columns: list[Any] = [pa.array(labels[present]), pa.array(cargo, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "parcel"])
