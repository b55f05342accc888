"""dp-sips on Spark against Spark's own COUNT(DISTINCT) per item, on the same cached input.

    python benchmarks/spark_against_count.py --rows 1000000 10000000 50000000
    python benchmarks/spark_against_count.py --rows 10000000 --workers 1 2 --only sips --pin
    python benchmarks/spark_against_count.py --rows 1000 2300000 --local --text --partitions 1

Each size runs on a standalone cluster on loopback, one core a worker; with --local, in one process
with two threads. Medians, after two warm-ups. With --text, users are u123@example.com and items
https://site.example/page/456. With --driver-bytes 0, the driver takes no small input.
With --pin a worker has a core of the machine and no more; without, its Java and its Python run
side by side, and one worker of two cores takes what was to be the other's.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as all of Spark's users call it)
from spark_cluster import cluster

from dp_sips import select_partitions
from dp_sips.engines.spark import SparkEngine
from dp_sips.progress import Progress
from dp_sips.synthetic import write_synthetic

ROWS_PER_USER = 57.7


def main() -> None:
    """Print one row for each size, number of workers and contender."""
    warnings.simplefilter("ignore", FutureWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--pin", action="store_true", help="hold each worker on its own core")
    parser.add_argument("--only", action="append", help="a contender; all unless named")
    parser.add_argument("--local", action="store_true", help="local[2] in place of a cluster")
    parser.add_argument("--text", action="store_true", help="users and items of text")
    parser.add_argument("--partitions", type=int, default=8, help="those of the input")
    parser.add_argument("--driver-bytes", type=int, default=SparkEngine().driver_bytes)
    parser.add_argument("--warm", type=int, default=2, help="runs before those that count")
    options = parser.parse_args()
    print("| rows | workers | | seconds | of COUNT(DISTINCT) | of sips | µs per row | items |")
    print("|---|---|---|---|---|---|---|---|")
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "synthetic.parquet"
            with path.open("wb") as sink:
                users = round(rows / ROWS_PER_USER)
                write_synthetic(sink, users=users, seed=0, progress=Progress(show=False))
            for workers in options.workers:
                with _session(workers, options) as spark:
                    _measure(spark, path, workers, options)


@contextmanager
def _session(workers: int, options: argparse.Namespace) -> Iterator[SparkSession]:
    if options.local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.log.level", "OFF")
        builder = builder.config("spark.driver.memory", options.memory)
        spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        yield spark
        spark.stop()
        return
    with cluster(workers, memory=options.memory, pin=options.pin) as running:
        spark = running.session(spark_executor_memory=options.memory)
        try:
            yield spark
        finally:
            spark.stop()


def _input(spark: SparkSession, path: Path, options: argparse.Namespace) -> DataFrame:
    frame = spark.read.parquet(str(path))
    if options.text:
        texts = "'u', user, '@example.com'", "'https://site.example/page/', item"
        frame = frame.selectExpr(*(f"concat({t}) AS {n}" for t, n in zip(texts, frame.columns)))  # noqa: B905
    return frame.repartition(options.partitions).persist()


def _measure(spark: SparkSession, path: Path, workers: int, options: argparse.Namespace) -> None:
    frame = _input(spark, path, options)
    rows, engine = frame.count(), SparkEngine(driver_bytes=options.driver_bytes)
    contenders: dict[str, Callable[[], int]] = {
        "COUNT(DISTINCT)": lambda: _count_distinct(frame),
        "weighted-gaussian": lambda: _ours(frame, engine, "weighted-gaussian"),
        "sips": lambda: _ours(frame, engine, "sips"),
        "auto": lambda: _ours(frame, engine, "auto"),
        "matching": lambda: _ours(frame, engine, "matching"),
    }
    contenders = {name: contenders[name] for name in options.only or contenders}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    counts: dict[str, int] = {}
    for _ in range(options.warm):
        for run in contenders.values():
            run()
    for _ in range(options.repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            counts[name] = run()
            times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(measured) for name, measured in times.items()}
    for name, seconds in medians.items():
        of_count, of_sips = (
            f"{seconds / medians[other]:.2f}×" if other in medians else ""
            for other in ("COUNT(DISTINCT)", "sips")
        )
        print(
            f"| {rows:,} | {workers} | {name} | {seconds:.2f} | {of_count} | {of_sips} "
            f"| {seconds / rows * 1e6:.2f} | {counts[name]:,} |",
            flush=True,
        )


def _count_distinct(frame: DataFrame) -> int:
    counted = frame.groupBy("item").agg(F.countDistinct("user").alias("users"))
    # All numbers are used: Spark would not work out those that nobody asks for.
    return counted.agg(F.count("*"), F.sum("users")).collect()[0][0]  # type: ignore[no-any-return]


def _ours(frame: DataFrame, engine: SparkEngine, mechanism: str) -> int:
    options = {"user": "user", "item": "item", "epsilon": 1, "delta": 1e-5, "progress": False}
    selection = select_partitions(frame, mechanism=mechanism, engine=engine, **options)  # type: ignore[arg-type]
    return selection.items.count()  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
