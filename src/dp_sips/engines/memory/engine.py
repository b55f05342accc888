"""The memory engine: numbers in flat arrays, and rounds that only add integers."""

import os
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

import pyarrow as pa

from dp_sips.engines.base import Engine
from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.encoding import public_counts
from dp_sips.engines.memory.allocator import keep_memory, return_to_usual
from dp_sips.engines.memory.contributions import MemoryContributions
from dp_sips.engines.memory.crew import Crew
from dp_sips.engines.memory.disk import spill_folder
from dp_sips.engines.memory.loading import Columns, load_sets
from dp_sips.engines.memory.numbering import (
    GrowingColumn,
    UserColumn,
    Workers,
    new_column,
    new_user_column,
)
from dp_sips.engines.memory.public_items import without
from dp_sips.engines.memory.spilling import Spill, check_limit
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
        memory_limit: Bytes of memory to keep to, or text such as "8 GB"; at least "200 MB", and
            70 % of what there is unless told otherwise. What is beyond goes to disk.
        spill_folder: The folder for that; unless told otherwise, the system's for temporary files.
    """

    threads: int | None = None
    memory_limit: int | str | None = None
    spill_folder: str | os.PathLike[str] | None = None

    takes_turns: ClassVar[bool] = True
    saves_rounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_whole("threads", self.threads)
        if self.memory_limit is not None:
            check_limit(self.memory_limit)
        spill_folder(self.spill_folder)

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
            return_to_usual()
            raise
        return loaded

    def _load(
        self, source: Source, bounds: Bounds, key: Key, progress: Progress
    ) -> MemoryContributions:
        schema = source.item_schema
        public = public_counts(bounds.public_counts, source, key)
        threads = self.threads or os.cpu_count() or 1
        pool = Crew(threads, thread_name_prefix="dp-sips")
        # Two shards for each of a few threads, so that they seldom wait for the same one.
        workers = Workers(pool, min(2 * threads, _MOST_SHARDS) if threads > 1 else 1)
        nullable = source.nulls == "group"
        columns = Columns(
            # One shard numbers users in order of first appearance, which shows scattered rows.
            users=partial(_user_column, source.user_type, key, Workers(pool, 1)),
            items=partial(_item_column, schema, key, workers, nullable=nullable),
            seed=key.word(Purpose.ITEM_TABLE),
        )
        spill = Spill.of(self.memory_limit, self.spill_folder)
        try:
            loaded = load_sets(source, columns, spill, progress, workers, repeats=bounds.repeats)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        whole = sets = loaded.sets
        if bounds.without is not None and len(bounds.without):
            known = BlockSet.of(bounds.without)
            sets = without(whole, loaded.items, known, loaded.arrays, keep_whole=bounds.whole)
        return MemoryContributions(
            sets,
            loaded.users,
            loaded.items,
            whole=whole if bounds.whole else sets,
            schema=schema,
            key=key,
            pool=pool,
            threads=threads,
            public=public,
            arrays=loaded.arrays,
            limit=spill.limit,
        )


def _user_column(kind: pa.DataType, key: Key, workers: Workers) -> UserColumn:
    return new_user_column(
        kind,
        seed=key.word(Purpose.USER_TABLE),
        workers=workers,
        scrambler=key.scrambler(Purpose.LONG_USERS),
    )


def _item_column(schema: pa.Schema, key: Key, workers: Workers, *, nullable: bool) -> GrowingColumn:
    return new_column(
        list(schema.types),
        nullable=nullable,
        seed=key.word(Purpose.ITEM_TABLE),
        workers=workers,
        scrambler=key.scrambler(Purpose.LONG_ITEMS),
    )
