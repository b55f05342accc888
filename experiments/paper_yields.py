"""Items released with the paper's settings: ρ = 0.1, δ = 1e-5, Δ0 = 100, I = 3, r = 1/3.

    python experiments/paper_yields.py --data DIR [--runs 10] [imdb …]

DIR holds Parquet files with the columns user and item.
"""

import argparse
import statistics
from pathlib import Path

import dp_sips


def main() -> None:
    """Print a row for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("names", nargs="*", help="data sets; all in the folder unless named")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in options.data.glob("*.parquet"))
    print(
        f"| data, mean of {options.runs} runs (± standard deviation) | weighted-gaussian | sips |"
    )
    print("|---|---|---|")
    for name in names:
        path = options.data / f"{name}.parquet"
        cells = [
            _summary([_released(path, mechanism) for _ in range(options.runs)])
            for mechanism in ("weighted-gaussian", "sips")
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _released(path: Path, mechanism: str) -> int:
    selection = dp_sips.select_partitions(
        path, user="user", item="item", rho=0.1, delta=1e-5, max_items=100, mechanism=mechanism
    )
    return int(selection.items.num_rows)


def _summary(released: list[int]) -> str:
    return f"{statistics.mean(released):,.0f} ± {statistics.stdev(released):,.0f}"


if __name__ == "__main__":
    main()
