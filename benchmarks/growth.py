"""Time per row as the synthetic data grows: linear means that the last column stays level.

python benchmarks/growth.py --users 100000 1000000 8000000
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from contenders import ours
from measure import contest, measure, synthetic


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--users", type=int, nargs="+", default=[100_000, 500_000, 2_000_000, 8_000_000]
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| users | rows | seconds | peak MB | ns per row |")
    print("|---|---|---|---|---|")
    for users in options.users:
        with tempfile.TemporaryDirectory() as folder:
            path = synthetic(Path(folder), users)
            rows = pq.ParquetFile(path).metadata.num_rows
            run = contest({"": partial(measure, ours, str(path))}, options.repeats)[""]
        per_row = run.seconds / rows * 1e9
        print(
            f"| {users:,} | {rows:,} | {run.seconds:.2f} | {run.peak_mb:.0f} | {per_row:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
