"""Plans, certificates and seeded releases of every mechanism, frozen.

The same test key must give the same release for good: a change here is a change of what users get,
and belongs in the changelog. The last digits of a plan's numbers may differ: processors add up in
different orders. `python tests/golden/test_golden.py` writes the files anew.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dp_sips
from dp_sips.engines import find_engine
from dp_sips.engines.reference import ReferenceEngine
from dp_sips.mechanisms import MECHANISMS
from dp_sips.pages.recipe import alike

FOLDER = Path(__file__).parent
BUDGETS: dict[str, dict[str, float]] = {
    "epsilon": {"epsilon": 1.765, "delta": 4.96e-5},
    "small": {"epsilon": 0.5, "delta": 1e-8},
    "rho": {"rho": 0.1, "delta": 1e-5},
}
WORDS = ("tea", "a rather long word of thirty-two", "é", "", "fifteen bytes!!", "sixteen bytes!!!")


def people(users: int, items: int, most: int, seed: int) -> list[tuple[int, int]]:
    """Give each user some items, the first ones to most users, with repeats, in scattered rows."""
    random = np.random.default_rng(seed)
    odds = 1 / np.arange(1, items + 1)
    pairs = [
        (user, int(item))
        for user in range(users)
        for item in random.choice(items, size=int(random.integers(1, most)), p=odds / odds.sum())
    ]
    random.shuffle(pairs)
    return pairs


def tables() -> dict[str, Any]:
    """Return one small table for each way in which engines know items: by value, text and hash."""
    short, long = people(300, 40, 12, 1), people(200, 30, 30, 2)
    return {
        "numbers": pa.table({"u": [u for u, _ in short], "i": [i for _, i in short]}),
        "text": pa.table(
            {
                "u": [f"user {u} of the golden files" for u, _ in long],
                "i": [f"{WORDS[i % len(WORDS)]}{i // len(WORDS)}" for _, i in long],
            }
        ),
        "columns": pa.table(
            {
                "u": [u for u, _ in short],
                "i": [i % 7 for _, i in short],
                "j": [WORDS[i % 5] for _, i in short],
            }
        ),
    }


def selections(
    name: str, engine: Any, budgets: Iterable[str] = tuple(BUDGETS)
) -> dict[str, dict[str, Any]]:
    """Return a certificate and the released items for each table and budget."""
    found: dict[str, dict[str, Any]] = {}
    for kind, table in tables().items():
        for budget in budgets:
            try:
                selection = dp_sips.select_partitions(
                    table,
                    user="u",
                    item=table.column_names[1:],
                    mechanism=name,
                    engine=engine,
                    seed=7,
                    insecure_test=True,
                    **BUDGETS[budget],  # type: ignore[arg-type]
                )
            except dp_sips.UsageError as error:
                found[f"{kind}, {budget}"] = {"refused": str(error)}
                continue
            found[f"{kind}, {budget}"] = {
                "certificate": selection.certificate | {"time": "of the run"},
                "items": selection.items.to_pylist(),
            }
    return found


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def as_text(found: dict[str, dict[str, Any]]) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def check_frozen(found: dict[str, dict[str, Any]], name: str) -> None:
    """Compare with what is frozen of the same tables and budgets."""
    frozen = json.loads(path_of(name).read_text("utf-8"))
    expected = {key: frozen[key] for key in found}
    # The texts show where a difference is.
    assert alike(json.loads(as_text(found)), expected) or as_text(found) == as_text(expected)


NAMES = ("auto", *MECHANISMS)


@pytest.mark.parametrize("name", NAMES)
def test_stays_as_it_was(name: str) -> None:
    for engine in ("memory", "reference"):  # in one process: some plans take ten seconds
        found = selections(name, engine)
        assert found.keys() == json.loads(path_of(name).read_text("utf-8")).keys()
        check_frozen(found, name)


@pytest.mark.parametrize(
    "name", ["auto", *(name for name, kind in MECHANISMS.items() if not kind.sequential)]
)
def test_stays_as_it_was_on_spark(name: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    check_frozen(selections(name, find_engine("spark", driver_bytes=0), ["epsilon"]), name)


if __name__ == "__main__":
    for each in NAMES:
        path_of(each).write_text(as_text(selections(each, ReferenceEngine())), "utf-8")
