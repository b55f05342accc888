"""The experiments that take time: against users, cores, and workers of a cluster."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import datasets
from measuring import Estimate

import dp_sips
from evaluation.contenders import How, contenders
from evaluation.points import Point
from evaluation.printed import MAIN
from evaluation.scale import Scale
from evaluation.sources import Source, choose

_PARALLEL = ("Weighted Gaussian", "SIPS")
_Name = TypeVar("_Name")


def against_users(scale: Scale, cache: Path) -> Iterator[Point]:
    """File to released list in the memory engine, on generated data of growing size."""
    for users in scale.growth:
        path = datasets.synthetic(users, cache)
        calls = {name: partial(_run, path, how) for name, how in contenders(MAIN).items()}
        first = users == scale.growth[0]
        for name, seconds in contest(calls, scale.repeats, warm_up=first).items():
            yield Point("synthetic", name, users, seconds)


def against_cores(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """File to released list in the memory engine, in a process that has one core, or two."""
    source = choose(sources, "wikipedia")[-1]
    with _pinned(1) as one, _pinned(2) as two:
        calls = {
            (name, cores): partial(_wait, pool, source.path, how, cores)
            for name, how in contenders(MAIN).items()
            for cores, pool in ((1, one), (2, two))
        }
        for (name, cores), seconds in contest(calls, 2 * scale.repeats + 1).items():
            yield Point(source.name, name, cores, seconds)


def _pinned(cores: int) -> ProcessPoolExecutor:
    """Return a process that may use so many cores, whatever its libraries would like."""
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, fresh, initializer=_pin, initargs=(cores,))


def _pin(cores: int) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def _wait(pool: ProcessPoolExecutor, path: Path, how: How, cores: int) -> None:
    pool.submit(_run, path, how, cores).result()


def against_workers(scale: Scale, cache: Path) -> Iterator[Point]:
    """Table in memory to counted release on Spark clusters of one core a worker.

    DPSU and GW are not there: users take turns in them, and the Spark engine refuses them.
    """
    path = datasets.synthetic(scale.spark_users, cache)
    for workers in scale.workers:
        for name, seconds in _on_cluster(workers, path, scale.repeats).items():
            yield Point("synthetic", name, workers, seconds)


def _on_cluster(workers: int, path: Path, repeats: int) -> dict[str, Estimate]:
    from spark_cluster import cluster

    from evaluation.clusters import cached_table, select_on_cluster

    with cluster(workers, memory="3g") as running:
        spark = running.session(spark_executor_memory="3g")
        try:
            table, offered = cached_table(spark, path), contenders(MAIN)
            calls = {n: partial(select_on_cluster, table, offered[n]) for n in _PARALLEL}
            return contest(calls, repeats)
        finally:
            spark.stop()


def _run(path: Path, how: How, cores: int | None = None) -> None:
    engine = dp_sips.MemoryEngine(threads=cores)
    dp_sips.select_partitions(path, user="user", item="item", engine=engine, progress=False, **how)


def contest(
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
