"""How many users count for each key: one more pass over the data, shuffled by user, then by key."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.memory.hashing import item_blocks, value_blocks
from dp_sips.engines.memory.weighing import counted
from dp_sips.engines.spark.chunks import Chunk, read_chunks
from dp_sips.engines.spark.loading import split_by_user
from dp_sips.engines.spark.pairs import Pairs, make_pairs
from dp_sips.engines.spark.reading import PartitionReader
from dp_sips.engines.spark.sums import Sums
from dp_sips.engines.spark.wire import Labels, WorkerKey
from dp_sips.privacy.arrays import Blocks, Floats, Integers, Weights
from dp_sips.privacy.blocks import NULL

NO_KEY: Final[Blocks] = np.array([[0, NULL]], dtype=np.uint64)
"""What stands for all items that are not keys, where users who hold none are counted: there, null
is not an item."""


@dataclass(frozen=True, repr=False)
class EncodeKeys:
    """The pass before the shuffle by user: pairs of users and keys, as payloads.

    `max_items` is how many keys of a user are kept. With `others`, `NO_KEY` is one of them for
    users who have other items.
    """

    reader: PartitionReader
    key: WorkerKey
    labels: Labels
    keys: BlockSet
    max_items: int
    others: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA`."""
        pairs = map(self._encode, self.reader.read(batches))
        held = (part for part in pairs if part.shape[1])
        return split_by_user(held, self.labels, self.max_items)

    def _encode(self, batch: pa.RecordBatch) -> Pairs:
        users, *columns = batch.columns
        items = item_blocks(columns, self.key.long_items)
        rows = is_key = self.keys.find(items) >= 0
        if self.others:
            items[~is_key] = NO_KEY
            rows = np.ones_like(is_key)
        people = value_blocks(users, self.key.long_users)
        return make_pairs(people[rows], items[rows], self.key)


@dataclass(frozen=True)
class CountChunks:
    """The pass over chunks of keys: how many users count for each, and hold `NO_KEY` alone."""

    max_items: int
    others: bool
    labels: Labels

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA`."""
        return (self._sums(chunk).to_batch(self.labels) for chunk in read_chunks(batches))

    def _sums(self, chunk: Chunk) -> Sums:
        assert not chunk.continues, "users' keys have been cut"
        other = (chunk.blocks == NO_KEY).all(axis=1) & self.others
        people = (0, len(chunk.ends))
        items, sizes = counted(chunk.items, chunk.ends, other, self.max_items, people)
        sums = np.bincount(items, minlength=len(chunk.blocks)).astype(np.uint64)
        sums[other] = (sizes == 0).sum()
        return Sums.of_weights(chunk.blocks, sums)


def as_signal(weights: Weights, evidence: Floats) -> Integers:
    """Return the sums themselves, so that the driver is sent them."""
    del evidence
    return weights.astype(np.int64)
