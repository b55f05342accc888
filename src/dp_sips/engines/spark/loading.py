"""From rows to chunks: encode rows as pairs, shuffle pairs by user, lay out each user's items.

A task holds one run of pairs. Where its bucket has more, usually because one user has very many
items, it writes sorted runs to disk and merges them, a part of each at a time.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.memory.hashing import item_blocks, value_blocks
from dp_sips.engines.spark.chunks import read_chunks, split_into_chunks
from dp_sips.engines.spark.pairs import (
    USER,
    Pairs,
    count_before,
    count_pairs,
    make_pairs,
    pack_pairs,
    places_within_users,
    rank_pairs,
    sort_distinct,
    unpack_pairs,
)
from dp_sips.engines.spark.reading import PartitionReader
from dp_sips.engines.spark.wire import Labels, WorkerKey, buckets_of, payloads_of, shuffle_rows

PAIR_SCHEMA: Final = "user long, tag long, low long, high long"
_PAIR_COLUMNS: Final = ("user", "tag", "low", "high")

RUN_SIZE: Final = 1 << 21
"""Pairs that a task holds at a time after the shuffle: 80 MB."""

_BATCH_SIZE: Final = 1 << 20
"""Pairs that a task sorts and splits into buckets at a time, before the shuffle."""


@dataclass(frozen=True, repr=False)
class EncodeRows:
    """The pass before the shuffle by user: rows become payloads of pairs, one for each bucket.

    `max_items` is how many items of a user are kept; None is all of them. Items of `known` are not.
    """

    reader: PartitionReader
    key: WorkerKey
    labels: Labels
    max_items: int | None
    known: BlockSet

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA`."""
        pairs = map(self._encode, self.reader.read(batches))
        held = (part for part in pairs if part.shape[1])
        return split_by_user(held, self.labels, self.max_items)

    def _encode(self, batch: pa.RecordBatch) -> Pairs:
        users, *items = batch.columns
        people = value_blocks(users, self.key.long_users)
        blocks = item_blocks(items, self.key.long_items)
        if len(self.known):
            rows = self.known.find(blocks) < 0
            people, blocks = people[rows], blocks[rows]
        return make_pairs(people, blocks, self.key)


