"""What it costs that workers are apart: two with one core each against one with two cores.

Both clusters are on this machine, and wait while the other one works. Workers are held to cores of
their own, and fetch each other's data through a socket, though they could read it from the disk.
"""

import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from spark_cluster import Cluster, cluster
from spark_events import EventLog

from evaluation.clusters import cached_table, select_on_cluster
from evaluation.contenders import sips
from evaluation.runtimes import contest

_MEMORY: Final = 1500
"""MB of an executor, for each of its cores."""


@dataclass(frozen=True)
class _Site:
    """A cluster as the process that talks to it sees it."""

    url: str
    cores: int
    events: Path
    data: Path


def communication(data: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield times and bytes of SIPS for two workers of one core, then for one of two."""
    rows, size = pq.read_metadata(data).num_rows, data.stat().st_size
    with _site(2, 1, data) as (apart, two), _site(1, 2, data) as (together, one):
        moved = {(2, 1): two.submit(_moved, apart).result()}
        moved[1, 2] = one.submit(_moved, together).result()
        times = contest(
            {
                (2, 1): lambda: two.submit(_run, apart).result(),
                (1, 2): lambda: one.submit(_run, together).result(),
            },
            repeats,
            warm_up=False,  # both have run once
        )
    for (workers, cores), seconds in times.items():
        shuffled, crossing = moved[workers, cores]
        yield {
            "workers": workers,
            "cores": cores,
            "seconds": seconds.value,
            "low": seconds.low,
            "high": seconds.high,
            "runs": seconds.runs,
            "rows": rows,
            "input_bytes": size,
            "shuffled_bytes": shuffled,
            "crossing_bytes": crossing,
        }


@contextmanager
def _site(workers: int, cores: int, data: Path) -> Iterator[tuple[_Site, ProcessPoolExecutor]]:
    """Start a cluster, and a process to talk to it: a process has one Spark session at a time."""
    fresh = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as events,
        cluster(workers, cores, f"{2 * cores}g", pin=True) as running,
        ProcessPoolExecutor(1, fresh) as pool,
    ):
        yield _Site(running.url, cores, Path(events), data), pool


@cache
def _table(site: _Site) -> DataFrame:
    spark = Cluster(site.url, site.events, "").session(
        spark_executor_memory=f"{_MEMORY * site.cores}m",
        spark_shuffle_readHostLocalDisk="false",
        **EventLog(site.events).settings(),
    )
    return cached_table(spark, site.data)


def _run(site: _Site) -> None:
    select_on_cluster(_table(site), sips())


def _moved(site: _Site) -> tuple[int, int]:
    """Return the bytes that a run shuffles, and those of them that workers fetch from others."""
    spark = _table(site).sparkSession
    stages = EventLog(site.events).during(spark, lambda: _run(site))
    return sum(stage.size for stage in stages), sum(stage.from_others for stage in stages)
