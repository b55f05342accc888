"""The paper's synthetic data (its section "Data sets"), at any size.

Each user draws the size of its set from a Pareto distribution of scale 10 and shape 1.16, and each
item from a zeta distribution of parameter 1.1. Items are 64-bit integers: numpy draws the few that
would be larger (about one in eighty) again. A user can draw an item twice, as in the paper.

Generated data belongs to nobody: its randomness is repeatable on purpose, and has no part in a
release.
"""

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dp_sips.errors import UsageError
from dp_sips.progress import Progress

SCHEMA: Final = pa.schema([("user", pa.int64()), ("item", pa.int64())])

_SCALE, _SHAPE, _ZETA = 10, 1.16, 1.1
_USERS: Final = 50_000
"""Users that are drawn at a time."""
_ROWS: Final = 1 << 22
"""The most rows of a group: one user can have millions."""

Numbers = NDArray[np.int64]


def write_synthetic(sink: BinaryIO, users: int, seed: int, progress: Progress) -> None:
    """Write users' data as Parquet; the same seed and number of users give the same file."""
    check_counts(users, seed)
    with (
        pq.ParquetWriter(sink, SCHEMA, compression="zstd") as writer,
        progress.bar("writing", users, unit="user") as bar,
    ):
        for count, tables in chunks(users, seed):
            for table in tables:
                writer.write_table(table, row_group_size=_ROWS)
            bar(count)


def check_counts(users: int, seed: int) -> None:
    """Reject numbers from which nothing can be drawn."""
    if users < 1:
        raise UsageError(f"users must be at least 1, got {users}")
    if seed < 0:
        raise UsageError(f"seed must not be negative, got {seed}")


def chunks(users: int, seed: int) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield the number of users of each chunk, and its rows in tables of bounded size."""
    rng = np.random.default_rng(seed)
    for first in range(0, users, _USERS):
        ids = np.arange(first, min(first + _USERS, users), dtype=np.int64)
        sizes = draw_sizes(rng, len(ids))
        yield len(ids), tables(ids, sizes, lambda count: rng.zipf(_ZETA, count))


def draw_sizes(rng: np.random.Generator, users: int) -> Numbers:
    """Draw how many rows each user has."""
    return np.floor((rng.pareto(_SHAPE, users) + 1) * _SCALE).astype(np.int64)


def tables(
    ids: Numbers, sizes: Numbers, draw_items: Callable[[int], Numbers]
) -> Iterator[pa.Table]:
    """Yield the rows of users of these sizes, in tables of bounded size."""
    ends = np.cumsum(sizes)
    for start in range(0, int(ends[-1]), _ROWS):
        stop = min(start + _ROWS, int(ends[-1]))
        bounds = np.clip(ends, start, stop)
        repeats = bounds - np.concatenate(([start], bounds[:-1]))
        yield pa.table([np.repeat(ids, repeats), draw_items(stop - start)], schema=SCHEMA)
