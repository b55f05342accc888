"""Settings that are allowed and seldom meant."""

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import dp_sips
from dp_sips import UnwiseWarning

PAIRS = {f"user {n}": ["tea"] for n in range(3)}
LISTS = pa.table({"user": ["ann", "bob"], "items": [["tea", "jam"], ["tea"]]})


def select(**options: Any) -> dp_sips.Selection:
    return dp_sips.select_partitions(PAIRS, mechanism="sips", progress=False, **options)


def count(**options: Any) -> dp_sips.Counts:
    return dp_sips.count_users(PAIRS, keys=["tea"], progress=False, **options)


def plan(**options: Any) -> dp_sips.Plan:
    return dp_sips.plan("sips", **options)


@pytest.mark.parametrize("call", [select, count, plan])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": 1, "delta": 1e-3}, "fail for one person in 1,000:"),
        ({"epsilon": 10.5, "delta": 1e-6}, "epsilon=10.5 hardly protects anybody"),
        ({"rho": 11, "delta": 1e-6}, "rho=11 hardly protects anybody"),
    ],
)  # fmt: skip
def test_one_line_where_the_caller_stands(
    call: Callable[..., object], settings: dict[str, float], words: str
) -> None:
    with pytest.warns(UnwiseWarning) as caught:
        call(**settings)
    (warning,) = caught
    assert words in str(warning.message)
    assert warning.filename == __file__


def test_usual_settings_are_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan(epsilon=10, delta=9e-4)
        select(rho=0.1, delta=1e-5, max_items=1)


TEXTS = pa.table({"user": ["ann", "bob"], "items": ["tea jam", "tea"]})
USUAL: dict[str, Any] = {"user": "user", "epsilon": 1, "delta": 1e-6, "progress": False}


def test_one_item_of_a_list_in_levels() -> None:
    item = dp_sips.text.ngrams("items", 2, levels=True)
    with pytest.warns(UnwiseWarning, match="max_items=1 lets one item") as caught:
        dp_sips.select_partitions(TEXTS, item=item, mechanism="sips", max_items=1, **USUAL)
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["max_items", "selection_max_items"])
def test_one_item_of_a_list_in_counts(name: str) -> None:
    with pytest.warns(UnwiseWarning, match=f"settings: {name}=1 lets one item") as caught:
        dp_sips.count_users(LISTS, item="items", **USUAL | {name: 1})
    assert len(caught) == 1


def test_one_item_of_a_list() -> None:
    columns: dict[str, Any] = {"user": "user", "item": "items", "epsilon": 1, "delta": 1e-6}
    with pytest.warns(UnwiseWarning, match="max_items=1 lets one item of each list count"):
        dp_sips.select_partitions(LISTS, **columns, max_items=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp_sips.select_partitions(LISTS, **columns, max_items=2, progress=False)
