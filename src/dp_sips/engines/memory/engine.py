"""The memory engine: numbers in flat arrays, and rounds that only add integers."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.memory import folds, kernels
from dp_sips.engines.memory.allocator import give_memory_back, keep_memory
from dp_sips.engines.memory.loading import Pairs, cuts, load_pairs
from dp_sips.engines.memory.numbering import Column, Workers, new_column
from dp_sips.engines.memory.splitting import add_split, counted, pieces
from dp_sips.errors import UsageError
from dp_sips.privacy import bounding
from dp_sips.privacy.adaptive import MOST, Signal, Split
from dp_sips.privacy.decide import Decide, DecideOnEvidence, Evidence
from dp_sips.privacy.noise import Blocks, Key
from dp_sips.privacy.policy import SHAVE, Liking, Policy, Proportional
from dp_sips.privacy.weights import UNIT_BITS, Weights, weight_table
from dp_sips.progress import Progress
from dp_sips.sources import Source

_MOST_SHARDS = 16
_PIECE = 1 << 18
"""Items that are decided about at a time: enough for numpy, little enough for the cache."""


@dataclass(frozen=True)
class MemoryEngine:
    """Runs a plan in this process.

    Attributes:
        threads: How many cores to use; all of them unless told otherwise.
    """

    threads: int | None = None

    takes_turns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        threads = 1 if self.threads is None else self.threads
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise UsageError(f"threads must be a whole number of at least 1, got {threads!r}")

    def load(
        self,
        source: Source,
        max_items: int,
        key: Key,
        progress: Progress,
        *,
        cut: bool = False,
        counts: bool = False,
    ) -> "MemoryContributions":
        """Read a source whole: repeats dropped, users' items in bounding order."""
        keep_memory()
        try:
            loaded = self._load(source, key, progress, counts=counts)
            loaded.order(max_items)
            if cut:
                loaded.cut(max_items)
        except BaseException:
            give_memory_back()
            raise
        return loaded

    def _load(
        self, source: Source, key: Key, progress: Progress, *, counts: bool
    ) -> "MemoryContributions":
        threads = self.threads or os.cpu_count() or 1
        pool = ThreadPoolExecutor(threads, thread_name_prefix="dp-sips")
        workers = Workers(pool, min(threads, _MOST_SHARDS))
        # One shard numbers users in order of first appearance, which shows scattered rows.
        users = _column([source.user_type], key, "users", Workers(pool, 1), nullable=False)
        kinds = list(source.item_schema.types)
        items = _column(kinds, key, "items", workers, nullable=source.nulls == "group")
        try:
            pairs = load_pairs(source, users, items, progress, counts=counts)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        users.finish()
        items.finish()
        schema = source.item_schema
        return MemoryContributions(
            pairs, users, items, schema=schema, key=key, pool=pool, threads=threads
        )


def _column(
    kinds: list[pa.DataType], key: Key, what: str, workers: Workers, *, nullable: bool
) -> Column:
    return new_column(
        kinds,
        nullable=nullable,
        seed=key.word(f"table of {what}"),
        workers=workers,
        scrambler=key.scrambler(f"long {what}"),
    )


