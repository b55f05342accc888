"""What levels are worth: items released level by level, and all at once, at the same (ε, δ).

    python experiments/levels.py --data DIR [--runs 3] [--out docs/levels]

DIR holds Parquet files with the columns user and item, in the order of each user's text. Of words,
the items are single words and pairs of words that follow each other; of packages, the family (what
stands before the first hyphen) and the package. All at once means one selection of words and pairs
together, and one of packages, whose families follow from what is released.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dp_sips import select_partitions
from dp_sips.text import ngrams

EPSILON, DELTA = 1.0, 1e-6
TEXTS, PACKAGES = ("finance_10k", "acl_titles"), ("npm_deps",)
SHARES = {"levels 1:1": (1, 1), "levels 1:2": (1, 2), "levels 1:4": (1, 4)}
MECHANISMS = ("auto", "cumulative", "sips")
_TITLE = f"""\
# Levels against all at once

Items released at (ε, δ) = ({EPSILON:g}, {DELTA:g}) of the coarse level / of the fine one, means of
{{runs}} runs (`experiments/levels.py`). Coarse are words, and families of packages; fine are pairs
of words, and packages. 1:2 means that the coarse level has a third of the budget, and so on.

"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="where to write .md")
    options = parser.parse_args()
    rows = [
        {"data": name, "mechanism": mechanism, **measured(name, mechanism, options)}
        for name in (*TEXTS, *PACKAGES)
        for mechanism in MECHANISMS
    ]
    table = markdown_table(rows)
    print(table)
    if options.out:
        options.out.with_suffix(".md").write_text(_TITLE.format(runs=options.runs) + table)


def measured(name: str, mechanism: str, options: argparse.Namespace) -> dict[str, str]:
    """Return the means of coarse and fine items for each way to select."""
    data = pq.read_table(options.data / f"{name}.parquet")
    prepare = with_pairs if name in TEXTS else with_families
    ways = WAYS[prepare]
    prepared = prepare(data)
    found = {}
    for way, settings in ways.items():
        runs = [released(prepared, mechanism, settings) for _ in range(options.runs)]
        found[way] = " / ".join(
            f"{statistics.mean(column):,.0f}" for column in zip(*runs, strict=True)
        )
        print(name, mechanism, way, found[way], flush=True)
    return found


def released(data: pa.Table, mechanism: str, settings: dict[str, Any]) -> tuple[int, int]:
    """Return how many coarse and how many fine items a selection has."""
    selection = select_partitions(
        data, user="user", epsilon=EPSILON, delta=DELTA, mechanism=mechanism, **settings
    )
    if selection.levels:
        coarse, fine = (level.num_rows for level in selection.levels)
        return coarse, fine
    items = selection.items["item"].combine_chunks()
    if "family" in data.column_names:
        return len(families(items).unique()), len(items)
    fine = pc.sum(pc.match_substring(items, " ")).as_py() or 0
    return len(items) - fine, fine


def with_pairs(data: pa.Table) -> pa.Table:
    """Return the words, and the pairs of words that follow each other in a user's rows."""
    users, words = (data[name].combine_chunks() for name in ("user", "item"))
    pairs = pc.binary_join_element_wise(words[:-1], words[1:], " ")
    same = pa.array(np.asarray(users[:-1]) == np.asarray(users[1:]))
    return pa.table(
        {
            "user": pa.chunked_array([users, users[:-1].filter(same)]),
            "item": pa.chunked_array([words, pairs.filter(same)]),
        }
    )


def with_families(data: pa.Table) -> pa.Table:
    """Return packages with the family that each belongs to."""
    return data.append_column("family", families(data["item"].combine_chunks()))


def families(packages: pa.Array) -> pa.Array:
    """Return what stands before the first hyphen."""
    return pc.replace_substring_regex(packages, "-.*", "")


WAYS: dict[Any, dict[str, dict[str, Any]]] = {
    with_pairs: {
        "all at once": {"item": "item"},
        **{
            name: {"item": ngrams("item", 2, levels=shares, tokenized=True)}
            for name, shares in SHARES.items()
        },
    },
    with_families: {
        "all at once": {"item": "item"},
        **{
            name: {"item": ["family", "item"], "hierarchy": shares}
            for name, shares in SHARES.items()
        },
    },
}


def markdown_table(rows: list[dict[str, str]]) -> str:
    """Return rows as a table."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row[name] for name in names] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
