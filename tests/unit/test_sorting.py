"""A release is a function of the set of items: sorted, and with dictionaries of its own."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.sorting import sorted_items

SORTED: dict[str, tuple[Any, list[Any]]] = {
    "integers": (pa.int64(), [-(2**63), -1, 0, 5, 2**63 - 1, None]),
    "unsigned": (pa.uint64(), [0, 5, 2**63, 2**64 - 1, None]),
    "text": (pa.string(), ["", "A", "a", "ab", "b", "ä", None]),
    "binary": (pa.binary(), [b"", b"\0", b"a", b"\xff", None]),
    "fixed": (pa.binary(2), [b"\0\0", b"ab", b"\xff\0", None]),
    "truth": (pa.bool_(), [False, True, None]),
    "dates": (pa.date32(), [dt.date(1900, 1, 1), dt.date(2000, 1, 1), None]),
    "times": (pa.time64("us"), [dt.time(1), dt.time(2), None]),
    "durations": (pa.duration("s"), [dt.timedelta(-5), dt.timedelta(5), None]),
    "moments": (
        pa.timestamp("us", "Europe/Paris"),
        [dt.datetime(1950, 1, 1, tzinfo=dt.UTC), dt.datetime(2000, 1, 1, tzinfo=dt.UTC), None],
    ),
    "decimals": (pa.decimal128(9, 1), [Decimal("-1.5"), Decimal(0), Decimal("12.5"), None]),
}


@pytest.mark.parametrize("name", SORTED)
def test_by_value_with_nulls_last(name: str) -> None:
    kind, values = SORTED[name]
    expected = pa.array(values, kind)
    for order in (values[::-1], values[1:] + values[:1]):
        table = pa.table({"i": pa.array(order, kind)})
        column: Any = sorted_items(table, table.schema)["i"].combine_chunks()
        assert column.equals(expected)
        for index in (pa.int8(), pa.uint16(), pa.int64()):
            schema = pa.schema([("i", pa.dictionary(index, kind))])
            column = sorted_items(table, schema)["i"].combine_chunks()
            assert column.type == schema.field(0).type
            assert column.dictionary.to_pylist() == values[:-1]
            assert column.dictionary_decode().equals(expected)


@given(st.lists(st.tuples(st.integers(-3, 3), st.text(max_size=2)), unique=True), st.randoms())
def test_by_the_first_column_and_then_the_next(rows: list[tuple[int, str]], random: Any) -> None:
    schema = pa.schema([("user", pa.int8()), ("b", pa.dictionary(pa.int32(), pa.string()))])
    random.shuffle(rows)
    numbers, words = [row[0] for row in rows], [row[1] for row in rows]
    table = pa.table([pa.array(numbers, pa.int8()), pa.array(words, pa.string())], ["user", "b"])
    found = sorted_items(table, schema)
    assert found.schema == schema
    by_bytes = sorted(rows, key=lambda row: (row[0], row[1].encode()))
    assert list(zip(found["user"].to_pylist(), found["b"].to_pylist(), strict=True)) == by_bytes
    column: Any = found["b"].combine_chunks()
    assert column.dictionary.to_pylist() == sorted(set(words), key=str.encode)


def test_a_dictionary_that_outgrows_its_index() -> None:
    values = pa.array([f"{n:03}" for n in range(300)])
    schema = pa.schema([("i", pa.dictionary(pa.int8(), pa.string()))])
    found: Any = sorted_items(pa.table({"i": values}), schema)["i"].combine_chunks()
    assert found.dictionary_decode().equals(values)


def test_nothing() -> None:
    for kind in (pa.int64(), pa.string(), pa.dictionary(pa.int8(), pa.string())):
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        schema = pa.schema([("i", kind)])
        found = sorted_items(pa.table({"i": pa.array([], plain)}), schema)
        assert found.num_rows == 0
        assert found.schema == schema
