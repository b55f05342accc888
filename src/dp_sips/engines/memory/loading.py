"""From batches to the layout in which rounds are fast: each user's distinct items side by side.

Three stages run at the same time, each in a thread of its own: the source reads and decodes, items
are numbered, and users are numbered and repeats dropped. Only numbers are kept, four bytes a pair.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.memory import folds, kernels
from dp_sips.engines.memory.allocator import give_memory_back
from dp_sips.engines.memory.disk import Arrays, Disk, InMemory
from dp_sips.engines.memory.merging import Merging
from dp_sips.engines.memory.numbering import (
    Column,
    GrowingColumn,
    IntegerColumn,
    Numbered,
    Numbers,
    Workers,
    check_numbers,
    integer_rows,
)
from dp_sips.engines.memory.runs import Run, buckets_for, write_run
from dp_sips.engines.memory.sets import UserSets, begin_of, begins_of, close_gaps, cuts
from dp_sips.engines.memory.spilling import Spill
from dp_sips.progress import Progress
from dp_sips.sources import Source

T = TypeVar("T")

_MOST_FORESEEN = 1 << 28
"""Pairs to ask memory for before any is read: beyond, growing in place costs nothing."""
_USER_BYTES, _ITEM_BYTES = 16, 18
"""What a round needs of each user (size and end) and item (a histogram, evidence, two flags)."""
_WORKING_SPACE = 1 << 27
"""Bytes for batches on their way, and for what libraries set aside."""
_NONE: Numbers = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True)
class Columns:
    """Makes empty columns for users and items; the seed is for tables of their own."""

    users: Callable[[], GrowingColumn]
    items: Callable[[], GrowingColumn]
    seed: int


class Loaded(NamedTuple):
    """The users' sets, in numbers, and what the numbers stand for."""

    sets: UserSets
    users: Numbered
    items: Column
    arrays: Arrays


@dataclass(frozen=True)
class _Numbered:
    """A batch whose items are numbers of a column already."""

    users: pa.Array
    items: Numbers
    column: GrowingColumn


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
    foreseen = min(rows or 1 << 20, _MOST_FORESEEN)
    kind = _Counts if repeats else _Repeats
    layout = kind(columns.users(), foreseen, workers)
    runs: list[Run] = []
    full, stopped = threading.Event(), threading.Event()
    with progress.bar("reading, encoding", rows) as bar:
        try:
            pieces = (piece for batch in source.batches() for piece in spill.pieces(batch))
            batches = _numbered(ahead(pieces, stopped), columns.items, full)
            for batch in ahead(batches, stopped):
                if layout.items not in (None, batch.column):
                    runs.append(layout.run(columns, rows, spill.disk))
                    layout = kind(columns.users(), foreseen, workers)
                    give_memory_back()  # now that it is short, free memory is not kept
                layout.add(batch)
                # Batches on their way still belong to this run: one word is enough.
                if not layout.is_full and spill.is_due(layout.held(), layout.needed()):
                    layout.is_full = True
                    full.set()
                bar(len(batch.items))
        finally:
            stopped.set()
    if not runs and not layout.is_full:
        return layout.loaded(columns)
    runs.append(layout.run(columns, rows, spill.disk))
    del layout
    give_memory_back()
    merging = Merging(runs, spill.disk, spill.limit, columns.seed, workers)
    return Loaded(*merging.merged(source.item_schema.types, progress), spill.disk)


def ahead(steps: Iterable[T], stopped: threading.Event, depth: int = 4) -> Iterator[T]:
    """Run an iterator in a thread of its own, at most `depth` results ahead of its reader.

    An error in the thread is raised here. Once `stopped` is set, both sides end.
    """
    results = _Results(depth, stopped)

    def work() -> None:
        try:
            for step in steps:
                results.put((step,))
                if stopped.is_set():
                    return
            results.put(None)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the reader must hear of it)
            results.put(error)

    threading.Thread(target=work, name="dp-sips reader", daemon=True).start()
    while (result := results.get()) is not None:
        if isinstance(result, BaseException):
            raise result
        yield result[0]


class _Results:
    """A queue at which nobody waits any longer once `stopped` is set."""

    def __init__(self, depth: int, stopped: threading.Event) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(depth)
        self._stopped = stopped

    def put(self, result: Any) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                return self._queue.put(result, timeout=0.1)
        return None

    def get(self) -> Any:
        while not self._stopped.is_set():
            with suppress(queue.Empty):
                return self._queue.get(timeout=0.1)
        return None


