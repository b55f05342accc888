"""Runs of a mechanism as estimates and tables."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def measuring() -> Any:
    return import_module("measuring")


def test_a_mean_has_students_interval(measuring: Any) -> None:
    found = measuring.Estimate.mean([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.value == 3
    # t(0.975, 4) = 2.776 445 and the standard error is √(2.5/5).
    assert found.half == pytest.approx(2.776445 * 0.5**0.5, rel=1e-6)
    assert (found.low, found.high) == (pytest.approx(3 - found.half), pytest.approx(3 + found.half))
    assert str(found) == "3 ± 2"


def test_one_run_has_no_interval(measuring: Any) -> None:
    assert measuring.Estimate.mean([7.0]) == measuring.Estimate(7, 7, 7, 1)


def test_a_median_lies_between_extremes(measuring: Any) -> None:
    assert measuring.Estimate.median([3.0, 9.0, 1.0]) == measuring.Estimate(3, 1, 9, 3)


def test_seeds_repeat_a_run(measuring: Any) -> None:
    rows = [(user, item) for user in range(300) for item in range(user % 20)]
    users, items = zip(*rows, strict=True)
    table = pa.table({"user": users, "item": items})
    how = {"mechanism": "sips", "epsilon": 1.0, "delta": 1e-4}
    first = measuring.mean_items(table, how, (1, 2, 3))
    assert first == measuring.mean_items(table, how, (1, 2, 3))
    assert first.runs == 3
    assert 0 < measuring.items_released(table, how) <= 19


def test_tables_show_what_did_not_run(measuring: Any, tmp_path: Path) -> None:
    two = measuring.Estimate(2, 1, 3, 5)
    rows = {"tea": {"a": two, "b": two}, "jam": {"b": two}}
    assert measuring.markdown(rows, "Items") == (
        "Items\n\n| data | a | b |\n|---|---|---|\n| tea | 2 ± 1 | 2 ± 1 |\n| jam | – | 2 ± 1 |\n"
    )
    measuring.write_csv(tmp_path / "x.csv", rows)
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert lines[0] == "data,mechanism,mean,half_interval,runs"
    assert lines[-1] == "jam,b,2,1.0,5"


class TestRoom:
    def test_parts_of_a_level(self, measuring: Any) -> None:
        random = np.random.default_rng(1)
        for _ in range(300):
            most, shares = random.uniform(0, 2, (2, int(random.integers(1, 40))))
            level = random.uniform(0, 1.2) * most.sum()
            given = measuring._given(most, shares, level)
            assert (given <= most).all()
            assert given.sum() == pytest.approx(level if level <= most.sum() else 0)

    def test_by_hand(self, measuring: Any, tmp_path: Path) -> None:
        """Ten people lift their only item to 10, 210 lift both of theirs, and nine are too few."""
        rows = [(user, "a") for user in range(10)]
        rows += [(user, item) for user in range(10, 220) for item in ("b", "c")]
        rows += [(user, "d") for user in range(300, 309)]
        table = pa.table({"user": [user for user, _ in rows], "item": [item for _, item in rows]})
        pq.write_table(table, tmp_path / "pairs.parquet")
        assert measuring.room(tmp_path / "pairs.parquet") == 3
