"""public_items and min_users, as callers give them, in select_partitions, count_users and plan."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips import InputError, UsageError, count_users, plan, select_partitions

DATA = {"who": [u for u in range(300) for _ in range(3)], "what": ["jam", "rice", "tea"] * 300}
TABLE = pa.table(DATA)
HOW: dict[str, Any] = {"user": "who", "item": "what", "epsilon": 4.0, "delta": 1e-9}


def new(public: Any, **how: Any) -> list[str]:
    made = select_partitions(TABLE, **HOW, mechanism="sips", public_items=public, **how)
    return [str(item) for item in made.items["what"].to_pylist()]


def test_kinds_of_public_items(tmp_path: Path) -> None:
    file = tmp_path / "known.csv"
    file.write_text("what\ntea\ntea\nnobody's\n")
    earlier = select_partitions(DATA, **HOW, mechanism="sips", public_items=["jam", "rice"])
    counts = count_users(DATA, **HOW, mechanism="sips", public_items=["jam", "rice"])
    table = pa.table({"what": ["tea"]})
    for public in (["tea"], file, str(file), table, table.to_pandas(), earlier, counts):
        assert new(public) == ["jam", "rice"]
    assert new([]) == new(None) == ["jam", "rice", "tea"]


def test_public_items_of_several_kinds(tmp_path: Path) -> None:
    """Text that looks like a number and the number are two items, here as well."""
    held = ["7", 7, "true", True, 1.5, "tea"]
    lines = (json.dumps({"who": user, "what": held}) for user in range(300))
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    log = str(tmp_path / "log.jsonl")
    release = select_partitions(log, **HOW, mechanism="sips")
    assert len(release.items) == len(held)
    for public in (release, release.items):
        again = select_partitions(log, **HOW, mechanism="sips", public_items=public)
        assert len(again.items) == 0
        assert min(count_users(log, **HOW, keys=public).table["users"].to_pylist()) > 200
    one = select_partitions(log, **HOW, mechanism="sips", public_items=[7]).items
    assert sorted(one["what"].to_pylist()) == sorted(
        ["1.5", *map(json.dumps, ["7", "true", True, "tea"])]
    )


def test_the_row_of_other_users_is_no_item(tmp_path: Path) -> None:
    counts = count_users(TABLE, **HOW, keys=["tea", "jam"], other=True)
    file = tmp_path / "counts.parquet"
    pq.write_table(counts.table, file)
    for given in (counts, counts.table, counts.table.to_pandas(), file):
        assert new(given) == ["rice"]
        again = count_users(TABLE, **HOW, keys=given, seed=1, insecure_test=True)
        assert again.table["what"].to_pylist() == ["jam", "tea"]


def test_max_items_are_of_the_rest() -> None:
    """Two of three items are public: with max_items=1, the third has all of everybody's weight."""
    assert new(["jam", "rice"], max_items=1) == ["tea"]


def test_the_certificate_says_how_many() -> None:
    made = select_partitions(DATA, **HOW, public_items=["tea", "tea", "x"], min_users=3)
    assert made.certificate["public_items"] == 2
    assert made.certificate["min_users"] == 3
    assert select_partitions(DATA, **HOW).certificate["public_items"] == 0


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="public_items must be a selection, a table, a file or a"):
        new(5)
    with pytest.raises(InputError, match="public_items have nulls, and the data has none"):
        new(pd.DataFrame({"what": ["tea", None, "jam"]}))
    with pytest.raises(InputError, match=r"no such file: tea.* a list: public_items=\['tea'\]"):
        new("tea")
    for option in ({"public_items": ["tea"]}, {"min_users": 2}):
        with pytest.raises(UsageError, match=f"leave out {next(iter(option))}"):
            count_users(DATA, **HOW, keys=["tea"], **option)
    with pytest.raises(UsageError, match="'pre_threshold': here it is called min_users"):
        select_partitions(DATA, **HOW, pre_threshold=4)


@pytest.mark.parametrize("name", ["mad", "mad2r", "dpsu", "gw", "policy-laplace"])
def test_mechanisms_without_min_users_name_those_that_have_it(name: str) -> None:
    with pytest.raises(UsageError, match="choose auto, cumulative, sips-rule, sips, weighted-ga"):
        plan(name, epsilon=1, delta=1e-6, min_users=2)
    assert plan(name, epsilon=1, delta=1e-6, min_users=1).min_users == 1


@pytest.mark.parametrize("name", ["auto", "cumulative", "sips", "matching", "weighted-gaussian"])
def test_plans_with_min_users(name: str) -> None:
    one = plan(name, epsilon=1, delta=1e-6)
    ten = plan(name, epsilon=1, delta=1e-6, min_users=10)
    assert ten.min_users == 10
    assert ten.release_probability(9) == 0 < ten.release_probability(10)
    assert ten.users_needed(0.5) >= one.users_needed(0.5) + 9
    assert "Nothing that fewer than 10 users hold is released" in ten.explain()
    assert "Nothing that fewer" not in one.explain()
    assert ten.guarantee.delta(epsilon=1) <= 1e-6


def test_cumulative_needs_epsilon() -> None:
    with pytest.raises(UsageError, match="min_users with cumulative needs epsilon, not rho"):
        plan("cumulative", rho=0.1, delta=1e-6, min_users=2)
    assert plan(rho=0.1, delta=1e-6, min_users=2).mechanism.name == "sips"
