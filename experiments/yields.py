"""Items released at the same (ε, δ) by every mechanism, on every data set in a folder.

    python experiments/yields.py --data DIR [--runs 10] [--out docs/yields] [names …]

Writes a Markdown table, the same as CSV, and prints as it goes. DIR holds Parquet files with the
columns user and item. The paper's accounting is the paper's conversion of (ε, δ) to ρ.
"""

import argparse
import csv
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dp_sips

EPSILON, DELTA = 1.765, 4.96e-5
"""The paper's main setting: 1e-5-approximate 0.1-zCDP by its Corollary."""

CONTENDERS: dict[str, dict[str, Any]] = {
    "weighted-gaussian, paper": {"mechanism": "weighted-gaussian", "rho": 0.1, "delta": 1e-5},
    "sips, paper": {"mechanism": "sips", "rho": 0.1, "delta": 1e-5},
    "sips, exact": {"mechanism": "sips", "epsilon": EPSILON, "delta": DELTA},
    "sips-rule": {"mechanism": "sips-rule", "epsilon": EPSILON, "delta": DELTA},
    "auto": {"mechanism": "auto", "epsilon": EPSILON, "delta": DELTA},
}


@dataclass(frozen=True)
class Yield:
    """Items released over several runs: mean, and half a 95 % confidence interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:,.0f} ± {self.half:,.0f}"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="where to write .md and .csv")
    parser.add_argument("--max-items", type=int, help="Δ0; the mechanisms' own unless given")
    parser.add_argument("names", nargs="*", help="data sets; all in the folder unless named")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in options.data.glob("*.parquet"))
    rows = {}
    for name in names:
        path = options.data / f"{name}.parquet"
        rows[name] = {
            who: measure(path, how, options.runs, options.max_items)
            for who, how in CONTENDERS.items()
        }
        print(name, {who: str(found) for who, found in rows[name].items()}, flush=True)
    table = markdown(rows, options.runs)
    print(table)
    if options.out:
        options.out.with_suffix(".md").write_text(table)
        write_csv(options.out.with_suffix(".csv"), rows)


def measure(path: Path, how: dict[str, Any], runs: int, max_items: int | None) -> Yield:
    """Run a mechanism with fresh noise each time."""
    fixed: dict[str, Any] = {"user": "user", "item": "item", "progress": False}
    found = [
        dp_sips.select_partitions(path, max_items=max_items, **fixed, **how) for _ in range(runs)
    ]
    counts = [selection.items.num_rows for selection in found]
    return Yield(statistics.mean(counts), 2.26 * statistics.stdev(counts) / math.sqrt(runs))


def markdown(rows: dict[str, dict[str, Yield]], runs: int) -> str:
    """Return the table as Markdown."""
    lines = [
        f"Items released at (ε, δ) = ({EPSILON}, {DELTA}): means of {runs} runs ± 95 % interval\n",
        "| data | " + " | ".join(CONTENDERS) + " |",
        "|---" * (len(CONTENDERS) + 1) + "|",
        *(f"| {name} | {' | '.join(map(str, row.values()))} |" for name, row in rows.items()),
    ]
    return "\n".join(lines) + "\n"


def write_csv(path: Path, rows: dict[str, dict[str, Yield]]) -> None:
    """Write one line for each data set and mechanism."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "mechanism", "mean", "half_interval"])
        for name, row in rows.items():
            writer.writerows([name, who, y.mean, y.half] for who, y in row.items())


if __name__ == "__main__":
    main()
