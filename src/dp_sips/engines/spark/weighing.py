"""The passes over chunks: a round's weights, and what is left of a chunk when items are gone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.memory import kernels
from dp_sips.engines.spark.block_sets import BlockSet
from dp_sips.engines.spark.chunks import Chunk, chunks_of
from dp_sips.engines.spark.sums import Sums, to_batch
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.weights import weight, weight_table


@dataclass(frozen=True)
class Weigh:
    """One round's pass: the sum of weights for each item of a chunk, in parcels."""

    removed: BlockSet
    max_items: int
    step_bits: int
    labels: NDArray[np.int32]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream parcels of sums for chunks of one Spark partition."""
        return (to_batch(self.labels, sums) for sums in self._sums(chunks_of(batches)))

    def _sums(self, chunks: Iterable[Chunk]) -> Iterator[Sums]:
        open_user: Blocks | None = None
        for chunk in chunks:
            removed = np.zeros(len(chunk.blocks), dtype=np.bool_)
            removed[_places(chunk, self.removed)] = True
            first, stop = 0, len(chunk.ends)
            if open_user is not None:
                open_user = self._more(open_user, chunk, 0, removed)
                first = 1
                if stop > 1 or not chunk.goes_on:
                    yield self._sums_of_one(open_user)
                    open_user = None
            if chunk.goes_on and first < stop:
                stop -= 1
                open_user = self._more(np.empty((0, 2), np.uint64), chunk, stop, removed)
            weights = np.zeros(len(chunk.blocks), dtype=np.uint64)
            bits = np.packbits(removed, bitorder="little")
            table = weight_table(min(self.max_items, chunk.longest), self.step_bits)
            kernels.add_weights(chunk.items, chunk.ends, bits, table, weights, first, stop)
            held = np.flatnonzero(weights)
            yield Sums.of_weights(chunk.blocks[held], weights[held])

    def _sums_of_one(self, counted: Blocks) -> Sums:
        """Return what one user gives to the items that count."""
        weights = np.full(len(counted), weight(max(1, len(counted)), self.step_bits), np.uint64)
        return Sums.of_weights(counted, weights)

    def _more(self, counted: Blocks, chunk: Chunk, user: int, removed: NDArray[np.bool_]) -> Blocks:
        """Add to the items that count of a user that a border of chunks cuts in two."""
        begin = int(chunk.ends[user - 1]) if user else 0
        items = chunk.items[begin : int(chunk.ends[user])]
        active = items[~removed[items]][: self.max_items - len(counted)]
        return np.concatenate((counted, chunk.blocks[active]))


@dataclass(frozen=True)
class KeepOnly:
    """Chunks of the items that are left."""

    left: BlockSet

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream chunks for chunks."""
        for chunk in chunks_of(batches):
            removed = np.ones(len(chunk.blocks), dtype=np.bool_)
            removed[_places(chunk, self.left)] = False
            yield chunk.without(removed).to_batch()


def _places(chunk: Chunk, items: BlockSet) -> NDArray[np.int64]:
    """Return which of a chunk's items are in a set; the lesser is looked up in the greater."""
    if len(items) < len(chunk.blocks):
        places = BlockSet(chunk.blocks).places(items.blocks)
        return places[places >= 0]
    return np.flatnonzero(items.places(chunk.blocks) >= 0)
