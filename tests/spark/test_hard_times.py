"""Workers die, tasks run twice, cached blocks get lost: the release stays the same."""

import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips import select_partitions
from dp_sips.engines.spark.contributions import SparkContributions
from dp_sips.engines.spark.wire import SHUFFLE_SCHEMA

OPTIONS: dict[str, Any] = {
    "user": "u", "item": "i", "rho": 0.5, "delta": 0.01, "mechanism": "sips", "max_items": 5,
    "seed": 1, "insecure_test": True,
}  # fmt: skip


def data() -> Any:
    random = np.random.default_rng(7)
    return pa.table({"u": random.integers(0, 4000, 60_000), "i": random.zipf(1.3, 60_000) % 5000})


def released(frame: Any) -> list[int]:
    return [row.i for row in select_partitions(frame, **OPTIONS).items.collect()]


def expected() -> Any:
    return select_partitions(data(), **OPTIONS).items["i"].to_pylist()


def test_lost_cache_blocks(spark: Any, monkeypatch: Any) -> None:
    """Before each round, all that is cached is thrown away and has to be computed again."""
    weigh = SparkContributions.weigh
    lost = []

    def forgetful(self: Any, *rules: Any, **more: Any) -> Any:
        for held in spark.sparkContext._jsc.getPersistentRDDs().values():
            held.unpersist()
            lost.append(held)
        return weigh(self, *rules, **more)

    monkeypatch.setattr(SparkContributions, "weigh", forgetful)
    assert released(spark.createDataFrame(data()).repartition(4)) == expected()
    assert lost


def test_a_worker_dies_in_the_middle_of_a_round(
    cluster: Any, spark: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    """Kill −9, while tasks of the second round run: they wait for it."""
    weigh = SparkContributions.weigh
    running, dead = tmp_path / "running", tmp_path / "dead"
    rounds = count(1)

    def wait(batches: Any) -> Any:
        running.touch()
        while not dead.exists():
            time.sleep(0.01)
        yield from batches

    def observed(self: Any, *rules: Any, **more: Any) -> Any:
        sums = weigh(self, *rules, **more)
        return sums.mapInArrow(wait, SHUFFLE_SCHEMA) if next(rounds) == 2 else sums

    def murder() -> None:
        while not running.exists():
            time.sleep(0.01)
        cluster.kill(0)
        dead.touch()

    monkeypatch.setattr(SparkContributions, "weigh", observed)
    frame = spark.createDataFrame(data()).repartition(4)
    wanted = expected()
    murderer = threading.Thread(target=murder)
    murderer.start()
    assert released(frame) == wanted
    murderer.join()
    monkeypatch.undo()
    assert released(frame) == wanted
    cluster.add_worker(cores=1, memory="1g")
