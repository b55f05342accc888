"""From runs on disk to sets on disk: items get numbers that hold for all runs, users one set each.

Memory has one part of the items' table at a time, then a few buckets of users.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines import encoding
from dp_sips.engines.memory import kernels
from dp_sips.engines.memory.disk import Appender, Disk
from dp_sips.engines.memory.numbering import Numbers, Table, Workers, check_numbers
from dp_sips.engines.memory.runs import PIECE, Run, bucket_of, pieces
from dp_sips.engines.memory.sets import UserSets
from dp_sips.privacy.arrays import Blocks, Bools, Words
from dp_sips.privacy.blocks import integer_blocks
from dp_sips.progress import Progress
from dp_sips.sources.flat import as_arrow

_TABLE_BYTES: Final = 64
"""What an item takes at most while it is numbered: its key, its place, and slots just doubled."""
_RUN_BITS: Final = 32
"""A place is that of an item in its run; the run's number is in the bits above."""

Places = NDArray[np.uint64]


@dataclass(frozen=True)
class StoredKeys:
    """Keys on disk, in the order of their numbers."""

    keys: Words
    disk: Disk

    def blocks(self, numbers: slice | NDArray[Any]) -> Blocks:
        """Return the block of each number."""
        keys = self.keys[numbers]
        blocks = integer_blocks(keys[:, 0]) if keys.shape[1] == 1 else keys.copy()
        if isinstance(numbers, slice):
            self.disk.forget(keys)
        return blocks


@dataclass(frozen=True)
class StoredColumn(StoredKeys):
    """A column on disk: keys, what fetches their values, and which numbers are in use."""

    values: Callable[[NDArray[np.int64]], list[pa.Array]]
    in_use: Bools

    def size(self) -> int:
        """Return how many numbers there are."""
        return len(self.keys)

    def used(self, numbers: slice) -> Bools:
        """Return which of the numbers are in use."""
        return self.in_use[numbers]


class Bucket(NamedTuple):
    """Some of the users: their keys, the sizes of their sets, and the sets."""

    keys: Words
    sizes: NDArray[np.uint64]
    items: Numbers
    counts: Numbers


