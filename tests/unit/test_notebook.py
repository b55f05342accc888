"""How results look in a notebook, and what len() and iteration give."""

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dp_sips

USERS = 900  # enough for a miss to have a probability below 1e-6
CITIES = ["<Lima>", "Rome"]
ROWS = {
    "user": [n for n in range(USERS) for _ in CITIES],
    "city": CITIES * USERS,
    "year": [2026] * USERS * 2,
}
BUDGET: dict[str, Any] = {"epsilon": 2, "delta": 1e-5, "mechanism": "sips", "progress": False}
KINDS: dict[str, Callable[[], Any]] = {
    "dict": lambda: ROWS,
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy polars": lambda: pl.LazyFrame(ROWS),
    "arrow": lambda: pa.table(ROWS),
    "duckdb": lambda: duckdb.from_arrow(pa.table(ROWS)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_length_and_iteration(kind: str) -> None:
    made = dp_sips.select_partitions(KINDS[kind](), user="user", item="city", **BUDGET)
    assert (len(made), list(made), bool(made)) == (2, CITIES, True)
    several = dp_sips.select_partitions(KINDS[kind](), user="user", item=["city", "year"], **BUDGET)
    assert list(several) == [(city, 2026) for city in CITIES]
    assert "<tr><td>&lt;Lima&gt;</td>" in several._repr_html_()


def test_plain_values_and_nothing() -> None:
    mapping = dict.fromkeys(range(USERS), CITIES)
    assert list(dp_sips.select_partitions(mapping, **BUDGET)) == CITIES
    empty = dp_sips.select_partitions({}, **BUDGET)
    assert (len(empty), list(empty), bool(empty)) == (0, [], True)
    assert "Selection of 0 items" in empty._repr_html_()


def test_long_tables_are_cut() -> None:
    mapping = {n: [f"item {i:02}" for i in range(12)] for n in range(3000)}
    html = dp_sips.select_partitions(mapping, **BUDGET)._repr_html_()
    assert html.count("<tr>") == 11
    assert "… and 2 more" in html


def test_counts() -> None:
    counts = dp_sips.count_users(pd.DataFrame(ROWS), user="user", item="city", **BUDGET)
    assert len(counts) == 2
    (city, users), _ = counts
    assert city == CITIES[0]
    assert abs(users - USERS) < 12 * counts.standard_deviation
    assert repr(counts).startswith("<Counts of 2 rows, ± ")
    assert "<th>city</th><th>users</th>" in counts._repr_html_()


def test_a_test_seed_shows() -> None:
    made = dp_sips.select_partitions({}, **BUDGET, seed=1, insecure_test=True)
    assert "NOT PRIVATE" in repr(made)
    assert "NOT PRIVATE" in made._repr_html_()


@pytest.mark.parametrize("mechanism", ["auto", "cumulative", "matching", "sips"])
def test_representations_are_short(mechanism: str) -> None:
    plan = dp_sips.plan(mechanism, epsilon=1, delta=1e-6)
    assert len(repr(plan)) < 120
    assert len(repr(plan.guarantee)) < 150
    assert str(plan.guarantee) in plan.guarantee._repr_html_()


def test_a_plan_shows_what_an_item_needs() -> None:
    plan = dp_sips.plan("sips", epsilon=1, delta=1e-6)
    html = plan._repr_html_()
    for items in (1, 10, 100):
        assert str(plan.users_needed(0.95, items)) in html
