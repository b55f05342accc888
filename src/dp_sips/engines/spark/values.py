"""From the blocks of released items back to their values.

Blocks of integers and short text hold the value itself. The values of hashed blocks are looked up
in the data, in a second pass over it, for the released items alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines import encoding
from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.memory.hashing import item_blocks
from dp_sips.engines.spark.reading import PartitionReader, without_dictionary
from dp_sips.engines.spark.wire import Labels, WorkerKey, payloads_of, shuffle_rows, to_ipc
from dp_sips.privacy.arrays import Blocks, Integers
from dp_sips.privacy.blocks import INTEGER, LONGEST, NULL

_LAST_BYTE: Final = np.uint64(56)


def split_hashed(blocks: Blocks, schema: pa.Schema) -> tuple[Blocks, Blocks]:
    """Return the blocks that hold their values, and the hashed ones."""
    kind = encoding.plain_type(schema.field(0).type)
    if len(schema) > 1 or pa.types.is_decimal(kind):
        return blocks[:0], blocks
    last = blocks[:, 1] >> _LAST_BYTE
    plain = (last <= LONGEST) | (blocks[:, 1] == INTEGER) | (blocks[:, 1] == NULL)
    return blocks[plain], blocks[~plain]


def decode_blocks(blocks: Blocks, kind: pa.DataType) -> pa.Array:
    """Return the values that blocks hold."""
    kind = encoding.plain_type(kind)
    nulls = blocks[:, 1] == NULL
    if encoding.is_integer_like(kind):
        values = encoding.integers_from_words(np.ascontiguousarray(blocks[:, 0]), kind)
    else:
        lengths = np.where(nulls, 0, blocks[:, 1] >> _LAST_BYTE)
        values = _decode_text(blocks, lengths).cast(kind)
    return pa.compute.if_else(pa.array(nulls), pa.scalar(None, kind), values)


def _decode_text(blocks: Blocks, lengths: NDArray[np.uint64]) -> pa.Array:
    letters = np.ascontiguousarray(blocks).view(np.uint8).reshape(-1, 16)
    data = letters[np.arange(16) < lengths[:, None]]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(blocks), buffers)


@dataclass(frozen=True, repr=False)
class LookUpValues:
    """The last pass over the data: the values of hashed blocks, as payloads by bucket of items."""

    reader: PartitionReader
    key: WorkerKey
    blocks: BlockSet
    labels: Labels

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA`, with each value once a partition."""
        wanted = np.ones(len(self.blocks), dtype=np.bool_)
        for batch in self.reader.read(batches):
            columns = batch.columns[1:]
            blocks = item_blocks(columns, self.key.long_items)
            places = self.blocks.find(blocks)
            rows = np.flatnonzero(places >= 0)
            rows = rows[wanted[places[rows]]]
            if len(rows):
                found, first = np.unique(places[rows], return_index=True)
                wanted[found] = False
                yield self._payloads(columns, blocks, rows[first])

    def _payloads(self, columns: list[pa.Array], blocks: Blocks, rows: Integers) -> pa.RecordBatch:
        buckets = self.labels[blocks[rows, 0] % np.uint64(len(self.labels))]
        present = np.unique(buckets)
        parts = [_blocks_and_values(columns, blocks, rows[buckets == one]) for one in present]
        return shuffle_rows(present, list(map(to_ipc, parts)))


def _blocks_and_values(columns: list[pa.Array], blocks: Blocks, rows: Integers) -> pa.RecordBatch:
    """Return a batch of two columns for the blocks, low and high, and the columns of values."""
    values = [without_dictionary(column.take(pa.array(rows))) for column in columns]
    words = [pa.array(np.ascontiguousarray(word)) for word in blocks[rows].T]
    names = [str(n) for n in range(len(words) + len(values))]
    return pa.RecordBatch.from_arrays([*words, *values], names=names)


def drop_repeated_values(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep the first occurrence of each block in a bucket, and its value; a part has none twice."""
    seen: set[bytes] = set()
    for payload in payloads_of(batches):
        for part in pa.ipc.open_stream(payload):
            blocks = np.stack([np.asarray(part.column(n)) for n in (0, 1)], axis=1)
            keys = blocks.view("V16")[:, 0].tolist()
            rows = [n for n, key in enumerate(keys) if key not in seen]
            seen.update(keys)
            if rows:
                yield shuffle_rows([0], [to_ipc(part.take(pa.array(rows)))])


def read_values(payloads: Iterable[pa.RecordBatch], schema: pa.Schema) -> list[pa.Array]:
    """Return the columns of the values in payloads of `LookUpValues`, in the types of `schema`."""
    batches = [batch for one in payloads_of(payloads) for batch in pa.ipc.open_stream(one)]
    if not batches:
        return [pa.array([], encoding.plain_type(kind)) for kind in schema.types]
    columns = pa.Table.from_batches(batches).combine_chunks().columns[2:]
    kinds = map(encoding.plain_type, schema.types)
    return [column.combine_chunks().cast(k) for column, k in zip(columns, kinds, strict=True)]
