"""Yield relative to the paper's DP-SIPS: every data set and mechanism, by the size of users' sets.

    python experiments/relative_figure.py --data DIR --yields docs/yields.csv --out FILE.svg

DIR holds the data sets of the table, as Parquet files with the columns user and item.
"""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq
from measuring import read_csv

SHOWN = {
    "gw": ("tab:orange", "v"),
    "dpsu": ("tab:brown", "s"),
    "mad2r": ("tab:purple", "D"),
    "sips-rule": ("tab:gray", "P"),
    "cumulative": ("tab:green", "^"),
    "matching": ("tab:blue", "o"),
    "auto": ("black", "x"),
}
BASE = "sips, paper"


def median_size(path: Path) -> float:
    """Return the median number of distinct items of a user."""
    table = pq.read_table(path, columns=["user", "item"]).group_by(["user", "item"]).aggregate([])
    sizes = table.group_by("user").aggregate([([], "count_all")])["count_all"]
    return float(np.median(sizes.to_numpy()))


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--yields", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = {name: row for name, row in read_csv(options.yields).items() if BASE in row}
    sizes = {name: median_size(options.data / f"{name}.parquet") for name in rows}
    names = sorted(rows, key=lambda name: (sizes[name], name))
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for who, (colour, marker) in SHOWN.items():
        places = [n for n, name in enumerate(names) if who in rows[name]]
        values = [rows[names[n]][who].value / rows[names[n]][BASE].value for n in places]
        axes.plot(places, values, marker, color=colour, label=who, markersize=7)
    axes.axhline(1, color="tab:red", linewidth=1, label="DP-SIPS, as published")
    axes.set_xticks(range(len(names)), [f"{name}\n({sizes[name]:g})" for name in names])
    axes.tick_params(axis="x", labelsize=7)
    axes.set_ylabel("items released, DP-SIPS = 1")
    axes.set_xlabel("data set (median number of items a user has)")
    axes.legend(ncols=4, fontsize=8)
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(options.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
