"""Items released at the same (ε, δ) by every mechanism, on every data set in a folder.

    python experiments/yields.py --data DIR [--runs 10] [--out docs/yields] [--only gw] [names …]

Writes a Markdown table, the same as CSV, and prints as it goes. DIR holds Parquet files with the
columns user and item. The paper's accounting is the paper's conversion of (ε, δ) to ρ. With --only,
what else stands in --out's table stays. The room is what a perfect allocation of weights would lift
to a weight of 10. The ceiling is the sum over items of the optimal chance for users with one item
each: no mechanism can release more. The missing mass of `auto` is the share of pairs whose item was
not released, in per cent.
"""

import argparse
from pathlib import Path
from typing import Any

from measuring import Estimate, Holders, markdown, mean_items, read_csv, room, write_csv

import dp_sips
from dp_sips import Gw

EPSILON, DELTA = 1.765, 4.96e-5
"""The paper's main setting: 1e-5-approximate 0.1-zCDP by its Corollary."""

CONTENDERS: dict[str, dict[str, Any]] = {
    "weighted-gaussian, paper": {"mechanism": "weighted-gaussian", "rho": 0.1, "delta": 1e-5},
    "sips, paper": {"mechanism": "sips", "rho": 0.1, "delta": 1e-5},
    "dpsu, paper": {"mechanism": "dpsu", "rho": 0.1, "delta": 1e-5},
    "gw, published ties": {"mechanism": Gw(ties="rows"), "epsilon": EPSILON, "delta": DELTA},
    **{
        name: {"mechanism": name, "epsilon": EPSILON, "delta": DELTA}
        for name in (
            "policy-laplace",
            "gw",
            "mad",
            "mad2r",
            "dpsu",
            "sips",
            "sips-rule",
            "flat-rule",
            "cumulative",
            "matching",
            "auto",
        )
    },
}
MEASURES = ("room", "ceiling", "auto: missing mass, %")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="where to write .md and .csv")
    parser.add_argument("--max-items", type=int, help="Δ0; the mechanisms' own unless given")
    parser.add_argument("--only", action="append", help="a contender; all unless named")
    parser.add_argument("names", nargs="*", help="data sets; all in the folder unless named")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in options.data.glob("*.parquet"))
    old = read_csv(options.out.with_suffix(".csv")) if options.out else {}
    rows = dict(old)
    for name in names:
        path = options.data / f"{name}.parquet"
        found = {
            who: mean_items(path, {"max_items": options.max_items, **how}, [None] * options.runs)
            for who, how in CONTENDERS.items()
            if who in (options.only or CONTENDERS)
        }
        print(name, {who: str(items) for who, items in found.items()}, flush=True)
        known = old.get(name, {}) | found | _measures(path)
        rows[name] = {who: known[who] for who in (*CONTENDERS, *MEASURES) if who in known}
    table = markdown(
        rows,
        f"Items released at (ε, δ) = ({EPSILON}, {DELTA}): means of {options.runs} runs "
        "± 95 % interval",
    )
    print(table)
    if options.out:
        options.out.with_suffix(".md").write_text(f"# Items released\n\n{table}")
        write_csv(options.out.with_suffix(".csv"), rows)


def _measures(path: Path) -> dict[str, Estimate]:
    """Return the room, the ceiling, and the missing mass of one release by `auto`."""
    holders = Holders.of(path)
    auto = dp_sips.select_partitions(path, user="user", item="item", epsilon=EPSILON, delta=DELTA)
    missing = 100 * holders.missing_mass(auto.items["item"])
    values = room(path), holders.ceiling(EPSILON, DELTA), missing
    return {name: Estimate.mean([value]) for name, value in zip(MEASURES, values, strict=True)}


if __name__ == "__main__":
    main()
