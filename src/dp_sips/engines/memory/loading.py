"""From batches to the layout in which rounds are fast: each user's distinct items side by side.

One thread reads batches, and others work on them side by side: users are hashed, a user's rows
found where they are together, items numbered. Then, batch by batch, users are numbered and repeats
dropped.
Only numbers are kept: four bytes a pair, or six until they are in order.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines import encoding
from dp_sips.engines.memory import folds, kernels
from dp_sips.engines.memory.allocator import give_memory_back
from dp_sips.engines.memory.disk import Arrays, Disk, InMemory
from dp_sips.engines.memory.growing import Growing, zeros
from dp_sips.engines.memory.in_order import in_order
from dp_sips.engines.memory.merging import Merging
from dp_sips.engines.memory.numbering import (
    Column,
    GrowingColumn,
    Numbered,
    Numbers,
    UserColumn,
    Workers,
    integer_rows,
)
from dp_sips.engines.memory.repeats import Together, drop_recent
from dp_sips.engines.memory.runs import Run, buckets_for, write_run
from dp_sips.engines.memory.scattering import Scattered
from dp_sips.engines.memory.sets import UserSets, begins_of, close_gaps
from dp_sips.engines.memory.spilling import Spill
from dp_sips.engines.memory.watching import Watch
from dp_sips.privacy.arrays import Words
from dp_sips.progress import Progress
from dp_sips.room import check_room
from dp_sips.sources import Source
from dp_sips.sources.flat import as_arrow

_USER_BYTES, _ITEM_BYTES = 16, 18
"""What a round needs of each user (size and end) and item (a histogram, evidence, two flags)."""
_WORKING_SPACE = 1 << 27
"""Bytes for batches on their way, and for what libraries set aside."""
_AHEAD = 6
"""Batches on their way."""
_LONG = 4
"""Rows of a user, on average, among which it pays to look for repeats before they are numbered."""
_NONE: Numbers = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True)
class Columns:
    """Makes empty columns for users and items; the seed is for tables of their own."""

    users: Callable[[], UserColumn]
    items: Callable[[], GrowingColumn]
    seed: int

    def both(self) -> "Both":
        """Return an empty column for each."""
        return Both(self.users(), self.items())


class Both(NamedTuple):
    """A column of users and one of items, whose numbers belong together."""

    users: UserColumn
    items: GrowingColumn


class Loaded(NamedTuple):
    """The users' sets, in numbers, and what the numbers stand for."""

    sets: UserSets
    users: Numbered
    items: Column
    arrays: Arrays


@dataclass(frozen=True)
class _Batch:
    """A batch in runs of rows: row r belongs to users[j] where starts[j] ≤ r < starts[j + 1].

    Users are words; where they are still a dictionary of text, there are no `starts`, and each row
    has a user. Items are numbers. Of the rows that were `read`, some repeats may be left out.
    """

    users: Words | pa.Array
    starts: Numbers | None
    items: Numbers
    read: int
    columns: Both


def load_sets(
    source: Source,
    columns: Columns,
    spill: Spill,
    progress: Progress,
    workers: Workers,
    *,
    repeats: bool = False,
) -> Loaded:
    """Read the source, number both columns, and return the distinct pairs, grouped by user."""
    rows = source.rows()
    layout, runs = _read(source, columns, spill, progress, workers, repeats=repeats)
    if not runs and not layout.is_full:
        return layout.loaded()
    runs.append(layout.run(rows, spill.disk))
    del layout
    give_memory_back()
    merging = Merging(runs, spill.disk, spill.limit, columns.seed, workers)
    return Loaded(*merging.merged(source.item_schema.types, progress), spill.disk)


def _read(
    source: Source,
    columns: Columns,
    spill: Spill,
    progress: Progress,
    workers: Workers,
    *,
    repeats: bool,
) -> "tuple[_Repeats, list[Run]]":
    """Read the source; where memory was full, all but the last of what was read is on disk."""
    rows = source.rows()
    kind = _Counts if repeats else _Repeats
    layout: _Repeats | None = None
    runs: list[Run] = []
    full = threading.Event()
    # Where nulls are items, they must not become 0, as they do among words.
    distinct = not repeats and source.nulls != "group"
    pieces = (piece for batch in source.batches() for piece in spill.pieces(batch))
    work = partial(_numbered, distinct=distinct)
    with (
        progress.bar("reading, encoding", rows) as bar,
        in_order(work, _with_columns(pieces, columns, full), workers.pool, _AHEAD) as batches,
    ):
        for batch in batches:
            if layout and layout.columns is not batch.columns:
                runs.append(layout.run(rows, spill.disk))
                layout = None
                give_memory_back()  # now that it is short, free memory is not kept
            layout = layout or kind(batch.columns, workers)
            layout.add(batch)
            # Batches on their way still belong to this run: one word is enough.
            if not layout.is_full and spill.is_due(layout.held(), layout.needed()):
                layout.is_full = True
                full.set()
            bar(batch.read)
    return layout or kind(columns.both(), workers), runs


