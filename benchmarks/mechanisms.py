"""Every mechanism against SIPS in the memory engine, reading included, in the same run.

python benchmarks/mechanisms.py --users 2000000
python benchmarks/mechanisms.py --file words.parquet --only auto --only dpsu
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from measure import contest, measure, synthetic

from dp_sips.mechanisms import MECHANISMS


def selecting(path: str, mechanism: str) -> Callable[[], int]:
    """Select from a file at the paper's (ε, δ), with each mechanism's own Δ0."""
    import scipy.special  # noqa: F401 (imported beforehand, for all)

    import dp_sips

    select: Any = dp_sips.select_partitions
    settings = {"user": "user", "item": "item", "epsilon": 1.765, "delta": 4.96e-5}
    return lambda: select(path, mechanism=mechanism, progress=False, **settings).items.num_rows


def main() -> None:
    """Print one table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=2_000_000, help="size of the synthetic data")
    parser.add_argument("--file", type=Path, action="append", help="a Parquet file instead")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", help="a mechanism; all unless named")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for file in options.file or [synthetic(Path(folder), options.users)]:
            _compare(file, options.only or ["auto", *MECHANISMS], options.repeats)


def _compare(file: Path, names: list[str], repeats: int) -> None:
    calls = {name: partial(measure, selecting, str(file), name) for name in ["sips", *names]}
    results = contest(calls, repeats)
    print(f"\n{file.stem}: median of {repeats} runs, each in a process of its own\n")
    print("| mechanism | seconds | of sips | peak MB | items out |\n|---|---|---|---|---|")
    for name, run in results.items():
        ratio = run.seconds / results["sips"].seconds
        print(f"| {name} | {run.seconds:.2f} | {ratio:.2f}× | {run.peak_mb:.0f} | {run.result:,} |")


if __name__ == "__main__":
    main()
