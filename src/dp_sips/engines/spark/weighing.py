"""Passes over chunks: partial sums of weights, signals and spread weights, and smaller chunks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

import numpy as np
import pyarrow as pa

from dp_sips.engines.block_sets import NO_BLOCKS, BlockSet
from dp_sips.engines.memory import kernels
from dp_sips.engines.memory.weighing import add_split, counted, pieces
from dp_sips.engines.spark.chunks import Chunk, read_chunks
from dp_sips.engines.spark.min_users import Parts, given_by_claim
from dp_sips.engines.spark.sums import Sums, add_up
from dp_sips.engines.spark.wire import Labels, pack, payloads_of, unpack
from dp_sips.privacy.arrays import Blocks, Bools, Integers
from dp_sips.privacy.contributions import Measure, Signal, Split
from dp_sips.privacy.weights import HALF, WHOLE_CLAIM, weight, weight_table

SIGNAL_SCHEMA: Final = "payload binary"
TOTAL_SCHEMA: Final = "total long"


@dataclass(frozen=True)
class WeighChunks:
    """A round's pass: the sum of weights for each item of a chunk, or its `parts`."""

    removed: BlockSet
    max_items: int
    step_bits: int
    labels: Labels
    gamma: Fraction = HALF
    parts: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA` for the chunks of one Spark partition."""
        return (sums.to_batch(self.labels) for sums in self._sums(read_chunks(batches)))

    def _sums(self, chunks: Iterable[Chunk]) -> Iterator[Sums | Parts]:
        """Weigh users chunk by chunk, and a user who spans chunks with the last of these."""
        spanning: Blocks | None = None  # the items that count so far of a user who spans chunks
        for chunk in chunks:
            removed = np.zeros(len(chunk.blocks), dtype=np.bool_)
            removed[_find_common(chunk, self.removed)] = True
            first, stop = 0, len(chunk.ends)
            if spanning is not None:
                spanning = self._extend(spanning, chunk, 0, removed)
                first = 1
                if stop > 1 or not chunk.continues:
                    yield self._weigh_one(spanning)
                    spanning = None
            if chunk.continues and first < stop:
                stop -= 1
                spanning = self._extend(NO_BLOCKS, chunk, stop, removed)
            yield self._weigh(chunk, removed, first, stop)

    def _weigh(self, chunk: Chunk, removed: Bools, first: int, stop: int) -> Sums | Parts:
        """Return the sums of what some of a chunk's users give."""
        weights = np.zeros(len(chunk.blocks), dtype=np.uint64)
        bits = np.packbits(removed, bitorder="little")
        table = weight_table(min(self.max_items, chunk.longest), self.step_bits, self.gamma)
        if self.parts:
            piece = first, stop
            items, sizes = counted(chunk.items, chunk.ends, removed, self.max_items, piece)
            return Parts.of(chunk.blocks, items, np.repeat(table[sizes], sizes))
        kernels.add_weights(chunk.items, chunk.ends, bits, table, weights, first, stop)
        return Sums.of_weights(chunk.blocks, weights)

    def _weigh_one(self, items: Blocks) -> Sums | Parts:
        """Return what one user gives to the items that count."""
        each = weight(max(1, len(items)), self.step_bits, self.gamma)
        weights = np.full(len(items), each, np.uint64)
        if self.parts:
            return Parts(items, weights, np.ones_like(weights))
        return Sums.of_weights(items, weights)

    def _extend(self, items: Blocks, chunk: Chunk, user: int, removed: Bools) -> Blocks:
        """Add, to the items that count of a user, those from this chunk."""
        begin = int(chunk.ends[user - 1]) if user else 0
        more = chunk.items[begin : int(chunk.ends[user])]
        active = more[~removed[more]][: self.max_items - len(items)]
        return np.concatenate((items, chunk.blocks[active]))


@dataclass(frozen=True)
class MeasureUsers:
    """Adds up a measure of each user's set, by its size; sets must fit into a chunk."""

    measure: Measure

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `TOTAL_SCHEMA`."""
        for chunk in read_chunks(batches):
            sizes = np.diff(chunk.ends, prepend=np.uint64(0)).astype(np.int64)
            yield _total(self.measure(sizes))


@dataclass(frozen=True)
class MeasureItems:
    """Adds up a measure of each item, by the sum of its weights."""

    measure: Measure

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `TOTAL_SCHEMA`."""
        weights = add_up(payloads_of(batches)).weights
        yield _total(self.measure(weights[weights > 0]))


def _total(measured: Integers) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([int(measured.sum())])], names=["total"])


@dataclass(frozen=True)
class RetainItems:
    """The pass that makes chunks smaller, once most of their items are gone."""

    retained: BlockSet

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream a chunk for each chunk."""
        for chunk in read_chunks(batches):
            removed = np.ones(len(chunk.blocks), dtype=np.bool_)
            removed[_find_common(chunk, self.retained)] = False
            yield chunk.without(removed).to_batch()


def _find_common(chunk: Chunk, items: BlockSet) -> Integers:
    """Return the numbers of a chunk's items that are in a set, looking up the smaller side."""
    if len(items) < len(chunk.blocks):
        found = BlockSet(chunk.blocks).find(items.blocks)
        return found[found >= 0]
    return np.flatnonzero(items.find(chunk.blocks) >= 0)


@dataclass(frozen=True)
class SignalItems:
    """The pass over sums of weights that computes the items' signals; zeros are not sent."""

    signal: Signal

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SIGNAL_SCHEMA`."""
        sums = add_up(payloads_of(batches))
        signals = self.signal(sums.weights, sums.evidence)
        sent = np.flatnonzero(signals)
        payload = pack([*sums.blocks[sent].T, signals[sent].view(np.uint64)])
        yield pa.RecordBatch.from_arrays([pa.array([payload], pa.binary())], names=["payload"])


@dataclass(frozen=True)
class Signals:
    """The items that have a signal; the signal of all others is 0."""

    items: BlockSet
    values: Integers

    @classmethod
    def none(cls) -> Self:
        """Return no signals."""
        return cls(BlockSet.of(NO_BLOCKS), np.empty(0, dtype=np.int64))

    @classmethod
    def from_table(cls, rows: pa.Table) -> Self:
        """Read rows of `SIGNAL_SCHEMA`."""
        return cls.from_batches(rows.to_batches())

    @classmethod
    def from_batches(cls, batches: Iterable[pa.RecordBatch]) -> Self:
        """Read payloads of blocks and signals."""
        parts = [unpack(payload) for payload in payloads_of(batches)]
        low, high, signals = (
            np.concatenate([np.empty(0, np.uint64), *(part[n] for part in parts)]) for n in range(3)
        )
        blocks = np.stack((low, high), axis=1)
        items = BlockSet.of(blocks)
        return cls(items, signals.view(np.int64)[np.argsort(items.find(blocks))])

    def look_up(self, blocks: Blocks) -> Integers:
        """Return the signal of each of these items."""
        found = self.items.find(blocks)
        return np.where(found >= 0, np.append(self.values, 0)[found], 0)


@dataclass(frozen=True)
class WeighByClaim:
    """A round's pass where items have claims: the sum of weights for each item of a chunk.

    Users' sets have been cut to max_items, so no user spans chunks. `lowered` says how far items'
    claims are below the whole. With `parts`, contributions are not summed.
    """

    removed: BlockSet
    lowered: Signals
    step_bits: int
    labels: Labels
    parts: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA` for the chunks of one Spark partition."""
        return (self._sums(chunk).to_batch(self.labels) for chunk in read_chunks(batches))

    def _sums(self, chunk: Chunk) -> Sums | Parts:
        assert not chunk.continues, "a plan with claims cuts users' sets"
        claims = (WHOLE_CLAIM - self.lowered.look_up(chunk.blocks)).astype(np.uint8)
        claims[_find_common(chunk, self.removed)] = 0
        if self.parts:
            people = 0, len(chunk.ends)
            held = counted(chunk.items, chunk.ends, claims == 0, chunk.longest, people)
            given = given_by_claim(claims[held[0]].astype(np.int64), held[1], self.step_bits)
            return Parts.of(chunk.blocks, held[0], given)
        weights = np.zeros(len(chunk.blocks), dtype=np.uint64)
        items, ends = chunk.items.copy(), chunk.ends.copy()  # the loop moves them together
        kernels.add_claimed_weights(items, ends, claims, self.step_bits, weights, 0, 0, len(ends))
        return Sums.of_weights(chunk.blocks, weights)


@dataclass(frozen=True)
class SpreadWeights:
    """The pass in which users give weight by `split`: its sum for each item of a chunk.

    Users' sets have been cut to max_items, so no user spans chunks.
    """

    split: Split
    removed: BlockSet
    signals: Signals
    max_items: int
    labels: Labels

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA` for the chunks of one Spark partition."""
        return (self._sums(chunk).to_batch(self.labels) for chunk in read_chunks(batches))

    def _sums(self, chunk: Chunk) -> Sums:
        assert not chunk.continues, "a plan with signals cuts users' sets"
        removed = self.removed.find(chunk.blocks) >= 0
        signals = self.signals.look_up(chunk.blocks)
        sums = np.zeros(len(chunk.blocks), dtype=np.uint64)
        for piece in pieces(chunk.ends):
            items, sizes = counted(chunk.items, chunk.ends, removed, self.max_items, piece)
            add_split(self.split, items, sizes, signals, sums)
        return Sums.of_weights(chunk.blocks, sums)
