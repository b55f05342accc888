"""One suite for every engine: a new engine is one more line in `ENGINES`."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.spilling import SpillingEngine

from dp_sips import MemoryEngine, select_partitions
from dp_sips.engines.reference import ReferenceEngine
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source


def spark_engine(**options: Any) -> Any:
    """Return the Spark engine on a small session of this process, which the tests share."""
    # Spark's workers are to run in this environment, not in whatever is first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from dp_sips.engines.spark import SparkEngine

    builder = SparkSession.builder.master("local[2]").appName("conformance")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    return SparkEngine(**options)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave Spark out where a test runs an engine very often: tests/spark has a few of those.

    The disk is left out where there are a great many rows, which it takes a few at a time here.
    Spark's driver is the memory engine, once it has the rows: one file tells whether it gets them.
    """
    many = ("test_any_", "test_order_", "test_all_singletons_", "test_every_key_")
    left_out = {"spark": many, "memory-disk": ("test_tables_grow", "test_order_")}
    items[:] = [
        item
        for item in items
        if not any(name in item.name and item.name.startswith(of) for name, of in left_out.items())
        and not ("spark-driver" in item.name and item.path.stem != "test_engines_agree")
    ]


ENGINES: dict[str, Callable[[], Any]] = {
    "reference": ReferenceEngine,
    "memory-1": lambda: MemoryEngine(threads=1),
    "memory-2": lambda: MemoryEngine(threads=2),
    "memory-8": lambda: MemoryEngine(threads=8),
    "memory-disk": lambda: SpillingEngine(threads=2),
    "spark": lambda: spark_engine(driver_bytes=0),
    "spark-driver": spark_engine,
}

Histogram = dict[bytes, int]
"""The weight of each item that has any, by its block."""


def by_verdict(contributions: Any, weights: Any) -> Histogram:
    """Read the weights as every engine hands them to `decide`: beside the items' blocks."""
    found: Histogram = {}
    if hasattr(weights, "toArrow"):
        # Spark asks for verdicts in other processes: nothing noted there would come back.
        from dp_sips.engines.spark.sums import add_up
        from dp_sips.engines.spark.wire import payloads_of

        sums = add_up(payloads_of(weights.toArrow().to_batches()))
        return {
            block.tobytes(): int(weight)
            for block, weight in zip(sums.blocks, sums.weights, strict=True)
        }

    def note(blocks: Any, column: Any) -> Any:
        held = np.flatnonzero(column)
        found.update((blocks[row].tobytes(), int(column[row])) for row in held)
        return column > 0

    contributions.decide(weights, note)
    return found


@dataclass(frozen=True)
class Rounds:
    """What an engine does: weights and releases of rounds in which `chosen` items are removed."""

    engine: Any

    @staticmethod
    def read(contributions: Any, weights: Any) -> Histogram:
        """Read the weights that loaded contributions have returned."""
        return by_verdict(contributions, weights)

    def weights(
        self, data: Any, max_items: int, removed: Callable[[bytes], bool], seed: int, **options: Any
    ) -> tuple[Histogram, Histogram]:
        """Return the weights of a first round, and of a second without the removed items."""
        source = open_source(data, **{"nulls": "error"} | options)
        loaded = self.engine.load(
            source, Bounds(max_items), Key.for_tests(seed), Progress(show=False)
        )
        first = by_verdict(loaded, loaded.weigh(max_items))

        def verdicts(blocks: Any, weights: Any) -> Any:
            gone = [removed(block.tobytes()) for block in blocks]
            return (weights > 0) & gone

        loaded.remove(loaded.decide(loaded.weigh(max_items), verdicts))
        second = by_verdict(loaded, loaded.weigh(max_items))
        loaded.close()
        return first, second

    def seated(
        self, data: Any, seats: tuple[int, int, int], bounds: Bounds, seed: int, **options: Any
    ) -> Histogram:
        """Return the weights that `settle` gives, with these seats, spare seats and laps."""
        source = open_source(data, **{"nulls": "error"} | options)
        loaded = self.engine.load(source, bounds, Key.for_tests(seed), Progress(show=False))
        found = by_verdict(loaded, loaded.settle(*seats, bounds.max_items))
        loaded.close()
        return found

    def counted(self, data: Any, bounds: Bounds, max_items: int, **options: Any) -> Histogram:
        """Return the weights of a round that counts fewer items than the bound on sets."""
        source = open_source(data, **{"nulls": "error"} | options)
        loaded = self.engine.load(source, bounds, Key.for_tests(3), Progress(show=False))
        found = by_verdict(loaded, loaded.weigh(max_items))
        loaded.close()
        return found

    def release(self, data: Any, **options: Any) -> Any:
        """Run the whole mechanism with a test key."""
        defaults: dict[str, Any] = {"rho": 0.5, "delta": 0.01, "seed": 1, "insecure_test": True}
        return select_partitions(data, engine=self.engine, **defaults | options)


@pytest.fixture(params=[name for name in ENGINES if name != "reference"])
def engine(request: pytest.FixtureRequest) -> Rounds:
    """Every engine that has to agree with the reference."""
    return Rounds(ENGINES[request.param]())


@pytest.fixture(params=list(ENGINES))
def any_engine(request: pytest.FixtureRequest) -> Rounds:
    """Every engine, the reference too."""
    return Rounds(ENGINES[request.param]())


@pytest.fixture
def reference() -> Rounds:
    """The oracle."""
    return Rounds(ENGINES["reference"]())
