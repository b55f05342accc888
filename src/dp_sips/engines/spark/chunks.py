"""A chunk: half a million pairs as one row of a Spark table, ready to be weighed.

Its distinct items are numbered, so that a round is the memory engine's loop over four bytes a pair.
A user with more items than a chunk goes on in the next one of the same Spark partition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.memory import kernels
from dp_sips.engines.spark.found import Found
from dp_sips.engines.spark.pairs import HIGH, LOW, TAG, USER, Pairs, user_starts
from dp_sips.privacy.noise import Blocks
from dp_sips.privacy.weights import Weights, weight, weight_table

SIZE: Final = 1 << 19
"""Pairs in a chunk."""

SCHEMA: Final = "users binary, ends binary, blocks binary, items binary, goes_on boolean"


@dataclass(frozen=True)
class Chunk:
    """Pairs of whole users, but for a last one that may go on in the next chunk.

    Attributes:
        users: The users' words and tags, two each.
        ends: The items of user u are items[ends[u − 1] : ends[u]], in bounding order.
        blocks: The blocks of the distinct items.
        items: Numbers of items: places in `blocks`.
        goes_on: Whether the next chunk begins with more items of the last user.
    """

    users: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    blocks: Blocks
    items: NDArray[np.uint32]
    goes_on: bool

    @property
    def longest(self) -> int:
        """How many items the user with most of them has."""
        return int(np.diff(self.ends, prepend=np.uint64(0)).max())

    @classmethod
    def of(cls, pairs: Pairs, *, goes_on: bool) -> "Chunk":
        """Number the items of ordered, distinct pairs."""
        starts = user_starts(pairs)
        ends = np.append(starts[1:], pairs.shape[1]).astype(np.uint64)
        blocks, items = _numbered(np.ascontiguousarray(pairs[[LOW, HIGH]].T))
        users = np.ascontiguousarray(pairs[[USER, TAG]][:, starts].T)
        return cls(users, ends, blocks, items, goes_on)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "Chunk":
        """Undo `to_batch`."""
        users, blocks = (
            np.frombuffer(row[name], dtype=np.uint64).reshape(-1, 2) for name in ("users", "blocks")
        )
        ends = np.frombuffer(row["ends"], dtype=np.uint64)
        return cls(users, ends, blocks, np.frombuffer(row["items"], np.uint32), row["goes_on"])

    def to_batch(self) -> pa.RecordBatch:
        """Return the chunk as one row of `SCHEMA`."""
        arrays: list[NDArray[Any]] = [self.users, self.ends, self.blocks, self.items]
        columns = [pa.array([array.tobytes()], pa.binary()) for array in arrays]
        names = ["users", "ends", "blocks", "items", "goes_on"]
        return pa.RecordBatch.from_arrays([*columns, pa.array([self.goes_on])], names=names)


def chunks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    """Read the chunks of one Spark partition."""
    for batch in batches:
        for row in range(batch.num_rows):
            # A view of Arrow's memory, not a copy.
            values = {
                name: batch.column(name)[row].as_buffer()
                for name in ("users", "ends", "blocks", "items")
            }
            yield Chunk.from_row(values | {"goes_on": batch.column("goes_on")[row].as_py()})


def cut(pieces: Iterable[Pairs]) -> Iterator[Chunk]:
    """Cut a stream of ordered pairs into chunks, between users where that is possible."""
    held: Pairs | None = None
    for piece in pieces:
        held = piece if held is None else np.concatenate((held, piece), axis=1)
        while held.shape[1] > SIZE:
            border = int(user_starts(held[:, : SIZE + 1])[-1])
            yield Chunk.of(held[:, : border or SIZE], goes_on=not border)
            held = held[:, border or SIZE :]
    if held is not None and held.shape[1]:
        yield Chunk.of(held, goes_on=False)


@dataclass(frozen=True)
class Weigh:
    """One round's pass over chunks: partial sums of weights, one row for each item of a chunk."""

    found: Found
    max_items: int
    step_bits: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream sums of `SUMS` for chunks of one Spark partition."""
        open_user: Blocks | None = None
        for chunk in chunks_of(batches):
            removed = self.found.contain(chunk.blocks)
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
            yield _sums(chunk.blocks[held], weights[held])

    def _sums_of_one(self, counted: Blocks) -> pa.RecordBatch:
        """Return what one user gives to the items that count."""
        weights = np.full(len(counted), weight(max(1, len(counted)), self.step_bits), np.uint64)
        return _sums(counted, weights)

    def _more(self, counted: Blocks, chunk: Chunk, user: int, removed: NDArray[np.bool_]) -> Blocks:
        """Add to the items that count of a user that a border of chunks cuts in two."""
        begin = int(chunk.ends[user - 1]) if user else 0
        items = chunk.items[begin : int(chunk.ends[user])]
        active = items[~removed[items]][: self.max_items - len(counted)]
        return np.concatenate((counted, chunk.blocks[active]))


SUMS: Final = "low long, high long, weight long"


def _sums(blocks: Blocks, weights: Weights) -> pa.RecordBatch:
    columns = (blocks[:, 0], blocks[:, 1], weights)
    signed = [np.ascontiguousarray(column).view(np.int64) for column in columns]
    return pa.RecordBatch.from_arrays(
        [pa.array(c) for c in signed], names=["low", "high", "weight"]
    )


def blocks_of(table: pa.RecordBatch | pa.Table) -> Blocks:
    """Return the blocks in the columns low and high."""
    words = [np.asarray(table.column(name)) for name in ("low", "high")]
    return np.stack(words, axis=1).view(np.uint64)


def _numbered(blocks: Blocks) -> tuple[Blocks, NDArray[np.uint32]]:
    """Return the distinct blocks, and the place of each block among them."""
    shard = kernels.Shard(0, 1, 2, 0)
    words = np.empty((len(blocks) + 2 * kernels.LOT_SIZE, 2), dtype=np.uint64)
    numbers = np.empty(len(blocks), dtype=np.uint32)
    firsts = np.empty(len(blocks) + 1, dtype=np.uint32)
    count = shard.number(blocks, words, numbers, firsts)
    return words[:count], numbers