def _with_columns(
    pieces: Iterable[pa.RecordBatch], columns: Columns, full: threading.Event
) -> Iterator[tuple[pa.RecordBatch, Both]]:
    """Yield each piece with its columns; where memory is full, new ones from there on."""
    both = columns.both()
    for piece in pieces:
        if full.is_set():
            full.clear()
            both = columns.both()
        yield piece, both


def _numbered(step: tuple[pa.RecordBatch, Both], *, distinct: bool) -> _Batch:
    """Find the runs of a batch, drop most repeats in long ones, and number the items.

    Most files have a user's rows together: one look-up for each run is enough. Repeats
    are dropped here only among integers, and only where items are to be `distinct`.
    """
    batch, columns = step
    column, *items = batch.columns
    users, starts = columns.users.words(column), None
    if users is not None:
        starts = _run_starts(users)
        users = users if len(starts) > len(users) else users.take(starts[:-1], axis=0)
        single = len(items) == 1 and encoding.is_integer_like(items[0].type)
        if distinct and single and _LONG * len(users) <= len(batch):
            values, kept = integer_rows(items[0]), np.empty((len(batch), 1), dtype=np.uint64)
            items = [_integers(kept[: drop_recent(values, starts, kept)])]
    numbers = columns.items.number(items)
    return _Batch(column if users is None else users, starts, numbers, len(batch), columns)


def _integers(rows: Words) -> pa.Array:
    return as_arrow(rows.view(np.int64))


def _numbered_users(batch: _Batch) -> tuple[Numbers, Numbers]:
    """Return the number of each run's user, and where runs start."""
    column = batch.columns.users
    if batch.starts is not None:
        return column.number_words(batch.users), batch.starts
    numbers = column.number([batch.users])
    starts = _run_starts(numbers.reshape(-1, 1))
    return numbers[starts[:-1]], starts


def _run_starts(rows: NDArray[Any]) -> Numbers:
    starts = np.empty(len(rows) + 1, dtype=np.uint32)
    count = kernels.runs(rows, starts)
    starts[count] = len(rows)
    return starts[: count + 1]


