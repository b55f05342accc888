"""The paper's synthetic data as many files in a folder, written on all cores.

Every 20,000 users have a seed of their own, so what a user has depends on the seed and on the
user's number alone: not on the number of files or threads, nor on how many users follow. The data
of 80,000 users is the beginning of that of 80 million. It is not the data that `synthetic` writes
as one file under the same seed: items come from a sampler that is many times as fast.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dp_sips.progress import Progress
from dp_sips.synthetic import SCHEMA, check_counts, draw_sizes, tables
from dp_sips.validation import check_whole
from dp_sips.zeta import draw_zeta

NAMES: Final = "part-*.parquet"
_MOST_FILES: Final = 100_000
"""What five digits can number."""
_USERS: Final = 20_000
"""Users of one seed: about a million rows, a row group."""
_FORM: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 1,
    # Most items occur once: a dictionary of them is longer than they are.
    "use_dictionary": ["user"],
}


def check_division(users: int, seed: int, files: int, threads: int | None) -> None:
    """Reject numbers from which nothing can be drawn, or that cannot share the users."""
    check_counts(users, seed)
    check_whole("files", files, most=min(users, _MOST_FILES))
    if threads is not None:
        check_whole("threads", threads)


def write_synthetic_files(
    folder: Path, users: int, seed: int, files: int, threads: int | None, *, progress: Progress
) -> None:
    """Write users' data as Parquet files into a folder; files and threads do not change the data.

    If anything fails or interrupts, files are missing or incomplete, and no thread goes on.
    """
    check_division(users, seed, files, threads)
    bounds = [users * number // files for number in range(files + 1)]
    parts = {_path(folder, n): range(*bounds[n : n + 2]) for n in range(files)}
    with progress.bar("writing", users, unit="user") as bar:
        turn = Lock()

        def advance(count: int) -> None:
            with turn:
                bar(count)

        _write_all(parts, seed, advance, threads or os.cpu_count() or 1)


def chunks(users: range, seed: int) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield the number of users of each chunk, and its rows in tables of bounded size."""
    for number in range(users.start // _USERS, -(-users.stop // _USERS)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        first = number * _USERS
        ids = np.arange(first, min(first + _USERS, users.stop), dtype=np.int64)
        sizes = draw_sizes(rng, _USERS)[: len(ids)]
        drawn = tables(ids, sizes, partial(draw_zeta, rng))
        yield len(ids) - max(0, users.start - first), _from(users.start, drawn)


def _from(first: int, drawn: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Leave out the rows of users before the first: they are in the file before."""
    for table in drawn:
        rest = table.slice(np.searchsorted(table["user"].to_numpy(), first))
        if len(rest):
            yield rest


def _path(folder: Path, number: int) -> Path:
    return folder / NAMES.replace("*", f"{number:05}")


def _write_all(
    parts: dict[Path, range], seed: int, advance: Callable[[int], None], threads: int
) -> None:
    """Write all files, some at a time, or have all threads stop at the first failure."""
    stop = Event()
    with ThreadPoolExecutor(threads) as pool:
        try:
            written = [pool.submit(_write, *part, seed, advance, stop) for part in parts.items()]
            for future in as_completed(written):
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _write(
    path: Path, users: range, seed: int, advance: Callable[[int], None], stop: Event
) -> None:
    with path.open("xb") as sink:
        with pq.ParquetWriter(sink, SCHEMA, **_FORM) as writer:
            for count, drawn in chunks(users, seed):
                for table in drawn:
                    if stop.is_set():
                        return
                    writer.write_table(table, row_group_size=len(table))
                advance(count)
        sink.flush()
        os.fsync(sink.fileno())
