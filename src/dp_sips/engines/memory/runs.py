"""Data that is more than memory holds: read in runs that fit, and written to disk one by one.

A run is numbered on its own, as if it were all of the data. Its users fall into buckets by a hash,
the same for every run, and each bucket's sets are side by side: `merging.py` then takes one bucket
at a time, of all runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.memory.disk import Appender, Disk
from dp_sips.engines.memory.numbering import GrowingColumn, IntegerColumn, Numbers
from dp_sips.engines.memory.sets import UserSets, cuts, edges_of, gathered
from dp_sips.privacy.arrays import Bools, Words
from dp_sips.privacy.bounding import mix

PIECE: Final = 1 << 18
"""Numbers that are written, read or looked up at a time."""

_OTHER_SEED: Final = np.uint64(0x9E3779B97F4A7C15)
"""Buckets are not the shards of tables, which hash in the same way."""


@dataclass(frozen=True)
class Run:
    """What was read until memory was full.

    Attributes:
        user_edges: Bucket b has the users from user_edges[b] to user_edges[b + 1].
        pair_edges: Likewise, its pairs.
        users: The users' keys, bucket by bucket.
        sizes: How many items each of these users has.
        items: Numbers of items, user by user.
        counts: How often each pair occurred, where anybody asked.
        item_keys: The items' keys, by number.
        used: Which of these numbers are in use.
        values: The items' values, as a stream of Arrow's; empty where the keys are the values.
    """

    user_edges: NDArray[np.int64]
    pair_edges: NDArray[np.int64]
    users: Words
    sizes: Numbers
    items: Numbers
    counts: Numbers
    item_keys: Words
    used: Bools
    values: NDArray[np.uint8]

    def users_of(self, bucket: int) -> slice:
        """Return where the users of a bucket are."""
        return slice(*self.user_edges[bucket : bucket + 2].tolist())

    def pairs_of(self, bucket: int) -> slice:
        """Return where their pairs are."""
        return slice(*self.pair_edges[bucket : bucket + 2].tolist())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the items' values in the order of their numbers, except for unused ones."""
        if len(self.values):
            yield from pa.ipc.open_stream(pa.py_buffer(self.values))


def write_run(
    sets: UserSets, users: GrowingColumn, items: GrowingColumn, buckets: int, disk: Disk
) -> Run:
    """Write a run that was read and laid out."""
    keys = users.keys(slice(len(sets.ends)))
    homes = bucket_of(keys, buckets)
    order = np.argsort(homes, kind="stable")
    sizes = np.diff(sets.ends, prepend=np.uint64(0)).astype(np.uint32)[order]
    user_edges = edges_of(np.bincount(homes, minlength=buckets))
    pair_edges = edges_of(sizes)[user_edges]
    with disk.appender() as file:
        file.append(keys[order])
        file.end(np.uint64, keys.shape[1])
        file.append(sizes)
        file.end(np.uint32)
        shares = cuts(np.cumsum(sizes, dtype=np.uint64), 1 + len(sets.items) // PIECE)
        for column in (sets.items, sets.counts):
            for first, stop in shares:
                file.append(gathered(column, sets.ends, order[first:stop]))
            file.end(np.uint32)
        _write_items(items, file)
        return Run(user_edges, pair_edges, *file.arrays())


def _write_items(items: GrowingColumn, file: Appender) -> None:
    """Write the items' keys, which numbers are in use, and values."""
    for piece in pieces(items.size()):
        file.append(items.keys(piece))
    file.end(np.uint64, items.keys(slice(0)).shape[1])
    for piece in pieces(items.size()):
        file.append(items.used(piece))
    file.end(np.bool_)
    if not isinstance(items, IntegerColumn):
        batches = (_values(items, piece) for piece in pieces(items.size()))
        file.append_batches(batches, _values(items, slice(0)).schema)
    file.end(np.uint8)


def _values(items: GrowingColumn, piece: slice) -> pa.RecordBatch:
    arrays = items.values(np.flatnonzero(items.used(piece)) + (piece.start or 0))
    return pa.record_batch(arrays, names=[str(place) for place in range(len(arrays))])


def buckets_for(rows: int | None) -> int:
    """Return how many buckets suit this many rows, if it is known how many there are."""
    return 1024 if rows is None else min(max(16, rows >> 16), 4096)


def bucket_of(keys: Words, buckets: int) -> NDArray[np.uint16]:
    """Return the bucket that each key falls into; there are at most 2¹⁶."""
    words = mix(keys[:, 0] ^ _OTHER_SEED)
    if keys.shape[1] > 1:
        words = mix(words ^ keys[:, 1])
    high = words >> np.uint64(32)
    return (high * np.uint64(buckets) >> np.uint64(32)).astype(np.uint16)


def pieces(size: int) -> Iterator[slice]:
    """Cut numbers into pieces."""
    return (slice(start, min(start + PIECE, size)) for start in range(0, size, PIECE))
