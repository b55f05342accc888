"""The Spark engine: one shuffle by user, then one by item for each round."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from dp_sips.engines.base import Engine
from dp_sips.engines.encoding import public_counts
from dp_sips.engines.memory.engine import MemoryEngine
from dp_sips.engines.spark.contributions import SparkContributions
from dp_sips.engines.spark.gathering import Gatherer, collect_rows
from dp_sips.engines.spark.reading import are_paths, read_files, read_source
from dp_sips.engines.spark.session import find_session, print_plan
from dp_sips.engines.spark.wire import WorkerKey
from dp_sips.privacy import bounding
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import Source
from dp_sips.validation import check_whole


@dataclass(frozen=True)
class SparkEngine(Engine):
    """Runs a plan on Apache Spark.

    Attributes:
        master: The address of the cluster, such as spark://host:7077 or local[4], if no session is
            active; local[*] by default. A Spark table brings its own session.
        broadcast_items: The largest number of removed items to broadcast; more are removed by an
            anti-join.
        collect_bytes: How much of the users' sets the driver takes at most: all lists for
            "matching", and what is left in the last rounds of "cumulative".
        driver_items: The largest number of remaining items that the driver finishes by itself.
        driver_bytes: How large users' sets are at most that the driver takes, to run all rounds by
            itself. Of a table that Spark knows to be no larger, and that has a row for each 64
            bytes of this at most, the driver takes the rows. With 0 it takes neither.
        explain: Whether to print the physical plan of each step to stderr.
    """

    master: str | None = None
    broadcast_items: int = 5_000_000
    collect_bytes: int = 800_000_000
    driver_items: int = 100_000
    driver_bytes: int = 256_000_000
    explain: bool = False

    def __post_init__(self) -> None:
        check_whole("broadcast_items", self.broadcast_items, least=0)
        check_whole("collect_bytes", self.collect_bytes, least=0)
        check_whole("driver_items", self.driver_items, least=0)
        check_whole("driver_bytes", self.driver_bytes, least=0)

    def read(self, data: Any) -> Any:
        """Return paths as a table that Spark reads; everything else as it is."""
        if not are_paths(data):
            return data
        return read_files(data, lambda: find_session(self.master))

    def load(self, source: Source, bounds: Bounds, key: Key, progress: Progress) -> Contributions:
        """Shuffle the pairs by user, once; small input goes to the driver, rows or users' sets."""
        rows = collect_rows(source, self.driver_bytes)
        if rows is not None:
            if self.explain:
                print_plan(source.feed.frame)
            return MemoryEngine().load(rows, bounds, key, progress)
        public = public_counts(bounds.public_counts, source, key)
        loaded = SparkContributions(
            *read_source(source, self.master),
            source=source,
            bounds=bounds,
            key=WorkerKey.of(key),
            turns=partial(bounding.turns, key),
            public=public,
            broadcast_items=self.broadcast_items,
            collect_bytes=self.collect_bytes,
            driver_items=self.driver_items,
            explain=self.explain,
        )
        if not bounds.max_items:
            return loaded
        try:
            with progress.bar("laying out by user", 1, unit="step") as bar:
                loaded.lay_out()
                bar(1)
            gatherer = Gatherer(key, source.item_schema, public, loaded.values_of)
            # Users are counted by their whole sets, which the cluster reads once more.
            gathered = None if bounds.whole else loaded.gather(gatherer, self.driver_bytes)
        except BaseException:
            loaded.close()
            raise
        if gathered is None:
            return loaded
        loaded.close()
        return gathered
