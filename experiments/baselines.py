"""Do our DPSU, GW and MAD2R release what their authors' code, or their papers, do?

    python experiments/baselines.py --data DIR [--runs 10] [--out docs/baselines]

Writes a Markdown table: our mean over the runs beside the known figure, and the difference.
"""

import argparse
from pathlib import Path
from typing import Any

from measuring import mean_items

from dp_sips import Dpsu, Gw, Mad2R

PAPER: dict[str, Any] = {"rho": 0.1, "delta": 1e-5, "max_items": 100}
CLASSIC: dict[str, Any] = {"epsilon": 1.7, "delta": 8.1142e-5}
CHEN: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "max_items": 100}
KNOWN: list[tuple[str, Any, dict[str, Any], int]] = [
    ("imdb", Dpsu(buffer=3.0), PAPER, 6220),
    ("imdb", Dpsu(buffer=5.0), PAPER, 6470),
    ("imdb", Gw(buffer=3.0, ties="rows"), CLASSIC, 3336),
    ("imdb", Gw(buffer=5.0, ties="rows"), CLASSIC, 3185),
    ("retail", Gw(buffer=3.0, ties="rows"), CLASSIC, 6183),
    ("retail", Gw(buffer=5.0, ties="rows"), CLASSIC, 5945),
    ("imdb", Mad2R(composition="basic"), CHEN, 3369),
]
"""Known figures: of the authors' code on these files, as this project's issues state them; for
MAD2R, the published one for the same reviews."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="where to write .md")
    options = parser.parse_args()
    lines = [
        "# The baselines, beside their authors' code\n",
        f"Items released, means of {options.runs} runs ± 95 % interval, beside the known figure.\n",
        "Known are those of the authors' code on the same files, as this project was given them;",
        "for MAD2R, the figure in its paper (Chen et al. 2025).\n",
        "| data | mechanism | budget | ours | known | difference |\n|---|---|---|---|---|---|",
    ]
    for name, mechanism, budget, known in KNOWN:
        how = {"mechanism": mechanism, **budget}
        found = mean_items(options.data / f"{name}.parquet", how, [None] * options.runs)
        share = found.value / known - 1
        spent = ", ".join(f"{parameter} {value:g}" for parameter, value in budget.items())
        lines.append(f"| {name} | `{mechanism}` | {spent} | {found} | {known:,} | {share:+.1%} |")
        print(lines[-1], flush=True)
    if options.out:
        options.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
