"""Workers die, tasks run twice, cached blocks get lost: the release stays the same."""

import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips import select_partitions
from dp_sips.engines.spark import engine as spark_engine

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
    weigh = spark_engine.SparkContributions.weigh
    lost = []

    def forgetful(self: Any, *rules: int) -> Any:
        for held in spark.sparkContext._jsc.getPersistentRDDs().values():
            held.unpersist()
            lost.append(held)
        return weigh(self, *rules)

    monkeypatch.setattr(spark_engine.SparkContributions, "weigh", forgetful)
    assert released(spark.createDataFrame(data()).repartition(4)) == expected()
    assert lost


def test_a_worker_dies_in_the_middle_of_a_round(cluster: Any, spark: Any, monkeypatch: Any) -> None:
    """Kill −9, while the tasks of the second round run."""
    weigh = spark_engine.SparkContributions.weigh
    rounds: list[threading.Timer] = []

    def fatal(self: Any, *rules: int) -> Any:
        rounds.append(threading.Timer(0.3, lambda: cluster.kill(0)))
        if len(rounds) == 2:
            rounds[-1].start()
        return weigh(self, *rules)

    monkeypatch.setattr(spark_engine.SparkContributions, "weigh", fatal)
    frame = spark.createDataFrame(data()).repartition(4)
    wanted = expected()
    assert released(frame) == wanted
    rounds[1].join()
    end = time.monotonic() + 60
    while cluster.workers[0].poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    assert cluster.workers[0].poll() is not None
    monkeypatch.undo()
    assert released(frame) == wanted
