"""The experiments that take time: against users, cores, and workers of a cluster."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import datasets
import pyarrow as pa
from measuring import Estimate

import dp_sips
from evaluation.contenders import How, contenders
from evaluation.points import Point
from evaluation.printed import MAIN
from evaluation.scale import Scale
from evaluation.sources import Source, choose

SPARK_USERS = 50_000
CORES = (1, 2)
_PARALLEL = ("Weighted Gaussian", "SIPS")
_Name = TypeVar("_Name")


def against_users(scale: Scale, cache: Path) -> Iterator[Point]:
    """File to released list in the memory engine, on generated data of growing size."""
    for users in scale.growth:
        path = datasets.synthetic(users, cache)
        calls = {name: partial(_run, path, how) for name, how in contenders(MAIN).items()}
        first = users == scale.growth[0]
        for name, seconds in _contest(calls, scale.repeats, warm_up=first).items():
            yield Point("synthetic", name, users, seconds)


def against_cores(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """File to released list in the memory engine, with one core and with two."""
    source = choose(sources, "wikipedia")[-1]
    calls = {
        (name, cores): partial(_run, source.path, how, cores)
        for name, how in contenders(MAIN).items()
        for cores in CORES
    }
    for (name, cores), seconds in _contest(calls, scale.repeats).items():
        yield Point(source.name, name, cores, seconds)


def against_workers(scale: Scale, cache: Path) -> Iterator[Point]:
    """Table in memory to counted release on Spark clusters of one core a worker.

    DPSU and GW are not there: users take turns in them, and the Spark engine refuses them.
    """
    warnings.simplefilter("ignore", FutureWarning)  # pandas' and Spark's, of each other
    path = datasets.synthetic(SPARK_USERS, cache)
    for workers in scale.workers:
        for name, seconds in _on_cluster(workers, path, scale.repeats).items():
            yield Point("synthetic", name, workers, seconds)


def _on_cluster(workers: int, path: Path, repeats: int) -> dict[str, Estimate]:
    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    from spark_cluster import cluster

    with cluster(workers, memory="3g") as running:
        spark = running.session(spark_executor_memory="3g")
        try:
            table = spark.read.parquet(str(path)).repartition(8).persist()
            table.count()
            offered = contenders(MAIN)
            calls = {n: partial(_run_on_spark, table, offered[n]) for n in _PARALLEL}
            return _contest(calls, repeats)
        finally:
            spark.stop()


def _run(path: Path, how: How, cores: int | None = None) -> None:
    before = pa.cpu_count()
    pa.set_cpu_count(cores or before)
    try:
        engine = dp_sips.MemoryEngine(threads=cores)
        dp_sips.select_partitions(
            path, user="user", item="item", engine=engine, progress=False, **how
        )
    finally:
        pa.set_cpu_count(before)


def _run_on_spark(table: Any, how: How) -> None:
    found = dp_sips.select_partitions(table, user="user", item="item", progress=False, **how)
    found.items.count()


def _contest(
    calls: Mapping[_Name, Callable[[], None]], repeats: int, *, warm_up: bool = True
) -> dict[_Name, Estimate]:
    """Time each call `repeats` times, in turns."""
    times: dict[_Name, list[float]] = {name: [] for name in calls}
    for call in calls.values() if warm_up else ():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: Estimate.median(taken) for name, taken in times.items()}