class MemoryContributions:
    """The distinct pairs, grouped by user, as numbers."""

    def __init__(
        self,
        pairs: Pairs,
        users: Column,
        items: Column,
        *,
        schema: pa.Schema,
        key: Key,
        pool: ThreadPoolExecutor,
        threads: int,
    ) -> None:
        self._pairs = pairs
        self._users = users
        self._items = items
        self._schema = schema
        self._key = key
        self._pool = pool
        self._shares = cuts(pairs.ends, threads)
        self._longest = int(np.diff(pairs.ends, prepend=np.uint64(0)).max())
        self._gone = np.zeros(items.size(), dtype=np.bool_)
        self._released = np.zeros(items.size(), dtype=np.bool_)
        # One histogram for each thread, kept from round to round: fresh memory is slow.
        self._histograms = [np.zeros(items.size(), dtype=np.uint64) for _ in self._shares]

    @cached_property
    def _evidence(self) -> Evidence:
        return np.zeros(self._items.size())

    def order(self, max_items: int) -> None:
        """Put the items of users that have more than `max_items` in bounding order."""
        if self._longest <= max_items:
            return
        pairs = self._pairs
        words = self._user_words(), self._item_words(self._histograms[0])  # borrowed: see `weigh`

        def work(first: int, stop: int) -> None:
            kernels.order_items(
                pairs.items, pairs.counts, pairs.ends, *words, max_items, first, stop
            )

        list(self._pool.map(work, *zip(*cuts(pairs.ends, 8 * len(self._shares)), strict=True)))

    def cut(self, max_items: int) -> None:
        """Keep only the first `max_items` items of each user."""
        items, ends = self._pairs.items, self._pairs.ends
        sizes = np.minimum(np.diff(ends, prepend=np.uint64(0)), np.uint64(max_items))
        new_ends = np.cumsum(sizes, dtype=np.uint64)
        kernels.cut_items(items, ends, new_ends)
        self._pairs = Pairs(items[: int(new_ends[-1])], new_ends, self._pairs.counts)
        self._shares = cuts(new_ends, len(self._shares))
        self._histograms = self._histograms[: len(self._shares)]

    def weigh(self, max_items: int, step_bits: int = UNIT_BITS) -> Weights:
        """Return the weight of each item, by its number."""
        table = weight_table(min(max_items, self._longest), step_bits)
        removed = np.packbits(self._gone, bitorder="little")

        def work(histogram: Weights, share: tuple[int, int]) -> None:
            histogram.fill(0)
            kernels.add_weights(
                self._pairs.items, self._pairs.ends, removed, table, histogram, *share
            )

        list(self._pool.map(work, self._histograms, self._shares))
        total, *others = self._histograms
        for other in others:
            total += other
        return total

    def spread(
        self,
        split: Split,
        max_items: int,
        weights: Weights | None = None,
        signal: Signal | None = None,
    ) -> Weights:
        """Return the sum of what users give by `split`, by the items' numbers."""
        if weights is None or signal is None:
            signals = np.zeros(self._items.size(), np.int64)
        else:
            signals = self._signals(weights, signal)
        pairs, threads = self._pairs, len(self._histograms)
        shares = [pieces(pairs.ends)[i::threads] for i in range(threads)]

        def work(sums: Weights, share: list[tuple[int, int]]) -> None:
            sums.fill(0)
            for piece in share:
                items, sizes = counted(pairs.items, pairs.ends, self._gone, max_items, piece)
                add_split(split, items, sizes, signals, sums)

        list(self._pool.map(work, self._histograms, shares))
        total, *others = self._histograms
        for other in others:
            total += other
            np.minimum(total, np.uint64(MOST), out=total)
        return total

    def _signals(self, weights: Weights, signal: Signal) -> NDArray[np.int64]:
        signals = np.empty(len(weights), dtype=np.int64)

        def work(piece: slice) -> None:
            signals[piece] = signal(weights[piece], self._evidence[piece])

        self._by_pieces(work)
        return signals

    def fold(self, policy: Policy, max_items: int, liking: Liking | None = None) -> Weights:
        """Return what users paid to each item, by its number, one user after the other."""
        pairs, weights = self._pairs, self._histograms[0]
        weights.fill(0)
        order = bounding.turns(self._key, self._user_blocks())
        sets = folds.Sets(pairs.items, pairs.ends, order, min(max_items, self._longest))
        if isinstance(policy, Proportional):
            budget = 1 << policy.unit_bits
            folds.pay_proportionally(sets, weights, policy.power, policy.target, budget, SHAVE)
            return weights
        likes = pairs.counts if liking is None else self._likes(liking)
        words = weights[:0] if policy.by_row else self._item_words(np.empty_like(weights))
        folds.pay_favourites(sets, weights, policy.target, likes, liking is not None, words)
        return weights

    def decide(self, weights: Weights, decide: Decide) -> NDArray[np.bool_]:
        """Return the verdict on each item, by its number."""
        verdicts = np.empty(len(weights), dtype=np.bool_)

        def work(piece: slice) -> None:
            verdicts[piece] = decide(self._items.blocks(piece), weights[piece])

        self._by_pieces(work)
        return verdicts

    def decide_on_evidence(
        self, weights: Weights, decide: DecideOnEvidence
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return what to release and what to drop, by number; evidence of the rest is kept."""
        released = np.zeros(len(weights), dtype=np.bool_)
        dropped = np.zeros(len(weights), dtype=np.bool_)

        def work(piece: slice) -> None:
            active = np.flatnonzero(~self._gone[piece]) + piece.start
            self._evidence[active], released[active], dropped[active] = decide(
                self._items.blocks(active), weights[active], self._evidence[active]
            )

        self._by_pieces(work)
        return released, dropped

    def remove(self, verdicts: NDArray[np.bool_]) -> None:
        """Release the items with a yes, and take them out of the users' sets."""
        self._released[np.flatnonzero(verdicts)] = True
        self.drop(verdicts)

    def drop(self, verdicts: NDArray[np.bool_]) -> None:
        """Take the items with a yes out of the users' sets."""
        # Few are: the rest of the memory need not be touched.
        self._gone[np.flatnonzero(verdicts)] = True

    def close(self) -> None:
        """Free the threads and the memory that the plan used."""
        self._pool.shutdown()
        give_memory_back()

    def released(self) -> pa.Table:
        """Return the items that were released."""
        columns = self._items.values(np.flatnonzero(self._released))
        return pa.Table.from_arrays(columns, names=self._schema.names)

    def _user_words(self) -> Weights:
        return bounding.user_words(self._key, self._user_blocks())

    def _user_blocks(self) -> Blocks:
        return self._users.blocks(slice(len(self._pairs.ends)))  # there is room for more

    def _item_words(self, words: Weights) -> Weights:
        """Fill in the word of each item, by its number."""

        def work(piece: slice) -> None:
            words[piece] = bounding.item_words(self._key, self._items.blocks(piece))

        self._by_pieces(work)
        return words

    def _likes(self, liking: Liking) -> NDArray[np.uint32]:
        likes = np.empty(self._items.size(), dtype=np.uint32)

        def work(piece: slice) -> None:
            likes[piece] = liking(self._items.blocks(piece))

        self._by_pieces(work)
        return likes

    def _by_pieces(self, work: Callable[[slice], None]) -> None:
        size = self._items.size()
        list(self._pool.map(work, (slice(i, i + _PIECE) for i in range(0, size, _PIECE))))