def _numbered(
    batches: Iterable[pa.RecordBatch],
    new_column: Callable[[], GrowingColumn],
    full: threading.Event,
) -> Iterator[_Numbered]:
    """Number the items of batches; where memory is full, with a new column from there on."""
    items = new_column()
    for batch in batches:
        if full.is_set():
            full.clear()
            items = new_column()
        check_numbers(items.size())
        yield _Numbered(batch.column(0), items.number(batch.columns[1:]), items)


def _user_runs(users: GrowingColumn, column: pa.Array) -> tuple[Numbers, Numbers]:
    """Return the user of each run of equal users, and where each run starts, and the end."""
    if isinstance(users, IntegerColumn):
        # Most files have a user's rows together: one look-up for each run is enough.
        rows = integer_rows(column)
        starts = _run_starts(rows)
        return users.number_rows(rows[starts[:-1]]), starts
    numbers = users.number([column])
    starts = _run_starts(numbers.reshape(-1, 1))
    return numbers[starts[:-1]], starts


def _run_starts(rows: NDArray[Any]) -> Numbers:
    starts = np.empty(len(rows) + 1, dtype=np.uint32)
    count = kernels.runs(rows, starts)
    starts[count] = len(rows)
    return starts[: count + 1]


class _Repeats:
    """Drops repeated pairs as batches come, and lays out the rest by user at the end."""

    def __init__(self, users: GrowingColumn, rows: int, workers: Workers) -> None:
        self._users = users
        self.items: GrowingColumn | None = None
        self._workers = workers
        # Memory that is asked for and not written costs nothing.
        self._items: Numbers = np.empty(rows, dtype=np.uint32)
        self._count = 0
        self._last: Numbers = np.zeros(1 << 16, dtype=np.uint32)
        self._owners: list[tuple[Numbers, Numbers]] = []
        self._sizes: NDArray[np.uint64] = np.zeros(1 << 16, dtype=np.uint64)
        self._user_count = 1
        self._latest = 0
        self._scattered = False
        self._owned = 0
        self.is_full = False

    def add(self, batch: _Numbered) -> None:
        self.items = batch.column
        self._make_room(self._count + len(batch.items), batch.column.size())
        check_numbers(self._users.size())
        users, starts = _user_runs(self._users, batch.users)
        self._remember(users, self._keep(users, starts, batch.items, _NONE))

    def _remember(self, users: Numbers, lengths: Numbers) -> None:
        """Note whose the pairs are that were kept: run by run or, where runs are short, singly."""
        if len(self._sizes) < self._users.size():
            self._sizes.resize(self._users.size() * 5 // 4, refcheck=False)
        # Users are numbered as they first appear: where rows are together, numbers never fall.
        self._scattered |= not kernels.add_sizes(users, lengths, self._sizes, self._latest)
        self._latest = int(users[-1])
        self._user_count = max(self._user_count, int(users.max()) + 1)
        if (pairs := int(lengths.sum())) < 2 * len(users):
            each = np.empty(pairs, dtype=np.uint32)
            kernels.owners(users, lengths, each)
            users, lengths = each, _NONE
        self._owners.append((users, lengths))
        self._owned += users.nbytes + lengths.nbytes

    def held(self) -> int:
        """Return about how many bytes are held."""
        columns = self._users.held() + (self.items.held() if self.items else 0)
        return columns + 4 * self._count + self._owned + self._sizes.nbytes + self._last.nbytes

    def needed(self) -> int:
        """Return how many more it takes, at the least, to lay out what was read and run rounds."""
        return (
            _WORKING_SPACE
            + (4 * self._count if self._scattered else 0)
            + _USER_BYTES * self._users.size()
            + _ITEM_BYTES * (self.items.size() if self.items else 0)
        )

    def loaded(self, columns: Columns) -> Loaded:
        """Return all that was read, in memory."""
        sets, items = self.sets(), self._finished(columns)
        return Loaded(sets, self._users, items, InMemory())

    def run(self, columns: Columns, rows: int | None, disk: Disk) -> Run:
        """Write what was read to disk, as one of several runs."""
        sets, items = self.sets(), self._finished(columns)
        return write_run(sets, self._users, items, buckets_for(rows), disk)

    def _finished(self, columns: Columns) -> GrowingColumn:
        """Finish both columns; return that of the items, which is empty where none was read."""
        items = self.items or columns.items()
        self._users.finish()
        items.finish()
        return items

    def sets(self) -> UserSets:
        """Return the pairs by user; where a user's rows were scattered, gather them first."""
        sizes = self._sizes[: self._user_count]
        ends = np.cumsum(sizes, dtype=np.uint64)
        if self._scattered:
            items, times = (
                self._grouped(column, ends - sizes)
                for column in (self._items[: self._count], self._times())
            )
            self._owners.clear()
            # Now each user's items are together, so one more pass leaves no repeat.
            self._merge(items, times, ends)
        return UserSets(self._items[: self._count], ends, self._times())

    def _grouped(self, column: Numbers, places: NDArray[np.uint64]) -> Numbers:
        """Return a column of pairs with each user's side by side, from `places[user]` on."""
        grouped = np.empty_like(column)

        def work(share: tuple[int, int]) -> None:
            at = 0
            for users, lengths in self._owners:
                at += kernels.regroup(column[at:], users, lengths, places, grouped, *share)

        if len(column):
            shares = cuts(np.append(places[1:], np.uint64(len(column))), self._workers.shards)
            list(self._workers.pool.map(work, shares))
        return grouped

    def _merge(self, items: Numbers, times: Numbers, ends: NDArray[np.uint64]) -> None:
        """Drop repeats from pairs that are grouped by user; `ends` follows."""
        del times
        self._items = items
        self._last = _NONE

        shares = cuts(ends, self._workers.shards)
        begins = begins_of(shares, ends)

        def work(begin: int, share: tuple[int, int]) -> int:
            return kernels.drop_repeats(items, ends, begin, *share)

        stops = list(self._workers.pool.map(work, begins, shares))
        self._count = close_gaps(items, ends, shares, begins, stops)

    def _make_room(self, rows: int, distinct_items: int) -> None:
        """Make room for this many pairs and items."""
        if len(self._items) < rows:
            self._items.resize(rows + self._count // 4, refcheck=False)
        if len(self._last) < distinct_items:
            self._last.resize(distinct_items * 5 // 4, refcheck=False)

    def _keep(self, users: Numbers, starts: Numbers, items: Numbers, times: Numbers) -> Numbers:
        """Append the new pairs of these runs; return how many there are of each run."""
        del times
        lengths = np.empty(len(users), dtype=np.uint32)
        self._count += kernels.keep_new(
            users, starts, items, self._last, self._items[self._count :], lengths
        )
        return lengths

    def _times(self) -> Numbers:
        """Return how often each pair kept so far occurred, where that is known."""
        return _NONE


class _Counts(_Repeats):
    """Counts repeated pairs as it drops them."""

    def __init__(self, users: GrowingColumn, rows: int, workers: Workers) -> None:
        super().__init__(users, rows, workers)
        self._counts: Numbers = np.empty(rows, dtype=np.uint32)
        self._places: NDArray[np.uint64] = np.zeros(1 << 16, dtype=np.uint64)

    def _make_room(self, rows: int, distinct_items: int) -> None:
        super()._make_room(rows, distinct_items)
        self._counts.resize(len(self._items), refcheck=False)
        self._places.resize(len(self._last), refcheck=False)

    def _merge(self, items: Numbers, times: Numbers, ends: NDArray[np.uint64]) -> None:
        self._items, self._counts = items, times
        self._last.fill(0)
        self._count = 0
        users = np.arange(len(ends), dtype=np.uint32)
        sizes = []
        for first, stop in cuts(ends, -(-len(items) // (1 << 30))):
            begin, end = begin_of(first, ends), begin_of(stop, ends)
            starts = (np.append(begin, ends[first:stop]) - begin).astype(np.uint32)
            sizes.append(self._keep(users[first:stop], starts, items[begin:end], times[begin:end]))
        np.cumsum(np.concatenate(sizes), dtype=np.uint64, out=ends)

    def _keep(self, users: Numbers, starts: Numbers, items: Numbers, times: Numbers) -> Numbers:
        lengths = np.empty(len(users), dtype=np.uint32)
        self._count = folds.keep_counted(
            users,
            starts,
            items,
            times,
            self._last,
            self._places,
            self._items,
            self._counts,
            self._count,
            lengths,
        )
        return lengths

    def _times(self) -> Numbers:
        return self._counts[: self._count]
