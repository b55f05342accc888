"""The memory engine: numbers in flat arrays, and rounds that only add integers."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from dp_sips.engines.base import Engine
from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.encoding import public_counts
from dp_sips.engines.memory.allocator import give_memory_back, keep_memory
from dp_sips.engines.memory.contributions import MemoryContributions
from dp_sips.engines.memory.loading import load_sets
from dp_sips.engines.memory.numbering import Column, Workers, new_column
from dp_sips.engines.memory.public_items import without
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.progress import Progress
from dp_sips.sources import Source
from dp_sips.validation import check_whole

_MOST_SHARDS: Final = 16


@dataclass(frozen=True)
class MemoryEngine(Engine):
    """Runs a plan in this process.

    Attributes:
        threads: How many cores to use; all of them unless told otherwise.
    """

    threads: int | None = None

    takes_turns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_whole("threads", self.threads)

    def load(
        self, source: Source, bounds: Bounds, key: Key, progress: Progress
    ) -> MemoryContributions:
        """Read a source whole: repeats dropped, users' items in bounding order."""
        keep_memory()
        try:
            loaded = self._load(source, bounds, key, progress)
            if bounds.max_items:
                loaded.order(bounds.max_items)
            if bounds.once:
                loaded.truncate(bounds.max_items, keep_whole=bounds.whole)
        except BaseException:
            give_memory_back()
            raise
        return loaded

    def _load(
        self, source: Source, bounds: Bounds, key: Key, progress: Progress
    ) -> MemoryContributions:
        schema = source.item_schema
        public = public_counts(bounds.public_counts, source, key)
        threads = self.threads or os.cpu_count() or 1
        pool = ThreadPoolExecutor(threads, thread_name_prefix="dp-sips")
        # One shard numbers users in order of first appearance, which shows scattered rows.
        users = _user_column(source.user_type, key, Workers(pool, 1))
        workers = Workers(pool, min(threads, _MOST_SHARDS))
        items = _item_column(schema, key, workers, nullable=source.nulls == "group")
        try:
            whole = load_sets(source, users, items, progress, workers, repeats=bounds.repeats)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        users.finish()
        items.finish()
        sets = whole
        if bounds.without is not None and len(bounds.without):
            known = BlockSet.of(bounds.without)
            sets = without(whole, items, known, keep_whole=bounds.whole)
        return MemoryContributions(
            sets,
            users,
            items,
            whole=whole if bounds.whole else sets,
            schema=schema,
            key=key,
            pool=pool,
            threads=threads,
            public=public,
        )


def _user_column(kind: pa.DataType, key: Key, workers: Workers) -> Column:
    return new_column(
        [kind],
        nullable=False,
        seed=key.word(Purpose.USER_TABLE),
        workers=workers,
        scrambler=key.scrambler(Purpose.LONG_USERS),
    )


def _item_column(schema: pa.Schema, key: Key, workers: Workers, *, nullable: bool) -> Column:
    return new_column(
        list(schema.types),
        nullable=nullable,
        seed=key.word(Purpose.ITEM_TABLE),
        workers=workers,
        scrambler=key.scrambler(Purpose.LONG_ITEMS),
    )