class _Repeats:
    """Drops repeated pairs as batches come, and lays out the rest by user at the end.

    As long as each user's rows are together, pairs are laid out as they come; those of later rows
    are sorted roughly by user first.
    """

    def __init__(self, columns: Both, workers: Workers) -> None:
        self.columns = columns
        self._workers = workers
        self._pairs, self._sizes = Growing(np.uint32), Growing(np.uint64)
        self._last = Growing(np.uint32)
        self._together = Together()
        self._count = 0
        self._user_count = 1
        self._scattered: Scattered | None = None
        self._watch = Watch()
        self.is_full = False

    def add(self, batch: _Batch) -> None:
        (users, starts), items = _numbered_users(batch), batch.items
        # Users are numbered as they first appear: where rows are together, numbers never fall.
        if not (self._scattered or kernels.rising(users, self._user_count - 1)):
            self._scattered, self._together = Scattered(), Together()
        self._user_count = max(self._user_count, int(users.max()) + 1)
        if self._scattered:
            self._scatter(self._scattered, users, starts, items)
        else:
            lengths = self._keep(users, starts, items)
            kernels.add_sizes(users, lengths, self._sizes.touched_upto(self._user_count))

    def held(self) -> int:
        """Return about how many bytes are held."""
        pairs = self._pair_bytes() * self._count
        scattered = self._scattered.held() if self._scattered else 0
        columns = sum(column.held() for column in self.columns)
        repeats = self._item_bytes() * self.columns.items.size() + self._together.held()
        return columns + pairs + scattered + 8 * self.columns.users.size() + repeats

    def needed(self) -> int:
        """Return how many more it takes, at the least, to lay out what was read and run rounds."""
        gathered = self._count + self._scattered.count if self._scattered else 0
        return (
            _WORKING_SPACE
            + self._pair_bytes() * gathered
            + _USER_BYTES * self.columns.users.size()
            + _ITEM_BYTES * self.columns.items.size()
        )

    def loaded(self) -> Loaded:
        """Return all that was read, in memory."""
        users, items = self._finished()
        scattered, sets = self._scattered, self.sets()
        arrays = InMemory(scattered.memory()) if scattered else InMemory()
        return Loaded(sets, users, items, arrays)

    def run(self, rows: int | None, disk: Disk) -> Run:
        """Write what was read to disk, as one of several runs."""
        users, items = self._finished()
        return write_run(self.sets(), users, items, buckets_for(rows), disk)

    def _finished(self) -> Both:
        for column in self.columns:
            column.finish()
        return self.columns

    def sets(self) -> UserSets:
        """Return the pairs by user."""
        self._last, self._together = Growing(np.uint32), Together()
        sizes = self._sizes.upto(self._user_count)[: self._user_count]
        if self._scattered:
            return self._gathered(self._scattered, sizes)
        ends = np.cumsum(sizes, dtype=np.uint64)
        return UserSets(self._pairs.upto(0)[: self._count], ends, self._times())

    def _gathered(self, scattered: Scattered, before: NDArray[np.uint64]) -> UserSets:
        """Return all pairs in order, without repeats; users had `before` in order already."""
        total = self._count + scattered.count
        check_room(self._pair_bytes() * total)
        sizes, parts, parallel = before.copy(), range(scattered.lists), self._workers.pool.map
        list(parallel(lambda part: scattered.add_sizes(part, sizes), parts))
        ends = np.cumsum(sizes, dtype=np.uint64)
        places = ends - sizes
        items, counts = zeros(total, np.uint32), self._ones(total)
        runs = np.arange(len(before), dtype=np.uint32), before.astype(np.uint32)
        if self._count:
            kernels.regroup(self._times(), *runs, places.copy(), counts)
            kernels.regroup(self._pairs.upto(0)[: self._count], *runs, places, items)
        self._pairs = Growing(np.uint32)
        edges = np.minimum(np.arange(scattered.lists + 1) << scattered.bits, len(ends))
        shares = [(int(first), int(stop)) for first, stop in itertools.pairwise(edges)]
        begins = begins_of(shares, ends)

        def work(part: int, begin: int, share: tuple[int, int]) -> int:
            scattered.place(part, places, items)
            return kernels.drop_repeats(items, counts, ends, begin, *share)

        stops = list(parallel(work, parts, begins, shares))
        self._scattered = None
        left = close_gaps([items, counts], ends, shares, begins, stops)
        return UserSets(items[:left], ends, counts[:left])

    def _scatter(
        self, scattered: Scattered, users: Numbers, starts: Numbers, items: Numbers
    ) -> None:
        """Add rows, without most repeats where they are watched."""
        before, is_on = scattered.count, self._watch.is_on(len(items))
        last = self._last_users() if is_on else _NONE
        scattered.add(users, starts, items, last, self._user_count)
        if is_on:
            self._watch.note(len(items), before + len(items) - scattered.count)

    def _last_users(self) -> Numbers:
        """Return one more than the last user of each item, as far as rows were watched."""
        last: Numbers = self._last.touched_upto(self.columns.items.size())
        return last

    def _keep(self, users: Numbers, starts: Numbers, items: Numbers) -> Numbers:
        """Append the new pairs of these runs; return how many there are of each run."""
        lengths = np.empty(len(users), dtype=np.uint32)
        pairs = self._pairs.upto(self._count + len(items))
        self._count = self._together.keep(users, starts, items, pairs, self._count, lengths)
        return lengths

    def _pair_bytes(self) -> int:
        return 4

    def _item_bytes(self) -> int:
        return 4 if self._scattered else 0

    def _times(self) -> Numbers:
        """Return how often each pair kept so far occurred, where that is known."""
        return _NONE

    def _ones(self, rows: int) -> Numbers:
        """Return a count for each of these rows, where rows are counted."""
        del rows
        return _NONE


class _Counts(_Repeats):
    """Counts repeated pairs as it drops them; where rows are scattered, in the end."""

    def __init__(self, columns: Both, workers: Workers) -> None:
        super().__init__(columns, workers)
        self._counts, self._places = Growing(np.uint32), Growing(np.uint64)

    def _scatter(
        self, scattered: Scattered, users: Numbers, starts: Numbers, items: Numbers
    ) -> None:
        """Add all rows: repeats stay until they can be counted."""
        scattered.add(users, starts, items, _NONE, self._user_count)

    def _keep(self, users: Numbers, starts: Numbers, items: Numbers) -> Numbers:
        lengths = np.empty(len(users), dtype=np.uint32)
        most, distinct = self._count + len(items), self.columns.items.size()
        last, places = self._last.touched_upto(distinct), self._places.upto(distinct)
        pairs, counts = self._pairs.upto(most), self._counts.upto(most)
        self._count = folds.keep_counted(
            users, starts, items, last, places, pairs, counts, self._count, lengths
        )
        return lengths

    def _pair_bytes(self) -> int:
        return 8

    def _item_bytes(self) -> int:
        return 12

    def _times(self) -> Numbers:
        times: Numbers = self._counts.upto(0)[: self._count]
        return times

    def _ones(self, rows: int) -> Numbers:
        return np.ones(rows, dtype=np.uint32)
