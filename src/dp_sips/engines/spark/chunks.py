"""A chunk: a million pairs as one row of a Spark table, ready to be weighed.

Its distinct items are numbered, so that a round is the memory engine's loop over four bytes a pair.
A user with more items than a chunk can hold continues in the next chunk of the Spark partition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.spark.numbering import number_blocks
from dp_sips.engines.spark.pairs import HIGH, LOW, TAG, USER, Pairs, user_starts
from dp_sips.privacy.arrays import Blocks, Bools, Words

CHUNK_SIZE: Final = 1 << 20
"""Pairs in a chunk."""

CHUNK_SCHEMA: Final = "users binary, ends binary, blocks binary, items binary, continues boolean"
ARRAYS: Final = ("users", "ends", "blocks", "items")


@dataclass(frozen=True)
class Chunk:
    """Pairs of whole users, except that the last may continue in the next chunk.

    Attributes:
        users: The users' words and tags, two each.
        ends: The items of user u are items[ends[u − 1] : ends[u]], in bounding order.
        blocks: The blocks of the distinct items, sorted as in a `BlockSet`.
        items: Items as numbers: positions in `blocks`.
        continues: Whether the next chunk begins with more items of the last user.
    """

    users: Words
    ends: NDArray[np.uint64]
    blocks: Blocks
    items: NDArray[np.uint32]
    continues: bool

    @property
    def longest(self) -> int:
        """The number of items of the user who has most."""
        return int(np.diff(self.ends, prepend=np.uint64(0)).max())

    @classmethod
    def from_pairs(cls, pairs: Pairs, *, continues: bool) -> "Chunk":
        """Number the items of sorted, distinct pairs."""
        starts = user_starts(pairs)
        ends = np.append(starts[1:], pairs.shape[1]).astype(np.uint64)
        blocks, items = number_blocks(np.ascontiguousarray(pairs[[LOW, HIGH]].T))
        users = np.ascontiguousarray(pairs[[USER, TAG]][:, starts].T)
        return cls(users, ends, blocks, items, continues)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "Chunk":
        """Undo `to_batch`."""
        users, blocks = (
            np.frombuffer(row[name], dtype=np.uint64).reshape(-1, 2) for name in ("users", "blocks")
        )
        ends = np.frombuffer(row["ends"], dtype=np.uint64)
        return cls(users, ends, blocks, np.frombuffer(row["items"], np.uint32), row["continues"])

    def without(self, removed: Bools) -> "Chunk":
        """Return the chunk without some of its items; `removed` has one value for each of them."""
        numbers = np.cumsum(~removed, dtype=np.uint32) - np.uint32(1)
        left = ~removed[self.items]
        ends = np.concatenate(([0], np.cumsum(left)))[self.ends].astype(np.uint64)
        # Neighbouring chunks may have items of the first and of the last user: these stay, even
        # where no item of theirs is left here.
        users = np.diff(ends, prepend=np.uint64(0)) > 0
        users[[0, -1]] = True
        items = numbers[self.items[left]]
        return Chunk(self.users[users], ends[users], self.blocks[~removed], items, self.continues)

    def to_batch(self) -> pa.RecordBatch:
        """Return the chunk as one row of `CHUNK_SCHEMA`."""
        arrays: list[NDArray[Any]] = [self.users, self.ends, self.blocks, self.items]
        columns = [pa.array([array.tobytes()], pa.binary()) for array in arrays]
        names = [*ARRAYS, "continues"]
        return pa.RecordBatch.from_arrays([*columns, pa.array([self.continues])], names=names)


def read_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    """Read the chunks of one Spark partition."""
    for batch in batches:
        for row in range(batch.num_rows):
            # A view of Arrow's memory, not a copy.
            arrays = {name: batch.column(name)[row].as_buffer() for name in ARRAYS}
            yield Chunk.from_row(arrays | {"continues": batch.column("continues")[row].as_py()})


def split_into_chunks(stream: Iterable[Pairs]) -> Iterator[Chunk]:
    """Split a stream of sorted pairs into chunks, between users where that is possible."""
    held: Pairs | None = None
    for pairs in stream:
        held = pairs if held is None else np.concatenate((held, pairs), axis=1)
        while held.shape[1] > CHUNK_SIZE:
            border = int(user_starts(held[:, : CHUNK_SIZE + 1])[-1])
            yield Chunk.from_pairs(held[:, : border or CHUNK_SIZE], continues=not border)
            held = held[:, border or CHUNK_SIZE :]
    if held is not None and held.shape[1]:
        yield Chunk.from_pairs(held, continues=False)