@dataclass(frozen=True, repr=False)
class EncodePairs:
    """The same, for pairs that an anti-join has left over: rows of `PAIR_SCHEMA`."""

    key: WorkerKey
    labels: Labels

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA`."""
        return split_by_user(map(self._encode, batches), self.labels, max_items=None)

    def _encode(self, batch: pa.RecordBatch) -> Pairs:
        columns = (np.asarray(batch.column(name)).view(np.uint64) for name in _PAIR_COLUMNS)
        users, tags, *items = columns
        return rank_pairs(users, tags, np.stack(items, axis=1), self.key)


def explode_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn chunks into rows of `PAIR_SCHEMA`, for an anti-join."""
    for chunk in read_chunks(batches):
        sizes = np.diff(chunk.ends, prepend=np.uint64(0)).astype(np.int64)
        users = np.repeat(chunk.users, sizes, axis=0)
        words = np.concatenate((users, chunk.blocks[chunk.items]), axis=1).view(np.int64)
        columns = [pa.array(np.ascontiguousarray(column)) for column in words.T]
        yield pa.RecordBatch.from_arrays(columns, names=list(_PAIR_COLUMNS))


def split_by_user(
    stream: Iterable[Pairs], labels: Labels, max_items: int | None
) -> Iterator[pa.RecordBatch]:
    """Split each batch of pairs into a payload for each bucket of users."""
    held: list[Pairs] = []
    for pairs in stream:
        held.append(pairs)
        if sum(one.shape[1] for one in held) >= _BATCH_SIZE:
            yield _to_payloads(held, labels, max_items)
            held = []
    if held:
        yield _to_payloads(held, labels, max_items)


def _to_payloads(held: list[Pairs], labels: Labels, max_items: int | None) -> pa.RecordBatch:
    pairs = sort_distinct(np.concatenate(held, axis=1))
    if max_items is not None:
        pairs = pairs[:, places_within_users(pairs) < max_items]
    # A bucket is a range of users' words, and pairs are sorted by these.
    present, starts = np.unique(buckets_of(pairs[USER], len(labels)), return_index=True)
    ends = [*starts[1:], pairs.shape[1]]
    payloads = [pack_pairs(pairs[:, begin:end]) for begin, end in zip(starts, ends, strict=True)]
    return shuffle_rows(labels[present], payloads)


@dataclass(frozen=True, repr=False)
class LayOutChunks:
    """The pass after the shuffle by user: payloads of pairs become chunks."""

    key: WorkerKey
    max_items: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `CHUNK_SCHEMA`."""
        pairs = merge_runs(self._runs(payloads_of(batches)))
        if self.max_items is not None:
            pairs = _truncate(pairs, self.max_items)
        return (chunk.to_batch() for chunk in split_into_chunks(pairs))

    def _runs(self, payloads: Iterable[Any]) -> Iterator[Pairs]:
        held, size = [], 0
        for payload in payloads:
            held.append(payload)
            size += count_pairs(payload)
            if size >= RUN_SIZE:
                yield sort_distinct(unpack_pairs(held, self.key))
                held, size = [], 0
        if held:
            yield sort_distinct(unpack_pairs(held, self.key))


def _truncate(stream: Iterable[Pairs], max_items: int) -> Iterator[Pairs]:
    """Keep the first `max_items` pairs of each user; a user may continue from part to part."""
    last, seen = None, 0
    for pairs in stream:
        places = places_within_users(pairs)
        if last is not None:
            places[(pairs[:2] == last[:, None]).all(axis=0)] += seen
        last, seen = pairs[:2, -1], int(places[-1]) + 1
        yield pairs[:, places < max_items]


def merge_runs(runs: Iterable[Pairs]) -> Iterator[Pairs]:
    """Merge sorted runs into one sorted stream without repeats."""
    runs = iter(runs)
    first = list(islice(runs, 2))
    if len(first) < 2:  # noqa: PLR2004 (the usual case: nothing to merge, nothing on disk)
        yield from first
        return
    with tempfile.TemporaryDirectory(prefix="dp-sips-", dir=_scratch_folder()) as folder:
        files = []
        for number, run in enumerate(chain(first, runs)):
            files.append(Path(folder, f"{number}.npy"))
            np.save(files[-1], run)
        yield from _merge([np.load(file, mmap_mode="r") for file in files])


def _scratch_folder() -> str | None:
    """Return a folder that Spark cleans up when a worker dies; None where this is not a worker."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None


def _merge(runs: list[Pairs]) -> Iterator[Pairs]:
    """Look at a part of each run at a time, and take all pairs up to the least last one of these.

    Parts that end their run set no limit.
    """
    size = max(RUN_SIZE // len(runs), 1)
    taken = [0] * len(runs)
    while left := [n for n, run in enumerate(runs) if taken[n] < run.shape[1]]:
        parts = {n: runs[n][:, taken[n] : taken[n] + size] for n in left}
        unfinished = [n for n in left if taken[n] + parts[n].shape[1] < runs[n].shape[1]]
        if unfinished:
            limit = min((parts[n][:, -1] for n in unfinished), key=tuple)
            parts = {n: _up_to(limit, part) for n, part in parts.items()}
        yield sort_distinct(np.concatenate(list(parts.values()), axis=1))
        for n, part in parts.items():
            taken[n] += part.shape[1]


def _up_to(limit: Pairs, pairs: Pairs) -> Pairs:
    """Return the sorted, distinct pairs that come before `limit`, and `limit` if it is there."""
    end = count_before(pairs, limit)
    return pairs[:, : end + int(np.array_equal(pairs[:, end : end + 1], limit[:, None]))]
