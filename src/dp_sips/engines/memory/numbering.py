"""Columns whose values are numbered 0, 1, 2 … as they stream in.

A number stands for its value from then on: four bytes, whatever the value was. When all has been
read, a column gives back the 16-byte blocks and the values that belong to its numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines import encoding
from dp_sips.engines.memory import tables
from dp_sips.engines.memory.growing import Growing
from dp_sips.engines.memory.hashing import value_blocks
from dp_sips.errors import InputError
from dp_sips.privacy.arrays import Blocks, Bools, Words
from dp_sips.privacy.blocks import combine, integer_blocks
from dp_sips.privacy.noise import Scrambler
from dp_sips.sources.batches import same_bytes
from dp_sips.sources.flat import as_arrow, flat

Numbers = NDArray[np.uint32]
Keep = Callable[[int, Numbers], object]
"""Is told a shard, and the rows in which its new words stand."""

_MOST_VALUES: Final = 2**32 - 2**20
_LEAST_DIRECT: Final = 1 << 15
_NONE: Numbers = np.empty(0, dtype=np.uint32)


def check_numbers(size: int) -> None:
    """Reject more values than there are numbers."""
    if size > _MOST_VALUES:
        raise InputError(
            "more than 4 billion distinct users or items: too many for the memory engine"
        )


class Numbered(Protocol):
    """Values that have numbers, and are known by their blocks: all that is kept of users."""

    def blocks(self, numbers: slice | NDArray[Any]) -> Blocks:
        """Return the block of each number; after all has been read."""


@dataclass(frozen=True)
class SomeBlocks:
    """The blocks of some numbers, made when they are asked for."""

    column: Numbered
    numbers: NDArray[Any]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, some: slice | NDArray[Any]) -> Blocks:
        return self.column.blocks(self.numbers[some])


class Column(Numbered, Protocol):
    """One or more columns of a table, as one column of numbers."""

    def size(self) -> int:
        """Return a number above all given so far; not every number below it need be in use."""

    def values(self, numbers: NDArray[np.int64]) -> list[pa.Array]:
        """Return the values that belong to the numbers, one array a column; likewise."""

    def used(self, numbers: slice) -> Bools:
        """Return which of the numbers are in use."""


class GrowingColumn(Column, Protocol):
    """A column that is still being read."""

    def number(self, arrays: Sequence[pa.Array]) -> Numbers:
        """Return the rows' numbers; new values get new ones. Any thread may ask at any time."""

    def held(self) -> int:
        """Return about how many bytes of memory the column takes."""

    def finish(self) -> None:
        """Free what only numbering needs; no more values are coming."""

    def keys(self, numbers: slice) -> Words:
        """Return the words by which values are told apart: their blocks, or integers themselves."""


class UserColumn(GrowingColumn, Protocol):
    """A growing column whose rows can be made words elsewhere, before they are numbered."""

    def words(self, array: pa.Array) -> Words | None:
        """Return the rows' words, unless the array is better numbered as it is."""

    def number_words(self, words: Words) -> Numbers:
        """Return the number of each word; new ones get new numbers."""


@dataclass(frozen=True)
class Workers:
    """The threads that work side by side, and how many shards each table has."""

    pool: Executor
    shards: int


