"""Yield against ε for every mechanism, on the paper's synthetic data or on a file: docs/yield.svg.

python experiments/yield_figure.py --file imdb.parquet --out docs/yield.svg
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
from datasets import synthetic
from measuring import mean_items

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
DELTA = 1e-5
# Colours that all eyes can tell apart (Okabe and Ito), and markers for print.
STYLES = {
    "auto": ("#D55E00", "o"),
    "sips-rule": ("#009E73", "s"),
    "sips": ("#0072B2", "^"),
    "mad2r": ("#CC79A7", "D"),
    "dpsu": ("#E69F00", "P"),
    "weighted-gaussian": ("#666666", "v"),
    "gw": ("#56B4E9", "X"),
    "policy-laplace": ("#000000", "."),
}


def main() -> None:
    """Measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", type=Path, help="Parquet, columns user and item")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    file = options.file or synthetic(100_000)
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for mechanism, (colour, marker) in STYLES.items():
        means = [
            mean_items(file, how | {"mechanism": mechanism}, [None] * options.runs).value
            for how in ({"epsilon": epsilon, "delta": DELTA} for epsilon in EPSILONS)
        ]
        print(mechanism, dict(zip(EPSILONS, means, strict=True)), flush=True)
        axes.plot(EPSILONS, means, color=colour, marker=marker, label=mechanism)
    axes.set_xscale("log", base=2)
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_xlabel(f"ε (δ = {DELTA:g})")
    axes.set_ylabel(f"items released from {file.stem}")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(options.out)


if __name__ == "__main__":
    main()
