"""Time per row as the synthetic data grows: linear means that ns per row stay level.

python benchmarks/growth.py --users 100000 1000000 8000000
python benchmarks/growth.py --users 250000 500000 1000000 2000000 --memory-limit 0.5

With a limit of memory, in GB, the engine goes on on disk once the data is more than that.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from contenders import ours
from measure import contest, measure, synthetic
from watching import Watch


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--users", type=int, nargs="+", default=[100_000, 500_000, 2_000_000, 8_000_000]
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-limit", type=float, metavar="GB", help="the engine's own default")
    options = parser.parse_args()
    limit = int(options.memory_limit * 1e9) if options.memory_limit else None
    print("| users | rows | seconds | CPU seconds | memory, GB | on disk, GB | ns a row | CPU ns |")
    print("|---|---|---|---|---|---|---|---|")
    for users in options.users:
        print(_row(users, options.repeats, limit), flush=True)


def _row(users: int, repeats: int, limit: int | None) -> str:
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        path = synthetic(Path(folder), users)
        rows = pq.ParquetFile(path).metadata.num_rows
        select = partial(measure, partial(ours, memory_limit=limit), str(path), watch=watch)
        run = contest({"": select}, repeats)[""]
    seconds, cpu = run.seconds, run.cpu_seconds
    sizes = f"{watch.anonymous / 1e9:.2f} | {watch.spilled / 1e9:.2f}"
    times = f"{seconds / rows * 1e9:.0f} | {cpu / rows * 1e9:.0f}"
    return f"| {users:,} | {rows:,} | {seconds:.1f} | {cpu:.1f} | {sizes} | {times} |"


if __name__ == "__main__":
    main()
