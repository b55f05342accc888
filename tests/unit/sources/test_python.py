"""Mappings and pairs."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dp_sips.errors import InputError, UsageError
from dp_sips.sources import open_source

ROWS = Counter([("ann", "tea"), ("ann", "jam"), ("bob", "tea")])
BASKETS = {"ann": ["tea", "jam"], "bob": {"tea"}, "cem": ()}
NOON = dt.datetime(2024, 5, 1, 12)  # noqa: DTZ001


def plain(data: Any, **options: Any) -> Any:
    return open_source(data, user=None, item=None, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BASKETS,
        lambda: MappingProxyType(BASKETS),
        lambda: list(BASKETS.items()),
        lambda: tuple(BASKETS.items()),
        BASKETS.items,
        lambda: iter(BASKETS.items()),
        lambda: ([user, iter(items)] for user, items in BASKETS.items()),
    ],
)
def test_each_shape_gives_the_same_rows(make: Any, count: Any) -> None:
    source = plain(make())
    assert count(source) == ROWS
    assert source.rows() is None
    assert source.item_schema == pa.schema({"item": pa.large_string()})
    assert source.restore(pa.table({"item": ["jam", "tea"]})) == ["jam", "tea"]


@pytest.mark.parametrize(
    "value",
    [
        "a",
        7,
        -(2**63),
        b"a",
        True,
        dt.date(2024, 5, 1),
        NOON,
        NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=2))),
        Decimal("1.50"),
        Decimal("1E+3"),
        Decimal("-0.000001"),
    ],
    ids=repr,
)
def test_each_type_returns(value: Any, count: Any) -> None:
    source = plain({value: [value]})
    assert count(source) == Counter([(value, value)])
    released = pa.Table.from_batches(source.batches()).select(["item"])
    (restored,) = source.restore(released)
    assert restored == value
    assert type(restored) is type(value)


def test_decimals_are_short_again() -> None:
    texts = ["1.5", "100", "0", "12345678901234567890.123456789012345678"]
    source = plain({1: [*map(Decimal, texts)]})
    released = pa.Table.from_batches(source.batches()).select(["item"])
    assert [str(value) for value in source.restore(released)] == texts


def test_numpy_values(count: Any) -> None:
    assert count(plain({np.int32(1): np.array([7, 8])})) == Counter([(1, 7), (1, 8)])


def test_pairs_are_read_lazily_once_and_in_batches() -> None:
    taken = []

    def produce() -> Iterator[tuple[int, list[int]]]:
        for user in range(1000):
            taken.append(user)
            yield user, list(range(1000))

    source = plain(produce())
    assert len(taken) <= 263
    batches = source.batches()
    assert next(batches).num_rows <= 1 << 18
    assert len(taken) <= 263
    assert sum(batch.num_rows for batch in batches) > 700_000
    assert len(taken) == 1000
    with pytest.raises(UsageError, match="the generator was read already"):
        list(source.batches())


def test_a_mapping_can_be_read_twice(count: Any) -> None:
    source = plain(BASKETS)
    assert count(source) == count(source) == ROWS


def test_nulls(count: Any) -> None:
    data = {"ann": ["tea", None], "bob": None}
    kept = [("ann", "tea"), ("ann", None), ("bob", None)]
    assert count(plain(data, nulls="group")) == Counter(kept)
    assert count(plain(data, nulls="drop")) == Counter(kept[:1])
    with pytest.raises(InputError, match="column 'item' of the dict has nulls"):
        count(plain(data))


@pytest.mark.parametrize(
    "data",
    [
        ["ann", "bob"],
        [1, 2],
        [("ann", "tea")],
        [("ann", 7)],
        [("ann", ["tea"], 1)],
        [{"user": "ann", "item": "tea"}],
        {"ann": "tea"},
        {"ann": b"tea"},
        {"ann": 7},
    ],
)
def test_wrong_shapes_show_the_right_one(data: Any) -> None:
    with pytest.raises(InputError, match=r"expected a mapping \{.*or pairs \(") as caught:
        plain(data)
    assert "ann" not in str(caught.value).split("; got")[1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({1: ["a", 7]}, "items are of different types, int64 and large_string"),
        ({1: [True, 7]}, "items are of different types, bool and int64"),
        ({1: ["a"], "b": ["a"]}, "users are of different types"),
        ({1: [NOON, NOON.date()]}, "items are of different types"),
        ({1: [NOON, NOON.replace(tzinfo=dt.UTC)]}, "items are of different types"),
        ({1: [1.5]}, "items of type float .*no dependable equality"),
        ({1: [("a", "b")]}, "items of type tuple are not supported"),
        ({(1, 2): ["a"]}, "users of type tuple are not supported"),
        ({1: [2**63]}, "items does not fit int64: pass all of them as str"),
        ({1: [Decimal("1e30")]}, "items does not fit decimal"),
        ({1: [Decimal("1e-30")]}, "items does not fit decimal"),
        ({1: [Decimal("NaN")]}, "items does not fit decimal"),
        ({1: [pd.NaT, pd.Timestamp(NOON)]}, r"items does not fit timestamp\[us\]"),
        ({1: [pd.Timestamp(1, unit="ns")]}, "items does not fit"),
        ({1: ["\ud800"]}, "items does not fit large_string"),
        ({}, "no rows in the dict"),
        ([], "no rows in the list"),
        ({1: []}, "no rows in the dict"),
    ],
)
def test_bad_values(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(plain(data).batches())


def test_a_type_that_changes_late() -> None:
    data = {1: ["a"] * (1 << 18), 2: [7]}
    with pytest.raises(InputError, match="items are of different types, large_string and int64"):
        list(plain(data).batches())


@pytest.mark.parametrize("data", [BASKETS, iter(BASKETS.items()), [("ann", ["tea"])]])
def test_column_names_are_for_tables(data: Any) -> None:
    with pytest.raises(UsageError, match="user= and item= name columns"):
        open_source(data, user="u", item="i")


def test_paths_need_column_names() -> None:
    with pytest.raises(InputError, match="paths need user= and item="):
        plain(["a.parquet", "b.parquet"])
