"""The paper's largest data set on one machine: time, memory, disk and items, as users multiply.

python benchmarks/largest.py --out DIR --users 80000 800000 8000000 80000000
python benchmarks/largest.py --out DIR --resume --folder /mnt/large --memory-limit 12

For each number of users, the synthetic data is generated as many files in a temporary folder, and
each mechanism selects from it in a process of its own with the paper's budget (ρ = 0.1, δ = 1e-5,
Δ0 = 100, three rounds at r = 1/3; `auto` with the (ε, δ) that this implies). DIR gets largest.csv
after every run, and largest.md and largest.svg made of it; with --resume, runs that are in
largest.csv are not done again. 80 million users take 18 GB, and what the engine spills besides.
With --keep, data is kept there, and found there the next time.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from contenders import ours
from largest_page import GENERATE, PAPER, Run, read_runs, write_runs
from measure import measure
from watching import Watch, memory

from dp_sips.progress import Progress
from dp_sips.synthetic_files import write_synthetic_files

USERS: Final = (80_000, 800_000, 8_000_000, 80_000_000)
_A_FILE: Final = 800_000
_A_USER: Final = 240
"""Bytes that a user's rows take on disk, with some to spare: at most 70 rows of 3.2 bytes."""


def main() -> None:
    """Measure what is missing, and write after each run."""
    options = _options()
    # SIGTERM unwinds as Ctrl-C does: the data is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.out.mkdir(parents=True, exist_ok=True)
    runs = read_runs(options.out) if options.resume else []
    for users in options.users:
        done = {run.mechanism for run in runs if run.users == users}
        missing = [name for name in options.mechanisms if name not in done]
        for run in _measured(users, missing, options) if missing else ():
            # The data is generated anew for runs that were missing: its last time counts.
            runs = [r for r in runs if (r.users, r.mechanism) != (run.users, run.mechanism)]
            runs.append(run)
            write_runs(options.out, runs)
            print(run, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--users", type=int, nargs="+", default=USERS)
    parser.add_argument("--mechanisms", nargs="+", default=[*PAPER, "auto"])
    parser.add_argument("--folder", type=Path, help="for data and spilled files; temporary")
    parser.add_argument("--memory-limit", type=float, metavar="GB", help="the engine's own default")
    parser.add_argument("--keep", type=Path, help="folder of data that is to stay")
    parser.add_argument("--resume", action="store_true", help="keep the runs of largest.csv")
    return parser.parse_args()


def _measured(users: int, mechanisms: list[str], options: argparse.Namespace) -> Iterator[Run]:
    """Generate data, yield how that went, then a run of each mechanism on it."""
    room: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="dp-sips-largest-") as place:
        _check_disk(Path(place), users)
        if options.folder:
            room["spill_folder"] = place
        if options.memory_limit:
            room["memory_limit"] = int(options.memory_limit * 1e9)
        data = (options.keep or Path(place)) / f"users-{users}"
        if not data.exists():
            yield _run(users, GENERATE, data, partial(_generating, str(data), users))
        for name in mechanisms:
            try:
                yield _run(users, name, data, partial(_selecting, str(data), name, room))
            except ChildProcessError as error:
                print(f"{name}, {users:,} users: {error}; the others go on", file=sys.stderr)


def _check_disk(place: Path, users: int) -> None:
    needed, free = users * _A_USER, shutil.disk_usage(place).free
    if needed > free:
        raise SystemExit(
            f"{users:,} users need {needed / 1e9:.1f} GB, and {place.parent} has {free / 1e9:.1f}: "
            "name another with --folder"
        )


def _run(users: int, name: str, data: Path, call: Callable[[], Callable[[], Any]]) -> Run:
    watch = Watch()
    measured = measure(call, watch=watch)
    released, peak = measured.result
    files = sorted(data.iterdir())
    return Run(
        users,
        sum(pq.read_metadata(path).num_rows for path in files),
        sum(path.stat().st_size for path in files),
        name,
        round(measured.seconds, 2),
        round(measured.cpu_seconds, 2),
        peak,
        watch.anonymous,
        watch.spilled,
        released,
    )


def _generating(folder: str, users: int) -> Callable[[], tuple[int, int]]:
    def generate() -> tuple[int, int]:
        Path(folder).mkdir(parents=True)
        write_synthetic_files(
            Path(folder), users, 0, -(-users // _A_FILE), None, progress=Progress()
        )
        return 0, memory("VmHWM")

    return generate


def _selecting(data: str, mechanism: str, room: dict[str, Any]) -> Callable[[], tuple[int, int]]:
    select = ours(data, mechanism, **room)
    return lambda: (select(), memory("VmHWM"))


if __name__ == "__main__":
    main()
