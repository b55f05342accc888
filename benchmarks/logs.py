"""dp-sips on logs as they come, against plain, non-private counts on the same data in the same run.

python benchmarks/logs.py --repeats 5
python benchmarks/logs.py --users 80000 --only "shuffled text" --only "CSV of text"
python benchmarks/logs.py npm_deps.parquet   # Parquet with columns user and item, as it is

Files are held against the faster of DuckDB's two forms, frames against the faster of Polars'. The
README's table is made of the first and the last command's, on a machine that does nothing else.
"""

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from contenders import (
    duckdb_count_distinct,
    duckdb_distinct_first,
    ours,
    ours_on_frame,
    polars_count_distinct,
    polars_distinct_first,
)
from measure import Measured, contest, measure

from dp_sips.synthetic import chunks

Yardstick = Callable[[str], Callable[[], int]]

DUCKDB: Final = (duckdb_count_distinct, duckdb_distinct_first)
POLARS: Final = (polars_count_distinct, polars_distinct_first)
PAGES: Final = 1_000_000
FEW: Final = 2_000_000


@dataclass(frozen=True)
class Case:
    """One kind of log: how it is made of the synthetic rows, how it is written, who is to beat."""

    make: Callable[[pa.Table], pa.Table]
    users: int = 80_000
    suffix: str = ".parquet"
    frame: str | None = None

    def write(self, table: pa.Table, folder: Path) -> str:
        """Write the log, and return its path."""
        path = folder / f"log{self.suffix}"
        if self.suffix == ".csv":
            pacsv.write_csv(table, path)
        else:
            pq.write_table(table, path, compression="zstd", row_group_size=1 << 20)
        return str(path)


def calls(path: str, frame: str | None = None) -> dict[str, Callable[[], Measured]]:
    """Return the yardsticks, then `sips` and `auto`, on a file or on a frame that is read of it."""
    yardsticks: tuple[Yardstick, ...] = POLARS if frame else DUCKDB
    select = partial(ours_on_frame, kind=frame) if frame else ours
    named = {call.__name__: partial(measure, call, path) for call in yardsticks}
    mine = {name: partial(measure, select, path, name) for name in ("sips", "auto")}
    return {**named, **mine}


def shuffled(rows: pa.Table) -> pa.Table:
    """Return the rows in random order, as in a log by time."""
    return rows.take(np.random.default_rng(1).permutation(len(rows)))


def texts(rows: pa.Table) -> pa.Table:
    """Return shuffled rows with addresses as users and pages as items."""
    rows = shuffled(rows)
    users = _joined("u", rows["user"], "@example.com")
    pages = pa.array(rows["item"].to_numpy() % PAGES)
    return pa.table({"user": users, "item": _joined("https://site.example/page/", pages, "")})


def few(rows: pa.Table) -> pa.Table:
    """Return the first two million rows."""
    return rows.slice(0, FEW)


def _joined(before: str, numbers: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, pc.cast(numbers, pa.string()), after, "")


CASES: Final = {
    "sorted integers": Case(lambda rows: rows, 2_000_000),
    "shuffled integers": Case(shuffled, 640_000),
    "shuffled text": Case(texts, 320_000),
    "CSV of integers": Case(shuffled, 160_000, ".csv"),
    "CSV of text": Case(texts, suffix=".csv"),
    "Polars frame of text": Case(texts, frame="polars"),
    "pandas frame of text": Case(texts, frame="pandas"),
    "Arrow table of text": Case(texts, frame="arrow"),
    "few rows of integers": Case(few),
    "few rows of text": Case(lambda rows: texts(few(rows))),
}


def main() -> None:
    """Print a row for each kind of log."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="files to measure in place of logs")
    parser.add_argument("--users", type=int, help="60 rows each, on average; default by kind")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=CASES, help="a kind of log; default all")
    options = parser.parse_args()
    print(f"medians of {options.repeats} runs, each in its own process;")
    print(
        "ratios are to the faster (of seconds, of CPU seconds) or smaller (of memory) yardstick\n"
    )
    print("| data | rows | faster yardstick | `sips` | CPU | memory | `auto` | CPU | memory |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for path in options.files:
        rows = pq.read_metadata(path).num_rows
        print(_row(path.stem, rows, calls(str(path)), options.repeats), flush=True)
    for name in options.only or ([] if options.files else CASES):
        print(_log(name, CASES[name], options.users, options.repeats), flush=True)


@lru_cache(1)
def _rows(users: int) -> pa.Table:
    return pa.concat_tables(part for _, parts in chunks(users, seed=0) for part in parts)


def _log(name: str, case: Case, users: int | None, repeats: int) -> str:
    rows = case.make(_rows(users or case.users))
    with tempfile.TemporaryDirectory() as folder:
        return _row(name, len(rows), calls(case.write(rows, Path(folder)), case.frame), repeats)


def _row(name: str, rows: int, runs: dict[str, Callable[[], Measured]], repeats: int) -> str:
    *yardsticks, sips, auto = contest(runs, repeats).values()
    fastest = min(run.seconds for run in yardsticks)
    shown = " | ".join(_ratios(run, yardsticks) for run in (sips, auto))
    return f"| {name} | {rows:,} | {fastest:.2f} s | {shown} |"


def _ratios(run: Measured, yardsticks: list[Measured]) -> str:
    seconds = run.seconds / min(other.seconds for other in yardsticks)
    cpu = run.cpu_seconds / min(other.cpu_seconds for other in yardsticks)
    memory = run.peak_mb / min(other.peak_mb for other in yardsticks)
    return f"{run.seconds:.2f} s, {seconds:.2f}× | {cpu:.2f}× | {memory:.2f}×"


if __name__ == "__main__":
    main()
