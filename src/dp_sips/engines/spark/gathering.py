"""Small input in the driver's memory: rows as Spark has them, or chunks as workers laid them out.

The engines agree to the bit, so the driver may run the rounds as the memory engine does. Which it
is depends on the size of the data: operators see it in Spark's jobs, and the release is the same.
"""

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from dp_sips.engines.encoding import PublicCounts
from dp_sips.engines.memory.allocator import keep_memory, return_to_usual
from dp_sips.engines.memory.contributions import MemoryContributions
from dp_sips.engines.memory.crew import Crew
from dp_sips.engines.memory.disk import InMemory
from dp_sips.engines.memory.sets import UserSets
from dp_sips.engines.spark.chunks import Chunk, read_chunks
from dp_sips.engines.spark.numbering import number_blocks
from dp_sips.engines.spark.session import JAVA_ERRORS, known_size
from dp_sips.engines.spark.settling import user_blocks
from dp_sips.engines.spark.wire import WorkerKey
from dp_sips.privacy.arrays import Blocks, Bools
from dp_sips.privacy.noise import Key
from dp_sips.sources import Source
from dp_sips.sources.base import Part

_ROW_BYTES: Final = 64
"""What a row is taken to need: a table of few bytes may have very many rows, if they repeat."""

Decode = Callable[[Blocks], list[pa.Array]]
"""Returns the values of released items, one array a column."""


def collect_rows(source: Source, driver_bytes: int) -> Source | None:
    """Return a small Spark table with its rows in memory; None if it is not known to be small.

    Where a job fails, the cluster's own way will say why.
    """
    feed = source.feed
    if feed.frame is None or not driver_bytes or known_size(feed.frame) > driver_bytes:
        return None
    try:
        if feed.frame.count() * _ROW_BYTES > driver_bytes:
            return None
        rows: pa.Table = feed.frame.toArrow().combine_chunks()
    except JAVA_ERRORS:
        return None
    part = Part(feed.label, lambda: _unpacked(source, rows))
    return replace(source, feed=replace(feed, parts=(part,), frame=None))


def _unpacked(source: Source, rows: pa.Table) -> Iterable[pa.RecordBatch]:
    unpack = source.feed.unpack
    return unpack(rows.to_batches()) if unpack else rows.to_batches()


@dataclass(frozen=True)
class Gathered:
    """Users or items of chunks by number, in the place of a column that was read here."""

    all_blocks: Blocks
    decode: Decode

    def size(self) -> int:
        """Return how many there are."""
        return len(self.all_blocks)

    def used(self, numbers: slice) -> Bools:
        """Return that all numbers are in use."""
        return np.ones(len(self.all_blocks[numbers]), dtype=np.bool_)

    def blocks(self, numbers: Any) -> Blocks:
        """Return the block of each number."""
        found: Blocks = self.all_blocks[numbers]
        return found

    def values(self, numbers: Any) -> list[pa.Array]:
        """Return the values that belong to the numbers."""
        return self.decode(self.all_blocks[numbers])


@dataclass(frozen=True, repr=False)
class Gatherer:
    """Makes contributions in memory of chunks.

    Attributes:
        key: The run's key.
        schema: The item columns.
        public: Public counts of items.
        decode: How values of released items are found.
    """

    key: Key
    schema: pa.Schema
    public: PublicCounts | None
    decode: Decode

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> MemoryContributions | None:
        """Return the contributions of all chunks; None if there is not any."""
        chunks = list(read_chunks(batches))
        if not chunks:
            return None
        keep_memory()
        try:
            return self._gathered(chunks)
        except BaseException:
            return_to_usual()
            raise

    def _gathered(self, chunks: list[Chunk]) -> MemoryContributions:
        sets, items = _sets_of(chunks)
        words, tags = np.concatenate([chunk.users[: _whole_users(chunk)] for chunk in chunks]).T
        users = user_blocks(WorkerKey.of(self.key), words, tags)
        threads = os.cpu_count() or 1
        return MemoryContributions(
            sets,
            Gathered(users, self.decode),
            Gathered(items, self.decode),
            whole=sets,
            schema=self.schema,
            key=self.key,
            pool=Crew(threads, thread_name_prefix="dp-sips"),
            threads=threads,
            public=self.public,
            arrays=InMemory(),
            limit=sys.maxsize,
        )


def _sets_of(chunks: list[Chunk]) -> tuple[UserSets, Blocks]:
    """Return the users' sets, and the blocks of the items by number."""
    blocks, numbers = number_blocks(np.concatenate([chunk.blocks for chunk in chunks]))
    items, ends, first, size = [], [], 0, 0
    for chunk in chunks:
        items.append(numbers[first : first + len(chunk.blocks)][chunk.items])
        ends.append(chunk.ends[: _whole_users(chunk)] + np.uint64(size))
        first, size = first + len(chunk.blocks), size + len(chunk.items)
    no_counts = np.empty(0, dtype=np.uint32)
    return UserSets(np.concatenate(items), np.concatenate(ends), no_counts), blocks


def _whole_users(chunk: Chunk) -> int:
    """Return how many users end with a chunk: the next one has a user who continues."""
    return len(chunk.ends) - chunk.continues
