"""All mechanisms on all data sets at the same (ε, δ): a table and a figure.

    python experiments/compare.py --data DIR --out docs/compare [--runs 5] [--seeds 1 2 3]
        [--only gw] [names …]

docs/compare was made with --epsilon 1 --delta 1e-5 --seeds 1 2 3 and these names: finance_10k
askreddit_1pct amazon_beauty retail acl_titles npm_deps imdb reddit_posts jeopardy wiki.
Writes .md, .csv, .svg and .png, and prints as it goes. Noise is fresh unless seeds are given; those
make the table repeatable, and its releases worth nothing as privacy goes. `single` is for users
with one item each: it runs with max_items=1, where all others have their own defaults.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import available, by_name, find_data
from evaluation import style
from matplotlib.figure import Figure
from measuring import Estimate, Rows, markdown, mean_items, read_csv, write_csv

from dp_sips.mechanisms import MECHANISMS

NAMES = ("auto", *MECHANISMS)
NOTE = "single: one item of each user counts (max_items=1)."


def main() -> None:
    """Measure, print, write, draw."""
    options = _options()
    folder = find_data(options.data)
    chosen = [by_name(name) for name in options.names] or available(folder)
    seeds = options.seeds or [None] * options.runs
    noise = f"seeds {options.seeds}" if options.seeds else "fresh noise"
    privacy = {"epsilon": options.epsilon, "delta": options.delta}
    caption = (
        f"Items released at (ε, δ) = ({options.epsilon:g}, {options.delta:g}): means of "
        f"{len(seeds)} runs ± 95 % interval, {noise}. {NOTE}"
    )
    # With --only, what else stands in the table stays.
    rows = read_csv(options.out.with_suffix(".csv")) if options.only else {}
    for dataset in chosen:
        path = dataset.load(folder, options.cache)
        rows.setdefault(dataset.name, {})
        for name in options.only or NAMES:
            found = mean_items(path, {**privacy, **how(name)}, seeds)
            rows[dataset.name][name] = found
            print(f"{dataset.name} {name}: {found}", flush=True)
        write(options.out, rows, caption)


def how(name: str) -> dict[str, Any]:
    """Return a mechanism's own parameters in this comparison."""
    return {"mechanism": name, **({"max_items": 1} if name == "single" else {})}


def write(out: Path, rows: Rows, caption: str) -> None:
    """Write what is known so far, in all four forms."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".md").write_text(markdown(rows, caption), encoding="utf-8")
    write_csv(out.with_suffix(".csv"), rows)
    with style.styled():
        style.save(draw(rows), out.parent, out.name)


def draw(rows: Rows) -> Figure:
    """Return a panel for each data set, with a bar for each mechanism."""
    columns = min(4, len(rows))
    lines = -(-len(rows) // columns)
    figure = Figure(figsize=(1.5 + 2.5 * columns, 0.6 + 2.5 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharey=True).flatten()
    for axes, (name, row) in zip(panels, rows.items(), strict=False):
        _bars(axes, name, row)
    for axes in panels[len(rows) :]:
        axes.axis("off")
    figure.supxlabel("items released; blue: parallel, orange: users take turns", fontsize=9)
    return figure


def _bars(axes: Any, title: str, row: Mapping[str, Estimate]) -> None:
    colours = [
        style.ORANGE if name in MECHANISMS and MECHANISMS[name].sequential else style.BLUE
        for name in row
    ]
    axes.barh(
        list(row),
        [found.value for found in row.values()],
        xerr=[found.half for found in row.values()],
        color=colours,
        error_kw={"elinewidth": 1, "capsize": 2},
    )
    axes.invert_yaxis() if not axes.yaxis_inverted() else None
    axes.set_title(title)
    axes.tick_params(labelsize=8)
    axes.locator_params(axis="x", nbins=4)
    axes.grid(visible=False, axis="y")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of data ($DP_SIPS_DATA)")
    parser.add_argument("--cache", type=Path, help="folder for prepared data (~/.cache/dp-sips)")
    parser.add_argument("--out", type=Path, required=True, help="where to write, without a suffix")
    parser.add_argument("--epsilon", type=float, default=1.765)
    parser.add_argument("--delta", type=float, default=4.96e-5)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of fresh noise")
    parser.add_argument("--only", action="append", help="a mechanism; all unless named")
    parser.add_argument("names", nargs="*", help="data sets; all that are there unless named")
    return parser.parse_args()


if __name__ == "__main__":
    main()
