"""Mappings and pairs."""

import datetime as dt
import traceback
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
        lambda: [("ann", "tea"), ("ann", "jam"), ("bob", "tea")],
        lambda: [("ann", "tea"), ("ann", ["jam"]), ["bob", "tea"]],
    ],
)
def test_each_shape_gives_the_same_rows(make: Any, count: Any, items: Any) -> None:
    source = plain(make())
    assert count(source) == ROWS
    assert source.rows() is None
    assert source.restore(items(source, ["jam", "tea"])) == ["jam", "tea"]


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
        [("ann", ["tea"], 1)],
        [{"user": "ann", "item": "tea"}],
    ],
)
def test_wrong_shapes_show_the_right_one(data: Any) -> None:
    with pytest.raises(InputError, match=r"expected a mapping \{.*or pairs \(") as caught:
        list(plain(data).batches())
    assert "ann" not in str(caught.value).split("; got")[1]


MIXED = [1, "1", Decimal(1), True, NOON, NOON.date(), NOON.replace(tzinfo=dt.UTC), b"1", dt.time(1)]


def test_each_value_is_of_its_own_kind(items: Any) -> None:
    """To Python, 1 is True and Decimal(1): to us, they are three users and three items."""
    source = plain([(value, value) for value in MIXED])
    found = [pair for batch in source.batches() for pair in zip(*source.values(batch), strict=True)]
    assert [(value, type(value)) for value, _ in found] == [(v, type(v)) for v in MIXED]
    (batch,) = source.batches()
    assert len(set(batch.column(0).to_pylist())) == len(MIXED)
    for value in MIXED:
        (alone,) = plain({value: [value]}).batches()
        assert alone.column(0)[0].as_py() in batch.column(0).to_pylist()
    restored = source.restore(items(source, MIXED))
    assert [(value, type(value)) for value in restored] == [(v, type(v)) for v in MIXED]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({1: [1.5]}, "column 'item' of the dict has floats.*no dependable equality"),
        ({1: [("a", "b")]}, "column 'item' of the dict has values of the type tuple"),
        ({(1, 2): ["a"]}, "column 'user' of the dict has values of the type tuple"),
        ({1: [2**63]}, "'item' .* does not fit int64: declare its type, as types="),
        ({1: [Decimal("1e40")]}, "does not fit decimal"),
        ({1: [Decimal("1e-40")]}, "does not fit decimal"),
        ({1: [Decimal("NaN")]}, "does not fit decimal"),
        ({1: [pd.NaT, pd.Timestamp(NOON)]}, r"does not fit timestamp\[us\]"),
        ({1: [pd.Timestamp(1, unit="ns")]}, "does not fit"),
        ({1: ["SECRET\ud800"]}, "does not fit large_string"),
    ],
)
def test_bad_values(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        list(plain(data).batches())
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("data", [{}, [], {1: []}, iter(())])
def test_no_rows(data: Any, count: Any) -> None:
    assert count(plain(data)) == Counter()


def test_declared_types(count: Any) -> None:
    source = plain({"1": ["2024-05-01"]}, types={"user": "int", "item": "date"})
    assert count(source) == Counter([(1, dt.date(2024, 5, 1))])
    released = pa.Table.from_batches(source.batches()).select(["item"])
    assert source.restore(released) == [dt.date(2024, 5, 1)]


COLUMNS = {"u": ["ann", "ann", "bob"], "i": ("tea", "jam", "tea"), "j": np.array([1, 2, 3])}


def test_a_dict_of_columns(count: Any, items: Any) -> None:
    source = open_source(COLUMNS, user="u", item="i")
    assert count(source) == ROWS
    assert source.restore(items(source, ["jam"])) == {"i": ["jam"]}
    assert count(open_source(COLUMNS, user="u", item=["i", "j"]))["bob", "tea", 3] == 1
    lists = {"u": ["ann", "bob"], "i": [["tea", "jam"], "tea"]}
    assert count(open_source(lists, user="u", item="i")) == ROWS
    assert count(open_source({"u": [], "i": []}, user="u", item="i")) == Counter()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (BASKETS, "the dict has no column 'u'.*leave them out if it maps users to items"),
        ({"u": ["ann"], "i": ["tea", "jam"]}, "the columns 'u', 'i' of the dict differ in length"),
        ({"u": "ann", "i": "tea"}, "the dict has no column 'u'"),
        ({"u": 1, "i": 2}, "the dict has no column 'u'"),
    ],
    ids=range(4),
)
def test_dicts_that_are_no_columns(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        open_source(data, user="u", item="i")
    assert "ann" not in str(caught.value)


@pytest.mark.parametrize("data", [iter(BASKETS.items()), [("ann", ["tea"])], {("ann", "tea")}])
@pytest.mark.parametrize(("user", "item"), [("u", "i"), (0, 1), ("0", "1"), (0, "i"), (None, 1)])
def test_column_names_are_for_tables(data: Any, user: Any, item: Any) -> None:
    """Whatever names they are: others would not do either."""
    with pytest.raises(UsageError, match=r"user= and item= name columns, .* leave them out"):
        open_source(data, user=user, item=item)


def test_paths_need_column_names() -> None:
    with pytest.raises(InputError, match="paths need user= and item="):
        list(plain(["a.parquet", "b.parquet"]).batches())


def test_rows_that_are_dicts_need_a_data_frame() -> None:
    with pytest.raises(InputError, match=r"make a data frame, and name user= and i") as caught:
        list(plain([{"SECRET": "SECRET", "i": "SECRET"}]).batches())
    assert "SECRET" not in str(caught.value)
