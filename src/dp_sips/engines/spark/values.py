"""From the blocks of released items back to their values.

Integers and short text are in the block itself. Of what is hashed, the values are looked up in the
data once more, for the released items alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines import encoding
from dp_sips.engines.spark.block_sets import BlockSet
from dp_sips.engines.spark.parcels import Rows, item_blocks, packed
from dp_sips.engines.spark.worker_key import WorkerKey
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.blocks import INTEGER, LONGEST, NULL

_LAST_BYTE = np.uint64(56)


def split(blocks: Blocks, schema: pa.Schema) -> tuple[Blocks, Blocks]:
    """Return the blocks that hold their value, and those that do not."""
    kind = encoding.plain_type(schema.field(0).type)
    if len(schema) > 1 or pa.types.is_decimal(kind):
        return blocks[:0], blocks
    last = blocks[:, 1] >> _LAST_BYTE
    within = (last <= LONGEST) | (blocks[:, 1] == INTEGER) | (blocks[:, 1] == NULL)
    return blocks[within], blocks[~within]


def unblocked(blocks: Blocks, kind: pa.DataType) -> pa.Array:
    """Return the values that blocks hold."""
    kind = encoding.plain_type(kind)
    nulls = blocks[:, 1] == NULL
    if encoding.is_integer_like(kind):
        values = encoding.integers_from_words(np.ascontiguousarray(blocks[:, 0]), kind)
    else:
        values = _texts(blocks, np.where(nulls, 0, blocks[:, 1] >> _LAST_BYTE)).cast(kind)
    return pa.compute.if_else(pa.array(nulls), pa.scalar(None, kind), values)


def _texts(blocks: Blocks, lengths: NDArray[np.uint64]) -> pa.Array:
    letters = np.ascontiguousarray(blocks).view(np.uint8).reshape(-1, 16)
    data = letters[np.arange(16) < lengths[:, None]]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(blocks), buffers)


@dataclass(frozen=True, repr=False)
class LookUp:
    """The last pass: the values of found items, once for each batch, cut by bucket of items."""

    rows: Rows
    key: WorkerKey
    found: BlockSet
    labels: NDArray[np.int32]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream parcels of values."""
        for batch in self.rows.read(batches):
            columns = batch.columns[1:]
            blocks = item_blocks(columns, self.key)
            rows = np.flatnonzero(self.found.places(blocks) >= 0)
            if len(rows):
                yield self._parcels(columns, blocks, rows)

    def _parcels(
        self, columns: list[pa.Array], blocks: Blocks, rows: NDArray[np.int64]
    ) -> pa.RecordBatch:
        rows = rows[np.unique(blocks[rows], axis=0, return_index=True)[1]]
        places = self.labels[blocks[rows, 0] % np.uint64(len(self.labels))]
        cargo = []
        present = np.unique(places)
        for label in present:
            mine = rows[places == label]
            cargo.append(packed(_valued(columns, blocks, mine)))
        arrays = [pa.array(present), pa.array(cargo, pa.binary())]
        return pa.RecordBatch.from_arrays(arrays, names=["bucket", "parcel"])


def _valued(columns: list[pa.Array], blocks: Blocks, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Return a batch of blocks, as low and high, and of values."""
    chosen = [decoded(column.take(pa.array(rows))) for column in columns]
    words = [pa.array(np.ascontiguousarray(word)) for word in blocks[rows].T]
    names = [str(n) for n in range(len(words) + len(chosen))]
    return pa.RecordBatch.from_arrays([*words, *chosen], names=names)


def decoded(column: pa.Array) -> pa.Array:
    """Return a column without a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep the first of each value of a bucket."""
    seen: set[bytes] = set()
    for batch in batches:
        for parcel in batch.column("parcel"):
            for piece in pa.ipc.open_stream(parcel.as_buffer()):
                names = np.stack([np.asarray(piece.column(n)) for n in (0, 1)], axis=1)
                rows = [n for n, name in enumerate(names) if name.tobytes() not in seen]
                seen.update(names[n].tobytes() for n in rows)
                if rows:
                    cargo = packed(piece.take(pa.array(rows)))
                    arrays = [pa.array([0], pa.int32()), pa.array([cargo], pa.binary())]
                    yield pa.RecordBatch.from_arrays(arrays, names=["bucket", "parcel"])
