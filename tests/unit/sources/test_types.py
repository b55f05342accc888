"""Which types may be users and items, and how they travel."""

import datetime as dt
import re
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips.errors import InputError
from dp_sips.sources import open_source

DAY = dt.date(2024, 5, 1)
NOON = dt.datetime(2024, 5, 1, 12)  # noqa: DTZ001
VALUES: list[tuple[pa.DataType, Any]] = [
    *((kind, 7) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, 7) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    *((kind, "a") for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, b"a") for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))),
    (pa.bool_(), True),
    (pa.date32(), DAY),
    (pa.date64(), DAY),
    *((pa.timestamp(unit), NOON) for unit in ("s", "ms", "us")),
    (pa.timestamp("us", "UTC"), NOON.replace(tzinfo=dt.UTC)),
    (pa.time32("s"), dt.time(12)),
    (pa.time64("us"), dt.time(12)),
    (pa.duration("s"), dt.timedelta(1)),
    *((kind(9, 2), Decimal("1.25")) for kind in (pa.decimal32, pa.decimal64)),
    *((kind(9, 2), Decimal("1.25")) for kind in (pa.decimal128, pa.decimal256)),
    (pa.dictionary(pa.int8(), pa.string()), "a"),
    (pa.dictionary(pa.uint32(), pa.int64(), ordered=True), 7),
    (pa.dictionary(pa.int16(), pa.string_view()), "a"),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=str)
def test_each_allowed_type_as_user_and_item(
    kind: pa.DataType, value: Any, count: Any, items: Any
) -> None:
    table = pa.table({"u": _column([value, value], kind), "i": _column([None, value], kind)})
    source = open_source(table, user="u", item="i", nulls="group")
    assert count(source) == Counter([(value, None), (value, value)])
    restored = source.restore(items(source, [value, None]))
    assert restored.schema == pa.schema({"i": kind})
    assert restored["i"].to_pylist() == [value, None]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=str)
def test_each_allowed_type_in_lists(kind: pa.DataType, value: Any, count: Any, items: Any) -> None:
    lists = pa.ListArray.from_arrays([0, 2, 2, 3], _column([value, None, value], kind))
    table = pa.table({"u": _column([value] * 3, kind), "i": lists})
    source = open_source(table, user="u", item="i", nulls="drop")
    assert count(source) == Counter({(value, value): 2})
    assert source.restore(items(source, [value])).schema == pa.schema({"i": kind})


