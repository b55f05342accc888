"""Is the recommended mechanism ever below SIPS? A grid of budgets and Δ0, on every data set.

    python experiments/floor.py --data DIR [--runs 3] [--out docs/floor] [names …]

Both mechanisms get the same (ε, δ), by exact accounting, and the same Δ0. Writes Markdown and CSV,
a row for each data set and budget, and says how often "auto" was below "sips".
"""

import argparse
import csv
import itertools
from pathlib import Path

from measuring import mean_items

BUDGETS = [(1.765, 4.96e-5), (1.0, 1e-5), (0.5, 1e-6)]
SIZES = [10, 30, 100, 300, 1000]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="where to write .md and .csv")
    parser.add_argument("names", nargs="*", help="data sets; all in the folder unless named")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in options.data.glob("*.parquet"))
    rows = []
    for name, (epsilon, delta), size in itertools.product(names, BUDGETS, SIZES):
        path = options.data / f"{name}.parquet"
        privacy = {"epsilon": epsilon, "delta": delta, "max_items": size}
        auto, sips = (
            mean_items(path, {"mechanism": who, **privacy}, [None] * options.runs).value
            for who in ("auto", "sips")
        )
        rows.append((name, epsilon, delta, size, auto, sips))
        print(*rows[-1], f"{auto / max(sips, 1):.3f}", flush=True)
        if options.out:
            write(options.out, rows, options.runs)


def write(out: Path, rows: list[tuple[str, float, float, int, float, float]], runs: int) -> None:
    """Write a table of auto / sips, and all numbers as CSV."""
    below = [row for row in rows if row[4] < row[5]]
    ratios = {row[:4]: row[4] / max(row[5], 1) for row in rows}
    lines = [
        f"Items released by `auto`, relative to `sips` with exact accounting: {runs} runs.",
        f"Below 1 in {len(below)} of {len(rows)} cells.\n",
        "| data | ε | δ | " + " | ".join(f"Δ0 = {size}" for size in SIZES) + " |",
        "|---" * (len(SIZES) + 3) + "|",
    ]
    for name, epsilon, delta in dict.fromkeys(row[:3] for row in rows):
        found = (ratios.get((name, epsilon, delta, size)) for size in SIZES)
        cells = " | ".join("" if ratio is None else f"{ratio:.2f}" for ratio in found)
        lines.append(f"| {name} | {epsilon:g} | {delta:g} | {cells} |")
    out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    with out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "epsilon", "delta", "max_items", "auto", "sips"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