class Table:
    """Distinct words and their numbers, in shards.

    Several threads may number rows at the same time: a shard is one thread's at a time.
    """

    def __init__(self, width: int, seed: int, workers: Workers) -> None:
        self._pool, self._seed = workers.pool, seed
        self._shards = [
            tables.Shard(shard, workers.shards, width, seed) for shard in range(workers.shards)
        ]
        self._locks = [Lock() for _ in self._shards]
        self._growing = Growing(np.uint64, width)
        self._words: Words = self._growing.upto(0)
        self._direct, self._small = Growing(np.uint32), 0
        self._making_room, self._rows = Lock(), 0  # rows that are being numbered

    def number(self, words: Words, keep: Keep | None = None) -> Numbers:
        """Return the rows' numbers; `keep` is told of new words, in the order of their numbers."""
        with self._room_for(len(words)):
            numbers, work = self._begin(words, keep)
            left = list(range(len(self._shards)))
            while left:
                shard = self._free_one(left)
                try:
                    work(shard)
                finally:
                    self._locks[shard].release()
                left.remove(shard)
        return numbers

    def number_alone(self, words: Words) -> tuple[Numbers, list[Numbers]]:
        """Return the rows' numbers, and for each shard the rows in which its new words stand.

        All threads of the pool work on these rows: no other thread may number any.
        """
        new = [_NONE for _ in self._shards]
        with self._room_for(len(words)):
            numbers, work = self._begin(words, new.__setitem__)
            list(self._pool.map(work, range(len(new))))
        return numbers, new

    def _begin(self, words: Words, keep: Keep | None) -> tuple[Numbers, Callable[[int], None]]:
        """Return the numbers that need no hash, and a function that lets a shard add its own."""
        numbers = np.empty(len(words), dtype=np.uint32)
        rows = np.empty(len(words), dtype=np.uint32)
        ends = np.zeros(len(self._shards), dtype=np.uint64)
        known = self._direct.upto(0)[: self._small]
        tables.share_out(words, known, self._seed, numbers, rows, ends)

        def work(shard: int) -> None:
            own = rows[ends[shard - 1] if shard else 0 : ends[shard]]
            firsts = np.empty(len(own) + 1, dtype=np.uint32)
            new = self._shards[shard].number(words, own, self._words, numbers, firsts)
            if keep:
                keep(shard, firsts[:new])

        return numbers, work

    def _free_one(self, shards: list[int]) -> int:
        """Return a shard that is this thread's now; if all are taken, wait for the first."""
        for shard in shards:
            if self._locks[shard].acquire(blocking=False):
                return shard
        self._locks[shards[0]].acquire()
        return shards[0]

    @contextmanager
    def _room_for(self, rows: int) -> Iterator[None]:
        """Let the words grow, so that any of the rows may be new."""
        try:
            with self._making_room:
                self._rows += rows
                self._make_room()
            yield
        finally:
            with self._making_room:
                self._rows -= rows

    def _make_room(self) -> None:
        most = max(shard.count for shard in self._shards) + self._rows
        needed = (most // tables.LOT_SIZE + 1) * tables.LOT_SIZE * len(self._shards)
        if needed > min(len(self._words), _MOST_VALUES):
            check_numbers(needed)
            with self._all_shards():
                self._words = self._growing.upto(needed)
        if self._words.shape[1] == 1:
            self._look_up_directly()

    @contextmanager
    def _all_shards(self) -> Iterator[None]:
        """Have all shards to oneself: then arrays may move."""
        with ExitStack() as locks:
            for lock in self._locks:
                locks.enter_context(lock)
            yield

    def _look_up_directly(self) -> None:
        """Find integers without a hash, as long as at least half of those up to there occur."""
        while self._small < 2 * max(_LEAST_DIRECT, sum(shard.direct for shard in self._shards)):
            with self._all_shards():
                small = max(2 * self._small, 2 * _LEAST_DIRECT)
                direct = self._direct.touched_upto(small)
                for shard in self._shards:
                    shard.use_direct(direct, small, self._words)
                self._small = small

    def size(self) -> int:
        """Return a number above all numbers given so far; not all below it need be in use."""
        lots = max(-(-shard.count // tables.LOT_SIZE) for shard in self._shards)
        return lots * tables.LOT_SIZE * len(self._shards)

    def held(self) -> int:
        """Return how many bytes the words and their shards take."""
        words: int = 8 * self._words.shape[1] * self.size() + 4 * self._small
        return words + sum(shard.held() for shard in self._shards)

    def used(self, numbers: slice) -> Bools:
        """Return which of the numbers were given."""
        shards, before = self.places(np.arange(*numbers.indices(self.size())))
        return np.asarray(before < np.array([shard.count for shard in self._shards])[shards])

    def places(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the shard that gave each number, and how many it had given before."""
        lots, rest = np.divmod(numbers, tables.LOT_SIZE)
        turns, shards = np.divmod(lots, len(self._shards))
        return shards, turns * tables.LOT_SIZE + rest

    def finish(self) -> None:
        """Free what only numbering needs."""
        self._words = self._words[: self.size()]
        self._direct, self._small = Growing(np.uint32), 0
        for shard in self._shards:
            shard.free()

    def words(self, numbers: slice | NDArray[Any]) -> Words:
        """Return the words that belong to numbers."""
        if isinstance(numbers, slice):
            return self._words[numbers]
        return self._words.take(numbers, axis=0)  # ten times as fast as [numbers]


class IntegerColumn:
    """Integers, dates, times and truth values, never null: the value itself is the word."""

    def __init__(self, kind: pa.DataType, seed: int, workers: Workers) -> None:
        self._kind = kind
        table = self._table = Table(1, seed, workers)
        self.size, self.finish, self.held = table.size, table.finish, table.held
        self.keys, self.used = table.words, table.used

    def number(self, arrays: Sequence[pa.Array]) -> Numbers:
        return self._table.number(integer_rows(arrays[0]))

    def words(self, array: pa.Array) -> Words | None:
        return integer_rows(array)

    def number_words(self, words: Words) -> Numbers:
        return self._table.number(words)

    def blocks(self, numbers: slice | NDArray[Any]) -> Blocks:
        return integer_blocks(self._table.words(numbers)[:, 0])

    def values(self, numbers: NDArray[np.int64]) -> list[pa.Array]:
        words = np.ascontiguousarray(self._table.words(numbers)[:, 0])
        return [encoding.integers_from_words(words, self._kind)]


class BlockColumn:
    """Everything else, text above all: the word is the block, the values are kept beside it."""

    def __init__(
        self,
        kind: pa.DataType,
        seed: int,
        workers: Workers,
        scrambler: Scrambler,
        *,
        keep_values: bool = True,
    ) -> None:
        table = self._table = Table(2, seed, workers)
        self._scrambler = scrambler
        self._keep_values = keep_values
        self._bytes = [0] * workers.shards
        self._chunks: list[list[pa.Array]] = [[] for _ in range(workers.shards)]
        self._kind = kind
        self._seen: tuple[pa.Array, Numbers] | None = None
        self._seeing = Lock()
        self.size, self.finish, self.used = table.size, table.finish, table.used
        self.blocks = self.keys = table.words

    def held(self) -> int:
        return self._table.held() + sum(self._bytes)

    def number(self, arrays: Sequence[pa.Array]) -> Numbers:
        array = arrays[0]
        if not pa.types.is_dictionary(array.type):
            return self._number(array)
        entries = self._number_entries(array.dictionary)
        if array.null_count:
            null = self._number(pa.nulls(1, array.dictionary.type))
            wide = array.indices.cast(pa.int64())  # the null's number may be one too many for less
            indices, entries = wide.fill_null(len(entries)), np.append(entries, null)
        else:
            indices = array.indices
        return np.asarray(entries[flat(indices)])

    def words(self, array: pa.Array) -> Words | None:
        if pa.types.is_dictionary(array.type):  # its entries are fewer than its rows
            return None
        return value_blocks(array, self._scrambler)

    def number_words(self, words: Words) -> Numbers:
        return self._table.number(words)

    def _number_entries(self, dictionary: pa.Array) -> Numbers:
        # Batches of one Parquet row group share one dictionary: it need be numbered only once.
        with self._seeing:
            if self._seen is None or not same_bytes(self._seen[0], dictionary):
                self._seen = dictionary, self._number(dictionary)
            return self._seen[1]

    def _number(self, values: pa.Array) -> Numbers:
        def keep(shard: int, rows: Numbers) -> None:
            self._chunks[shard].append(values.take(as_arrow(rows)))
            self._bytes[shard] += self._chunks[shard][-1].nbytes

        blocks = value_blocks(values, self._scrambler)
        return self._table.number(blocks, keep if self._keep_values else None)

    def values(self, numbers: NDArray[np.int64]) -> list[pa.Array]:
        # Only the few that are asked for are gathered, shard by shard, then put back in order.
        shards, places = self._table.places(numbers)
        found: list[pa.Array] = [pa.nulls(0, encoding.plain_type(self._kind))]
        rows = []
        for shard, chunks in enumerate(self._chunks):
            mine = np.flatnonzero(shards == shard)
            mine = mine[places[mine].argsort()]
            found += _taken(chunks, places[mine])
            rows.append(mine)
        back = np.argsort(np.concatenate(rows))
        return [pa.concat_arrays(found).take(as_arrow(back))]


def _taken(chunks: list[pa.Array], places: NDArray[np.int64]) -> Iterator[pa.Array]:
    """Yield the values at ascending places; Arrow itself would join all chunks first."""
    ends = np.cumsum([len(chunk) for chunk in chunks])
    stops = places.searchsorted(ends)
    for chunk, end, first, stop in zip(chunks, ends, [0, *stops], stops, strict=False):
        if first < stop:
            yield chunk.take(as_arrow(places[first:stop] - (end - len(chunk))))


class TupleColumn:
    """Several columns as one: the numbers of two columns, side by side, make one word."""

    def __init__(
        self,
        first: GrowingColumn,
        second: GrowingColumn,
        seed: int,
        workers: Workers,
        scrambler: Scrambler,
    ) -> None:
        self._parts = first, second
        self._table = Table(1, seed, workers)
        self._scrambler = scrambler
        self.size, self.used = self._table.size, self._table.used

    def held(self) -> int:
        return sum(part.held() for part in (*self._parts, self._table))

    def keys(self, numbers: slice) -> Words:
        return self.blocks(numbers)

    def number(self, arrays: Sequence[pa.Array]) -> Numbers:
        first, second = self._parts[0].number(arrays[:-1]), self._parts[1].number(arrays[-1:])
        words = np.empty((len(arrays[0]), 1), dtype=np.uint64)
        words[:, 0] = first
        words[:, 0] |= second.astype(np.uint64) << np.uint64(32)
        return self._table.number(words)

    def finish(self) -> None:
        for part in (*self._parts, self._table):
            part.finish()

    def columns(self, numbers: slice | NDArray[Any]) -> Iterator[Blocks]:
        """Yield the blocks of each single column."""
        first, second = self._numbers(numbers)
        if isinstance(self._parts[0], TupleColumn):
            yield from self._parts[0].columns(first)
        else:
            yield self._parts[0].blocks(first)
        yield self._parts[1].blocks(second)

    def blocks(self, numbers: slice | NDArray[Any]) -> Blocks:
        return combine(list(self.columns(numbers)), self._scrambler)

    def values(self, numbers: NDArray[np.int64]) -> list[pa.Array]:
        first, second = self._numbers(numbers)
        return self._parts[0].values(first) + self._parts[1].values(second)

    def _numbers(
        self, numbers: slice | NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        words = self._table.words(numbers)[:, 0]
        return (words & np.uint64(0xFFFFFFFF)).astype(np.int64), (words >> np.uint64(32)).astype(
            np.int64
        )


def new_column(
    kinds: Sequence[pa.DataType],
    *,
    nullable: bool,
    seed: int,
    workers: Workers,
    scrambler: Scrambler,
) -> GrowingColumn:
    """Return an empty column for values of these types."""
    *others, last = kinds
    if encoding.is_integer_like(last) and not nullable:
        column: GrowingColumn = IntegerColumn(last, seed, workers)
    else:
        column = BlockColumn(last, seed, workers, scrambler)
    if not others:
        return column
    first = new_column(others, nullable=nullable, seed=seed, workers=workers, scrambler=scrambler)
    return TupleColumn(first, column, seed, workers, scrambler)


def new_user_column(
    kind: pa.DataType, *, seed: int, workers: Workers, scrambler: Scrambler
) -> UserColumn:
    """Return an empty column for users, who are never null, and whose values are not kept."""
    if encoding.is_integer_like(kind):
        return IntegerColumn(kind, seed, workers)
    return BlockColumn(kind, seed, workers, scrambler, keep_values=False)


def integer_rows(array: pa.Array) -> Words:
    """Return integer-like values as a matrix of one column of words."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return encoding.integer_words(array).reshape(-1, 1)