# Arrow cannot write the last one, a dictionary of views, to Parquet.
@pytest.mark.parametrize(("kind", "value"), VALUES[:-1], ids=str)
def test_each_allowed_type_in_parquet(
    kind: pa.DataType, value: Any, tmp_path: Path, count: Any, items: Any
) -> None:
    table = pa.table({"u": _column([value, value], kind), "i": _column([None, value], kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    kept = pq.read_schema(tmp_path / "a.parquet").field("i").type
    source = open_source(tmp_path / "a.parquet", user="u", item="i", nulls="group")
    assert count(source) == Counter([(value, None), (value, value)])
    assert source.restore(items(source, [value])).schema.types == [kept]


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return pa.array(values, kind)
    known = [value for value in values if value is not None][:1]
    indices = pa.array([None if value is None else 0 for value in values], kind.index_type)
    return pa.DictionaryArray.from_arrays(
        indices, pa.array(known, kind.value_type), ordered=kind.ordered
    )


@pytest.mark.parametrize("in_list", [False, True])
def test_uuids_travel_as_bytes_and_return_as_uuids(
    in_list: bool,  # noqa: FBT001
    count: Any,
    items: Any,
) -> None:
    key = uuid.UUID(int=7)
    array = pa.array([key], pa.uuid())
    column = pa.ListArray.from_arrays([0, 1], array) if in_list else array
    source = open_source(pa.table({"u": array, "i": column}), user="u", item="i")
    assert count(source) == Counter([(key.bytes, key.bytes)])
    restored = source.restore(items(source, [key.bytes]))
    assert restored.schema.types == [pa.uuid()]
    assert restored["i"].to_pylist() == [key]


@pytest.mark.parametrize(
    "lists",
    [
        pa.list_(pa.int64()),
        pa.large_list(pa.int64()),
        pa.list_(pa.int64(), 2),
        pa.list_view(pa.int64()),
        pa.large_list_view(pa.int64()),
    ],
    ids=str,
)
@pytest.mark.parametrize("offset", [0, 1])
def test_each_kind_of_list(lists: pa.DataType, offset: int, read: Any) -> None:
    column = pa.array([[9, 9], [1, 2], None, [3, None]], lists).slice(offset)
    table = pa.table({"u": pa.array([8, 1, 2, 3]).slice(offset), "i": column})
    kept = [(8, 9), (8, 9), (1, 1), (1, 2), (3, 3)][2 * offset :]
    assert read(table, nulls="drop") == Counter(kept)
    assert read(table, nulls="group") == Counter([*kept, (2, None), (3, None)])
    with pytest.raises(InputError, match="column 'i' of the table has nulls"):
        read(table)


@pytest.mark.parametrize(
    "make",
    [
        lambda values, mask: pa.ListArray.from_arrays([0, 2, 3, 4], values, mask=mask),
        lambda values, mask: pa.LargeListArray.from_arrays([0, 2, 3, 4], values, mask=mask),
        lambda values, mask: pa.ListViewArray.from_arrays([0, 2, 3], [2, 1, 1], values, mask=mask),
    ],
    ids=["list", "large", "view"],
)
def test_a_null_list_may_cover_values(make: Any, read: Any) -> None:
    lists = make(pa.array(["a", "b", "hidden", "c"]), pa.array([False, True, False]))
    table = pa.table({"u": [1, 2, 3], "i": lists})
    kept = [(1, "a"), (1, "b"), (3, "c")]
    assert read(table, nulls="drop") == Counter(kept)
    assert read(table, nulls="group") == Counter([*kept, (2, None)])


def test_list_views_in_any_order(read: Any) -> None:
    """Views of one store of values, in no order, overlapping and with gaps."""
    views = pa.ListViewArray.from_arrays([3, 0, 0], [1, 2, 1], pa.array(["a", "b", "gap", "c"]))
    expected = Counter([(1, "c"), (2, "a"), (2, "b"), (3, "a")])
    assert read(pa.table({"u": [1, 2, 3], "i": views})) == expected


def test_null_lists_of_dictionaries(read: Any) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array([0, 2, None, 3]), words)
    table = pa.table({"u": [1, 2, 3], "i": lists})
    assert read(table, nulls="group") == Counter([(1, "a"), (1, "b"), (2, "a"), (3, None)])


def test_long_lists_are_cut(read: Any) -> None:
    lists = pa.array([list(range(1000))] * 400)
    assert read(pa.table({"u": pa.array(range(400)), "i": lists})).total() == 400_000
    lists = pa.array([list(range(300_000)), [1]])
    assert read(pa.table({"u": [1, 2], "i": lists})).total() == 300_001


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.5]), "double: cast it first .*floats have no dependable equality"),
        (pa.array([1.5], pa.float32()), "floats have no dependable equality"),
        (pa.array([[1.5]]), "floats have no dependable equality"),
        (pa.array([1.5]).dictionary_encode(), "floats have no dependable equality"),
        (pa.array([{"a": 1}]), "struct<a: int64>, which cannot be"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "map<.*which cannot be"),
        (pa.array([[[1]]]), "list<.*which cannot be"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "which cannot be"),
    ],
)
def test_other_types_are_refused(column: pa.Array, message: str, read: Any) -> None:
    with pytest.raises(InputError, match=f"column 'i' of the table has the type .*{message}"):
        read(pa.table({"u": [1], "i": column}))


@pytest.mark.parametrize(
    ("found", "value", "declared", "fix"),
    [
        (pa.timestamp("us"), NOON.replace(microsecond=5), "timestamp[s]", "timestamp[us]"),
        (pa.timestamp("us"), NOON.replace(year=1500), "timestamp[ns]", "timestamp[us]"),
        (pa.date32(), DAY.replace(year=1500), "timestamp[ns]", "timestamp[s]"),
    ],
    ids=str,
)
def test_times_that_a_declared_unit_does_not_hold(
    found: pa.DataType, value: Any, declared: str, fix: str, read: Any
) -> None:
    """They are no text that could be written in another way."""
    column = pa.array([value, None], found)
    said = f"not of the type {declared}: declare a unit that fits, as {fix}, or another type"
    for kind in (column, column.dictionary_encode(), column.to_pylist()):
        columns = {"u": ["1", "2"], "i": kind}
        data = columns if isinstance(kind, list) else pa.table(columns)
        with pytest.raises(InputError, match=re.escape(said)):
            read(data, types={"i": declared}, nulls="drop")
        assert len(read(data, types={"i": fix}, nulls="drop")) == 1
    text = {"u": ["1"], "i": ["31.1.2026"]}
    with pytest.raises(InputError, match="write times as"):
        read(text, types={"i": declared})


def test_lists_are_for_one_item_column_only(read: Any) -> None:
    table = pa.table({"u": [1], "i": [[1]], "j": [1]})
    with pytest.raises(InputError, match="column 'i' of the table holds lists"):
        read(table, item=["i", "j"])
    with pytest.raises(InputError, match="column 'i' of the table has the type list"):
        read(table, user="i", item="j")
