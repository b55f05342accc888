"""Time and peak memory of one call, each in a fresh process, so that no run helps the next."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from watching import memory

from dp_sips.progress import Progress
from dp_sips.synthetic import write_synthetic

_MOMENT: Final = 0.1
"""Seconds between two looks at a process."""


@dataclass(frozen=True)
class Measured:
    """One call: its time by the clock and on all cores, peak memory, and what it returned."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    result: Any


def measure(
    call: Callable[..., Callable[[], Any]],
    *args: Any,
    watch: Callable[[int], object] | None = None,
) -> Measured:
    """Run `call(*args)` in a process of its own, then time what it returned.

    The first call imports and prepares; only the second is timed. Memory is the whole process's.
    `watch` gets the number of the process, again and again while it runs.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, call, args))
    process.start()
    sender.close()
    try:
        while watch and process.pid and not receiver.poll(_MOMENT):
            watch(process.pid)
        measured: Measured = receiver.recv()
    except EOFError:
        process.join()
        raise ChildProcessError(f"the process ended with code {process.exitcode}") from None
    except BaseException:
        process.kill()
        raise
    process.join()
    return measured


def contest(calls: Mapping[str, Callable[[], Measured]], repeats: int) -> dict[str, Measured]:
    """Run each call `repeats` times, in turns, and return the median time of each."""
    runs: dict[str, list[Measured]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            runs[name].append(call())
    return {
        name: Measured(
            statistics.median(run.seconds for run in done),
            statistics.median(run.cpu_seconds for run in done),
            max(run.peak_mb for run in done),
            done[-1].result,
        )
        for name, done in runs.items()
    }


def synthetic(folder: Path, users: int) -> Path:
    """Write the paper's synthetic data of so many users into the folder."""
    path = folder / f"synthetic_{users}.parquet"
    with path.open("wb") as sink:
        write_synthetic(sink, users, seed=0, progress=Progress())
    return path


def _work(
    sender: Connection, call: Callable[..., Callable[[], Any]], args: tuple[Any, ...]
) -> None:
    ready = call(*args)
    start, cpu_start = time.perf_counter(), time.process_time()
    result = ready()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    # Not ru_maxrss, which counts what the parent held when it started this process.
    sender.send(Measured(seconds, cpu_seconds, memory("VmHWM") / 1e6, result))
