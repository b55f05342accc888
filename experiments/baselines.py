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
    ("imdb", Gw(buffer=3.0), CLASSIC, 3336),
    ("imdb", Gw(buffer=5.0), CLASSIC, 3185),
    ("retail", Gw(buffer=3.0), CLASSIC, 6183),
    ("retail", Gw(buffer=5.0), CLASSIC, 5945),
    ("imdb", Mad2R(composition="basic"), CHEN, 3369),
]
"""The authors' code on these files; for MAD2R, the published figure for the same reviews."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="where to write .md")
    options = parser.parse_args()
    lines = [
        f"Items released, means of {options.runs} runs ± 95 % interval, beside the known figure.\n",
        "| data | mechanism | ours | known | difference |\n|---|---|---|---|---|",
    ]
    for name, mechanism, budget, known in KNOWN:
        how = {"mechanism": mechanism, **budget}
        found = mean_items(options.data / f"{name}.parquet", how, [None] * options.runs)
        share = found.value / known - 1
        lines.append(f"| {name} | `{mechanism}` | {found} | {known:,} | {share:+.1%} |")
        print(lines[-1], flush=True)
    if options.out:
        options.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
