"""dp-sips against the plain, non-private count in DuckDB, on the same file in the same run.

python benchmarks/against_duckdb.py --users 2000000
python benchmarks/against_duckdb.py --file words.parquet     (columns user and item)
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

from contenders import duckdb_count_distinct, duckdb_distinct_first, ours
from measure import contest, measure, synthetic


def main() -> None:
    """Print one table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=2_000_000, help="size of the synthetic data")
    parser.add_argument("--file", type=Path, action="append", help="a Parquet file instead")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = options.file or [synthetic(Path(folder), options.users)]
        for file in files:
            _compare(file, options.repeats)


def _compare(file: Path, repeats: int) -> None:
    calls = {
        "DuckDB, COUNT(DISTINCT)": partial(measure, duckdb_count_distinct, str(file)),
        "DuckDB, DISTINCT then COUNT": partial(measure, duckdb_distinct_first, str(file)),
        "dp-sips, weighted-gaussian": partial(measure, ours, str(file), "weighted-gaussian"),
        "dp-sips, sips": partial(measure, ours, str(file), "sips"),
    }
    results = contest(calls, repeats)
    yardsticks = [results[name] for name in list(calls)[:2]]
    seconds = min(run.seconds for run in yardsticks)
    memory = min(run.peak_mb for run in yardsticks)
    print(f"\n{file.stem}: median of {repeats} runs, each in a process of its own\n")
    print("| | seconds | of the faster DuckDB | peak MB | of the smaller DuckDB | items out |")
    print("|---|---|---|---|---|---|")
    for name, run in results.items():
        print(
            f"| {name} | {run.seconds:.2f} | {run.seconds / seconds:.2f}× | {run.peak_mb:.0f} "
            f"| {run.peak_mb / memory:.2f}× | {run.result:,} |"
        )


if __name__ == "__main__":
    main()
