"""Skew at its real size: one user with 5 million items, one item of every user, 90 % singletons.

    python benchmarks/spark_skew.py

A standalone cluster on loopback, two workers of one core. Beside the time of a run stands the most
memory that any Python worker held, from /proc.
"""

import argparse
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession
from spark_cluster import _children, cluster

from dp_sips import select_partitions
from dp_sips.engines.spark import SparkEngine

INPUTS = {
    "even: 5M users, 100k items": ("id AS user", "id % 100000 AS item"),
    "one user with 5M items": ("0L AS user", "id AS item"),
    "one item of each of 5M users": ("id AS user", "0L AS item"),
    "90 % singletons": ("id % 200000 AS user", "if(id % 10 = 0, id % 1000, id) AS item"),
}


def main() -> None:
    """Print a row for each input and mechanism."""
    warnings.simplefilter("ignore", FutureWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows
    print(
        "| 5M rows, beside 100k ordinary users | mechanism | seconds | Python worker, GB | items |"
    )
    print("|---|---|---|---|---|")
    with cluster(memory="3g") as running:
        spark = running.session(spark_executor_memory="2g")
        try:
            for name, columns in INPUTS.items():
                frame = _frame(spark, rows, columns)
                for mechanism in ("sips", "auto"):
                    _measure(frame, name, mechanism, [worker.pid for worker in running.workers])
                frame.unpersist()
        finally:
            spark.stop()


def _frame(spark: SparkSession, rows: int, columns: tuple[str, str]) -> DataFrame:
    skewed = spark.range(rows).selectExpr(*columns)
    others = spark.range(1_000_000).selectExpr("-1 - id % 100000 AS user", "id % 5003 AS item")
    frame = skewed.union(others).repartition(8).persist()
    frame.count()
    return frame


def _measure(frame: DataFrame, name: str, mechanism: str, workers: list[int]) -> None:
    options: dict[str, Any] = {"user": "user", "item": "item", "epsilon": 1, "delta": 1e-6}
    start = time.perf_counter()
    with Peak(workers) as peak:
        engine = SparkEngine(driver_bytes=0)
        selection = select_partitions(
            frame, engine=engine, mechanism=mechanism, progress=False, **options
        )
        items = selection.items.count()
    seconds = time.perf_counter() - start
    print(
        f"| {name} | {mechanism} | {seconds:.1f} | {peak.most / 1e9:.2f} | {items:,} |", flush=True
    )


class Peak:
    """The most memory that a Python worker holds while the block runs."""

    def __init__(self, workers: list[int]) -> None:
        self.most = 0
        self._workers = workers
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            below = [child for worker in self._workers for child in _children(worker)]
            self.most = max([self.most, *map(_resident, below)])


def _resident(process: int) -> int:
    """Return the memory of a Python process in bytes; 0 for Java, or one that is gone."""
    try:
        if not Path(f"/proc/{process}/comm").read_text().startswith("python"):
            return 0
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


if __name__ == "__main__":
    main()
