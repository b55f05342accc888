"""The README's table of yields, from docs/yields.csv.

    python experiments/readme_table.py [--check]

Writes the table between the two markers in README.md; with --check, fails if it is not there.
"""

import argparse
import csv
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
START, END = "<!-- yields: experiments/readme_table.py -->", "<!-- end of yields -->"

DATA: Final = {
    "definitelytyped": "definitelytyped, who contributed to what (1)",
    "tags_math_sx": "math tags, tags of questions (2)",
    "npm_deps": "npm, what packages depend on (5)",
    "amazon_beauty": "amazon, products reviewed (6)",
    "retail": "retail, supermarket baskets (8)",
    "reddit_posts": "reddit, words of posts (11)",
    "acl_titles": "acl, words of paper titles (13)",
    "jeopardy": "jeopardy, words of quiz clues (16)",
    "wiki": "wiki, words of first paragraphs (34)",
    "imdb": "imdb, words of reviews (115)",
}
"""Data sets with what they hold and the median number of items a user has."""

COLUMNS: Final = {
    "sips, paper": "DP-SIPS, paper",
    "dpsu": "DPSU",
    "gw": "GW",
    "mad2r": "MAD2R",
    "cumulative": "`cumulative`",
    "matching": "`matching`",
    "auto": "`auto`",
    "ceiling": "ceiling",
}


def table(yields: Path = ROOT / "docs" / "yields.csv") -> str:
    """Return a sentence and the table, from the means in a CSV file."""
    with yields.open(encoding="utf-8", newline="") as file:
        means = {
            (row["data"], row["mechanism"]): float(row["mean"]) for row in csv.DictReader(file)
        }
    gains = [means[name, "auto"] / means[name, "sips, paper"] - 1 for name in DATA]
    span = f"{100 * min(gains):.0f} % to {100 * max(gains):.0f} %"
    lines = [
        f"`auto`, the default, releases {span} more items than DP-SIPS.",
        "",
        f"| data (median items a user) | {' | '.join(COLUMNS.values())} |",
        "|---" * (1 + len(COLUMNS)) + "|",
    ]
    lines += [f"| {words} | {' | '.join(_cells(means, name))} |" for name, words in DATA.items()]
    return "\n".join(lines)


def _cells(means: dict[tuple[str, str], float], name: str) -> list[str]:
    cells = {column: f"{means[name, column]:,.0f}" for column in COLUMNS}
    return [f"**{cell}**" if column == "auto" else cell for column, cell in cells.items()]


def written(readme: str) -> str:
    """Return the README with the table between its markers."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def main() -> int:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    path = ROOT / "README.md"
    old = path.read_text("utf-8")
    if not check:
        path.write_text(written(old), "utf-8")
    elif written(old) != old:
        print("README.md is older than docs/yields.csv: run python experiments/readme_table.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
