"""The passes that ask for verdicts: parcels of sums in, verdicts on blocks of items out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dp_sips.engines.spark.block_sets import NO_BLOCKS
from dp_sips.engines.spark.packing import pack, unpack
from dp_sips.engines.spark.sums import Sums, added
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.contributions import Decide, DecideOnEvidence

SCHEMA: Final = "kind int, bucket int, parcel binary"
RELEASED, DROPPED, KEPT, COUNTS = range(4)
"""Kinds of parcels: blocks to release, blocks to drop, evidence to keep, and numbers of items."""

BLOCKS: Final = "low long, high long"
_PIECE: Final = 1 << 19
"""Items that are judged at a time."""


@dataclass(frozen=True, repr=False)
class Judge:
    """Hands `decide` what it asks for; a retried task gets the same verdicts.

    Sensitive: `decide` holds the secret of the round's noise.
    """

    decide: Decide

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream what is released."""
        for sums in _pieces(batches):
            released = self.decide(sums.blocks, sums.weights)
            yield _verdicts(sums, released, np.zeros_like(released))


@dataclass(frozen=True, repr=False)
class JudgeEvidence:
    """The same, with what earlier rounds learnt; an item without any has evidence zero.

    Sensitive: `decide` holds the secret of the round's noise.
    """

    decide: DecideOnEvidence
    labels: NDArray[np.int32]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream what is released and dropped, and the evidence of the others."""
        for sums in _pieces(batches):
            evidence, released, dropped = self.decide(sums.blocks, sums.weights, sums.evidence)
            dropped &= ~released
            yield _verdicts(sums, released, dropped)
            kept = np.flatnonzero(~(released | dropped))
            yield _kept(Sums.of_evidence(sums.blocks[kept], evidence[kept]), self.labels)


@dataclass(frozen=True)
class Outcome:
    """What the driver learns of a round.

    Attributes:
        items: How many items were judged.
        dropped: How many of them are to drop.
        released: Those to release.
        hopeless: Those to drop, where they came along.
    """

    items: int
    dropped: int
    released: Blocks
    hopeless: Blocks

    @property
    def kept(self) -> int:
        """How many items stay in the users' sets."""
        return self.items - self.dropped - len(self.released)

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        """Read rows of `SCHEMA`."""
        counts = [unpack(parcel.as_buffer()) for parcel in _of_kind(rows, COUNTS)]
        items, dropped = (sum(int(count[n][0]) for count in counts) for n in range(2))
        released, hopeless = (blocks_of(_of_kind(rows, kind)) for kind in (RELEASED, DROPPED))
        return cls(items, dropped, released, hopeless)


def _of_kind(rows: pa.Table, kind: int) -> pa.ChunkedArray:
    return rows.filter(pc.equal(rows.column("kind"), kind)).column("parcel")


def blocks_of(parcels: Iterable[Any]) -> Blocks:
    """Return the blocks of parcels whose first two columns they are."""
    columns = [unpack(parcel.as_buffer()) for parcel in parcels]
    parts = [np.stack((low, high), axis=1) for low, high, *_ in columns]
    return np.concatenate([NO_BLOCKS, *parts])


def block_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn parcels of blocks into rows of `BLOCKS`, for a join."""
    for batch in batches:
        blocks = blocks_of(batch.column("parcel")).view(np.int64)
        columns = [pa.array(np.ascontiguousarray(column)) for column in blocks.T]
        yield pa.RecordBatch.from_arrays(columns, names=["low", "high"])


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[Sums]:
    parcels = (parcel.as_buffer() for batch in batches for parcel in batch.column("parcel"))
    return added(parcels).pieces(_PIECE)


def _verdicts(
    sums: Sums, released: NDArray[np.bool_], dropped: NDArray[np.bool_]
) -> pa.RecordBatch:
    counts = [np.array([count], dtype=np.uint64) for count in (len(sums), dropped.sum())]
    cargo = [pack(counts), *(pack([*sums.blocks[yes].T]) for yes in (released, dropped))]
    return _batch([COUNTS, RELEASED, DROPPED], np.zeros(3, np.int32), cargo)


def _kept(sums: Sums, labels: NDArray[np.int32]) -> pa.RecordBatch:
    buckets, cargo = sums.parcels(len(labels))
    return _batch([KEPT] * len(cargo), labels[buckets], cargo)


def _batch(kinds: list[int], buckets: NDArray[np.int32], cargo: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(kinds, pa.int32()), pa.array(buckets), pa.array(cargo, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["kind", "bucket", "parcel"])