@dataclass(frozen=True)
class Merging:
    """Merges runs.

    Attributes:
        runs: What was read, in order.
        disk: Where runs are, and where the outcome goes.
        limit: Bytes of memory to keep to.
        seed: For the tables of keys.
        workers: The threads.
    """

    runs: list[Run]
    disk: Disk
    limit: int
    seed: int
    workers: Workers

    def merged(
        self, kinds: Sequence[pa.DataType], progress: Progress
    ) -> tuple[UserSets, StoredKeys, StoredColumn]:
        """Return the sets, the users and the items."""
        items, renumbered = self.items(kinds)
        sets, users = self.sets(renumbered, progress)
        return sets, users, items

    def items(self, kinds: Sequence[pa.DataType]) -> tuple[StoredColumn, list[Numbers]]:
        """Number the items of all runs anew; return them, and the new numbers of each run's."""
        width, parts = self.runs[0].item_keys.shape[1], self._parts()
        renumbered = [self.disk.zeros(len(run.item_keys), np.uint32) for run in self.runs]
        size = 0
        appender = self.disk.appender
        with appender() as keys, appender() as places, appender() as used:
            for part in range(parts):
                table = _Part(part, parts, Table(width, self.seed, self.workers), size, _Origins())
                for run, numbers in enumerate(renumbered):
                    self._number(table, run, numbers)
                size += table.append_to(keys, places, used)
                check_numbers(size)
            stored: Words = keys.only(np.uint64, width)
            origin: Places = places.only(np.uint64)
            in_use: Bools = used.only(np.bool_)
        values = (
            partial(self._fetch, origin, kinds)
            if len(origin)
            else partial(_integers, stored, kinds[0])
        )
        return StoredColumn(stored, self.disk, values, in_use), renumbered

    def _parts(self) -> int:
        """Return in how many parts to number the items, so that each part's table fits."""
        total = sum(len(run.item_keys) for run in self.runs)
        return max(1, min(-(-total * _TABLE_BYTES // self.limit), 3 + total // PIECE))

    def _number(self, part: "_Part", run: int, renumbered: Numbers) -> None:
        """Number those of a run's items that belong to a part."""
        mine, place = self.runs[run], run << _RUN_BITS
        for piece in pieces(len(mine.item_keys)):
            rows = np.flatnonzero(mine.used[piece])
            keys = mine.item_keys[piece][rows]
            here = np.flatnonzero(bucket_of(keys, part.parts) == part.number)
            numbers, firsts = part.table.number_alone(keys[here])
            renumbered[piece][rows[here]] = numbers + np.uint32(part.base)
            if len(mine.values):
                part.origins.note(numbers, here + place, firsts)
            place += len(rows)
            self.disk.forget(mine.item_keys[piece])

    def _fetch(
        self, places: Places, kinds: Sequence[pa.DataType], numbers: NDArray[np.int64]
    ) -> list[pa.Array]:
        """Return the values of some items, one array a column, in one pass over those on disk."""
        order = np.argsort(places[numbers])
        wanted = places[numbers][order].astype(np.int64)
        schema = pa.schema((str(i), encoding.plain_type(kind)) for i, kind in enumerate(kinds))
        found = [schema.empty_table()]
        for number, run in enumerate(self.runs):
            place = number << _RUN_BITS
            for batch in run.batches():
                first, stop = np.searchsorted(wanted, [place, place + len(batch)])
                rows = as_arrow(wanted[first:stop] - place)
                found.append(pa.Table.from_batches([batch.take(rows)]))
                place += len(batch)
        back = as_arrow(np.argsort(order))
        columns = pa.concat_tables(found).combine_chunks().columns
        return [column.take(back).combine_chunks() for column in columns]

    def sets(self, renumbered: list[Numbers], progress: Progress) -> tuple[UserSets, StoredKeys]:
        """Bring each user's items together, a few buckets at a time."""
        work, threads = partial(self._bucket, renumbered), self.workers.shards
        buckets = range(len(self.runs[0].user_edges) - 1)
        users = np.sum([np.diff(run.user_edges) for run in self.runs], axis=0)
        with ExitStack() as files:
            columns = [files.enter_context(self.disk.appender()) for _ in Bucket._fields]
            bar = files.enter_context(progress.unlogged("merging", len(buckets), "bucket"))
            for first in buckets[::threads]:
                some = buckets[first : first + threads]
                taken = [bucket for bucket in some if users[bucket]]
                for bucket in self.workers.pool.map(work, taken):
                    for file, column in zip(columns, bucket, strict=True):
                        file.append(np.asarray(column))
                bar(len(some))
            whole = Bucket(
                columns[0].only(np.uint64, self.runs[0].users.shape[1]),
                columns[1].only(np.uint64),
                columns[2].only(np.uint32),
                columns[3].only(np.uint32),
            )
        ends = np.cumsum(whole.sizes, dtype=np.uint64)
        sets = UserSets(whole.items, ends, whole.counts)
        return sets, StoredKeys(whole.keys, self.disk)

    def _bucket(self, renumbered: list[Numbers], bucket: int) -> Bucket:
        """Bring together the items of the users in one bucket."""
        table = Table(self.runs[0].users.shape[1], self.seed, Workers(self.workers.pool, 1))
        parts = []
        for run, numbers in zip(self.runs, renumbered, strict=True):
            users, pairs = run.users_of(bucket), run.pairs_of(bucket)
            if users.stop > users.start:
                found = table.number(run.users[users].copy())
                items, counts = numbers[run.items[pairs]], run.counts[pairs].copy()
                parts.append((found, run.sizes[users].copy(), items, counts))
                self.disk.drop(run.items[pairs])
        return _merged(table, parts)


class _Origins:
    """Where the values of new items are, until all numbers of a table are given."""

    def __init__(self) -> None:
        self._found: list[tuple[Numbers, Places]] = []

    def note(self, numbers: Numbers, places: NDArray[np.int64], firsts: list[Numbers]) -> None:
        """Note the places of the rows that came first."""
        self._found += [(numbers[rows], places[rows].astype(np.uint64)) for rows in firsts]

    def by_number(self, size: int) -> Places:
        """Return the place of each number."""
        places = np.zeros(size if self._found else 0, dtype=np.uint64)
        for numbers, found in self._found:
            places[numbers] = found
        return places


@dataclass(frozen=True)
class _Part:
    """One of several parts of the items: a table for those that fall into it, from `base` on."""

    number: int
    parts: int
    table: Table
    base: int
    origins: _Origins

    def append_to(self, keys: Appender, places: Appender, used: Appender) -> int:
        """Write the keys, and where their values are; return how many numbers there are."""
        size = self.table.size()
        keys.append(self.table.words(slice(size)))
        for piece in pieces(size):
            used.append(self.table.used(piece))
        places.append(self.origins.by_number(size))
        return size


def _merged(table: Table, parts: list[tuple[Numbers, Numbers, Numbers, Numbers]]) -> Bucket:
    """Return the sets of users that were numbered by a table: users, sizes, items and counts."""
    users = 1 + max((int(found.max()) for found, *_ in parts), default=-1)
    sizes = np.zeros(users, dtype=np.uint64)
    for found, lengths, *_ in parts:
        kernels.add_sizes(found, lengths, sizes)
    ends = np.cumsum(sizes, dtype=np.uint64)
    items, counts = (_grouped(parts, column, ends - sizes) for column in (2, 3))
    if len(parts) > 1:  # each of them has no repeats
        left = kernels.drop_repeats(items, counts, ends, 0, 0, users)
        items, counts, sizes = items[:left], counts[:left], np.diff(ends, prepend=np.uint64(0))
    return Bucket(table.words(slice(users)), sizes, items, counts)


def _grouped(
    parts: list[tuple[Numbers, Numbers, Numbers, Numbers]], column: int, places: Places
) -> Numbers:
    """Return a column of pairs with each user's side by side, those of earlier runs first."""
    grouped = np.empty(sum(len(part[column]) for part in parts), dtype=np.uint32)
    for part in parts if len(grouped) else ():
        kernels.regroup(part[column], part[0], part[1], places, grouped)
    return grouped


def _integers(keys: Words, kind: pa.DataType, numbers: NDArray[np.int64]) -> list[pa.Array]:
    return [encoding.integers_from_words(np.ascontiguousarray(keys[numbers][:, 0]), kind)]
