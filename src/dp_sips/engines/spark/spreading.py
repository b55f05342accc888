"""The passes of a round in which users are told about items: signals, then what they give."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.memory.weighing import add_split, counted, pieces
from dp_sips.engines.spark.block_sets import NO_BLOCKS, BlockSet
from dp_sips.engines.spark.chunks import Chunk, chunks_of
from dp_sips.engines.spark.packing import pack, unpack
from dp_sips.engines.spark.sums import Sums, added, to_batch
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.contributions import Signal, Split

SIGNALS: Final = "parcel binary"


@dataclass(frozen=True)
class Tell:
    """Signals of the items that have one, from sums of their weights."""

    signal: Signal

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream parcels of blocks and signals."""
        cargo = (parcel.as_buffer() for batch in batches for parcel in batch.column("parcel"))
        sums = added(cargo)
        signals = self.signal(sums.weights, sums.evidence)
        told = np.flatnonzero(signals)
        parcel = pack([*sums.blocks[told].T, signals[told].view(np.uint64)])
        yield pa.RecordBatch.from_arrays([pa.array([parcel], pa.binary())], names=["parcel"])


@dataclass(frozen=True)
class Told:
    """Items with a signal; the others have 0."""

    items: BlockSet
    signals: NDArray[np.int64]

    @classmethod
    def nothing(cls) -> Self:
        """Return no signal at all."""
        return cls(BlockSet.of(NO_BLOCKS), np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        """Read rows of `SIGNALS`."""
        columns = [unpack(parcel.as_buffer()) for parcel in rows.column("parcel")]
        low, high, signals = (
            np.concatenate([np.empty(0, np.uint64), *(column[n] for column in columns)])
            for n in range(3)
        )
        blocks = np.stack((low, high), axis=1)
        items = BlockSet.of(blocks)
        return cls(items, signals.view(np.int64)[_order(blocks, items)])

    def about(self, blocks: Blocks) -> NDArray[np.int64]:
        """Return the signals of these items."""
        places = self.items.places(blocks)
        return np.where(places >= 0, np.append(self.signals, 0)[places], 0)


@dataclass(frozen=True)
class Give:
    """What users give to each item of a chunk by `split`, in parcels of sums.

    Users' sets are cut, so that no user goes on in another chunk.
    """

    split: Split
    removed: BlockSet
    told: Told
    max_items: int
    labels: NDArray[np.int32]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream parcels of sums for chunks of one Spark partition."""
        return (to_batch(self.labels, self._sums(chunk)) for chunk in chunks_of(batches))

    def _sums(self, chunk: Chunk) -> Sums:
        assert not chunk.goes_on, "a plan with signals cuts users' sets"
        gone = self.removed.places(chunk.blocks) >= 0
        signals = self.told.about(chunk.blocks)
        sums = np.zeros(len(chunk.blocks), dtype=np.uint64)
        for piece in pieces(chunk.ends):
            items, sizes = counted(chunk.items, chunk.ends, gone, self.max_items, piece)
            add_split(self.split, items, sizes, signals, sums)
        held = np.flatnonzero(sums)
        return Sums.of_weights(chunk.blocks[held], sums[held])


def _order(blocks: Blocks, items: BlockSet) -> NDArray[np.int64]:
    """Return the rows of `blocks` in the order of the set that they make."""
    return np.argsort(items.places(blocks))
