"""The passes that decide about items: payloads of sums in, verdicts on blocks out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.engines.block_sets import NO_BLOCKS
from dp_sips.engines.spark.sums import Sums, add_up
from dp_sips.engines.spark.weighing import Signals
from dp_sips.engines.spark.wire import Labels, pack, payloads_of, unpack
from dp_sips.privacy.arrays import Blocks, Bools, Claims
from dp_sips.privacy.contributions import Decide, DecideOnEvidence
from dp_sips.privacy.weights import WHOLE_CLAIM

VERDICT_SCHEMA: Final = "kind int, bucket int, payload binary"
RELEASED, DROPPED, KEPT, COUNTS, LOWERED = range(5)
"""Kinds of payloads: blocks to release, blocks to drop, evidence to keep, numbers of items, and how
far claims of items that are kept are below the whole."""

BLOCK_SCHEMA: Final = "low long, high long"
_BATCH_SIZE: Final = 1 << 19
"""Items that are decided about at a time."""


@dataclass(frozen=True, repr=False)
class DecideItems:
    """Calls `decide` on each item's sum; a retried task gets the same verdicts.

    Sensitive: `decide` holds the secret of the round's noise.
    """

    decide: Decide

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `VERDICT_SCHEMA`."""
        for sums in _batches_of_sums(batches):
            released = self.decide(sums.blocks, sums.weights)
            yield _verdicts(sums, released, np.zeros_like(released))


@dataclass(frozen=True, repr=False)
class DecideItemsOnEvidence:
    """The same, with the evidence of earlier rounds; an item without any has evidence zero.

    Sensitive: `decide` holds the secret of the round's noise.
    """

    decide: DecideOnEvidence
    labels: Labels

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `VERDICT_SCHEMA`, with the evidence of the items that are kept."""
        for sums in _batches_of_sums(batches):
            evidence, released, claims = self.decide(sums.blocks, sums.weights, sums.evidence)
            yield _verdicts(sums, released, (claims == 0) & ~released)
            kept = np.flatnonzero((claims > 0) & ~released)
            yield _lowered(sums.blocks[kept], claims[kept])
            yield _evidence(Sums.of_evidence(sums.blocks[kept], evidence[kept]), self.labels)


def _batches_of_sums(batches: Iterable[pa.RecordBatch]) -> Iterator[Sums]:
    return add_up(payloads_of(batches)).batches(_BATCH_SIZE)


def _verdicts(sums: Sums, released: Bools, dropped: Bools) -> pa.RecordBatch:
    counts = [np.array([count], dtype=np.uint64) for count in (len(sums), dropped.sum())]
    payloads = [pack(counts), *(pack([*sums.blocks[yes].T]) for yes in (released, dropped))]
    return _rows([COUNTS, RELEASED, DROPPED], [0] * 3, payloads)


def _lowered(blocks: Blocks, claims: Claims) -> pa.RecordBatch:
    lower = np.flatnonzero(claims < WHOLE_CLAIM)
    by = WHOLE_CLAIM - claims[lower].astype(np.uint64)
    return _rows([LOWERED], [0], [pack([*blocks[lower].T, by])])


def _evidence(sums: Sums, labels: Labels) -> pa.RecordBatch:
    buckets, payloads = sums.payloads(labels)
    return _rows([KEPT] * len(payloads), buckets, payloads)


def _rows(kinds: list[int], buckets: Any, payloads: list[bytes]) -> pa.RecordBatch:
    integers = [pa.array(column, pa.int32()) for column in (kinds, buckets)]
    columns = [*integers, pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["kind", "bucket", "payload"])


@dataclass(frozen=True)
class RoundResult:
    """What the driver learns about a round.

    Attributes:
        item_count: How many items were decided about.
        dropped_count: How many of them are to be dropped.
        released: The items to release.
        dropped: The items to drop, if they were collected as well.
        lowered: How far items' claims are below the whole, where they are.
    """

    item_count: int
    dropped_count: int
    released: Blocks
    dropped: Blocks
    lowered: Signals

    def claims_of(self, blocks: Blocks) -> Claims:
        """Return the claims of items that are kept."""
        return np.asarray(WHOLE_CLAIM - self.lowered.look_up(blocks), dtype=np.uint8)

    @property
    def kept_count(self) -> int:
        """How many items stay in the users' sets."""
        return self.item_count - self.dropped_count - len(self.released)

    @classmethod
    def from_table(cls, rows: pa.Table) -> Self:
        """Read rows of `VERDICT_SCHEMA`."""
        counts = [unpack(payload) for payload in payloads_of(_of_kind(rows, COUNTS))]
        items, dropped = (sum(int(count[n][0]) for count in counts) for n in range(2))
        return cls(
            items,
            dropped,
            read_blocks(_of_kind(rows, RELEASED)),
            read_blocks(_of_kind(rows, DROPPED)),
            Signals.from_batches(_of_kind(rows, LOWERED)),
        )


def _of_kind(rows: pa.Table, kind: int) -> list[pa.RecordBatch]:
    return rows.filter(pc.equal(rows.column("kind"), kind)).to_batches()  # type: ignore[no-any-return]


def read_blocks(batches: Iterable[pa.RecordBatch]) -> Blocks:
    """Return the blocks of payloads: their first two columns."""
    parts = [np.stack(unpack(payload)[:2], axis=1) for payload in payloads_of(batches)]
    return np.concatenate([NO_BLOCKS, *parts])


def explode_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn payloads of blocks into rows of `BLOCK_SCHEMA`, for an anti-join."""
    for batch in batches:
        words = read_blocks([batch]).view(np.int64)
        columns = [pa.array(np.ascontiguousarray(column)) for column in words.T]
        yield pa.RecordBatch.from_arrays(columns, names=["low", "high"])
