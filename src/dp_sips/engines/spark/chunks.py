"""A chunk: a million pairs as one row of a Spark table, ready to be weighed.

Its distinct items are numbered, so that a round is the memory engine's loop over four bytes a pair.
A user with more items than a chunk goes on in the next one of the same Spark partition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.spark.block_sets import numbered
from dp_sips.engines.spark.pairs import HIGH, LOW, TAG, USER, Pairs, user_starts
from dp_sips.privacy.arrays import Blocks

SIZE: Final = 1 << 20
"""Pairs in a chunk."""

SCHEMA: Final = "users binary, ends binary, blocks binary, items binary, goes_on boolean"


@dataclass(frozen=True)
class Chunk:
    """Pairs of whole users, but for a last one that may go on in the next chunk.

    Attributes:
        users: The users' words and tags, two each.
        ends: The items of user u are items[ends[u − 1] : ends[u]], in bounding order.
        blocks: The blocks of the distinct items, in the order of a `BlockSet`.
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
        blocks, items = numbered(np.ascontiguousarray(pairs[[LOW, HIGH]].T))
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

    def without(self, removed: NDArray[np.bool_]) -> "Chunk":
        """Return what is left when items are removed; `removed` has one truth value for each."""
        numbers = np.cumsum(~removed, dtype=np.uint32) - np.uint32(1)
        left = ~removed[self.items]
        ends = np.concatenate(([0], np.cumsum(left)))[self.ends].astype(np.uint64)
        # The first and the last user may be another chunk's, too, even where nothing is left here.
        users = np.diff(ends, prepend=np.uint64(0)) > 0
        users[[0, -1]] = True
        items = numbers[self.items[left]]
        return Chunk(self.users[users], ends[users], self.blocks[~removed], items, self.goes_on)

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
