"""What travels between the driver and the workers, and through Spark's shuffles.

A shuffle moves a few large rows, not many small ones: a payload of packed columns for each bucket.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.privacy.arrays import Words
from dp_sips.privacy.noise import Key, Purpose, Scrambler

SHUFFLE_SCHEMA: Final = "bucket int, payload binary"

Labels = NDArray[np.int32]
"""The integer that stands for each bucket: see `bucket_labels`."""

_BOUNDING: Final = Purpose.BOUNDING_USERS, Purpose.BOUNDING_ITEMS
_HALF: Final = np.uint64(32)
_32_BITS: Final = 0xFFFFFFFF


@dataclass(frozen=True, repr=False)
class WorkerKey:
    """What workers need of the run's key to encode rows: nothing about the noise.

    Secrets of the noise go to the workers of their own round only.

    Sensitive: it travels inside pickled functions, and appears in no plan and no log.
    """

    words: dict[Purpose, int]
    long_users: Scrambler
    long_items: Scrambler

    @classmethod
    def of(cls, key: Key) -> Self:
        """Derive the secrets that workers need."""
        words = {purpose: key.word(purpose) for purpose in _BOUNDING}
        long_users, long_items = map(key.scrambler, (Purpose.LONG_USERS, Purpose.LONG_ITEMS))
        return cls(words, long_users, long_items)

    def word(self, purpose: Purpose) -> int:
        """Return 64 bits that belong to a purpose of bounding."""
        return self.words[purpose]


def pack(columns: Sequence[Words]) -> bytes:
    """Return columns of any lengths as bytes; a constant column takes one word.

    The header has the number of columns, their lengths, and how many words of each are sent.
    """
    sent = [column[:1] if _is_constant(column) else column for column in columns]
    header = [len(columns), *map(len, columns), *map(len, sent)]
    return b"".join([np.array(header, np.uint64).tobytes(), *(part.tobytes() for part in sent)])


def unpack(payload: Any) -> list[Words]:
    """Undo `pack`, with views of the payload instead of copies."""
    words = np.frombuffer(payload, np.uint64)
    count = int(words[0])
    lengths, sent = words[1 : 2 * count + 1].reshape(2, -1).astype(np.int64)
    parts = np.split(words[2 * count + 1 :], np.cumsum(sent)[:-1])
    return [
        part if len(part) == length else np.broadcast_to(part, length)
        for part, length in zip(parts, lengths.tolist(), strict=True)
    ]


def _is_constant(column: Words) -> bool:
    return len(column) > 1 and bool((column == column[0]).all())


def to_ipc(batch: pa.RecordBatch) -> bytes:
    """Return a batch as an Arrow IPC stream: Spark need not know its types."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def shuffle_rows(buckets: Any, payloads: list[bytes]) -> pa.RecordBatch:
    """Return payloads and the labels of their buckets as rows of `SHUFFLE_SCHEMA`."""
    columns = [pa.array(buckets, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "payload"])


def payloads_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Buffer]:
    """Stream the payloads of rows, as views of Arrow's memory."""
    return (payload.as_buffer() for batch in batches for payload in batch.column("payload"))


def buckets_of(words: Words, count: int) -> Words:
    """Return the bucket of each word; `count` buckets are ranges of words of the same size."""
    return (words >> _HALF) * np.uint64(count) >> _HALF


def bucket_labels(partitions: int) -> Labels:
    """Return, for each shuffle partition, an integer that `repartition` sends to it.

    The integers 0, 1, 2 … would leave a third of the partitions empty, as Spark hashes them.
    """
    labels = np.full(partitions, -1, dtype=np.int32)
    missing, candidate = partitions, 0
    while missing:
        partition = _spark_hash(candidate) % partitions
        if labels[partition] < 0:
            labels[partition] = candidate
            missing -= 1
        candidate += 1
    return labels


def _spark_hash(number: int) -> int:
    """Return Spark's hash of a non-negative int column: Murmur3 of 4 bytes, seed 42, signed."""
    h = _rotate(number * 0xCC9E2D51 & _32_BITS, 15) * 0x1B873593 & _32_BITS
    h = (_rotate(42 ^ h, 13) * 5 + 0xE6546B64) & _32_BITS
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _32_BITS
    h = (h ^ h >> 13) * 0xC2B2AE35 & _32_BITS
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _32_BITS
