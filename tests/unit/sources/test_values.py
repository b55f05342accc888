"""Values without a type: bytes that say of what kind they are, and sort as the values do."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.sources import kinds
from dp_sips.sources.values import describe, encode, encode_array, python_values, typed

DIGITS = st.decimals(
    min_value=-(10**30), max_value=10**30, allow_nan=False, allow_infinity=False, places=8
)
STRATEGIES: dict[str, Any] = {
    "text": st.text(st.characters(codec="utf-8"), max_size=5),
    "bool": st.booleans(),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "decimal": DIGITS,
    "date": st.dates(),
    "local time": st.datetimes(),
    "instant": st.datetimes(
        min_value=dt.datetime(2, 1, 1),  # noqa: DTZ001
        max_value=dt.datetime(9998, 1, 1),  # noqa: DTZ001
        timezones=st.just(dt.UTC),
    ),
    "bytes": st.binary(max_size=5),
    "time": st.times(),
    "duration": st.timedeltas(dt.timedelta(-(10**6)), dt.timedelta(10**6)),
}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_each_kind_returns_and_keeps_its_order(kind: str) -> None:
    @given(st.lists(STRATEGIES[kind], min_size=1, max_size=20))
    def check(values: list[Any]) -> None:
        carried = encode(values, "i", "the test")
        assert python_values(carried) == values
        assert {type(value) for value in python_values(carried)} == {type(values[0])}
        found = carried.to_pylist()
        by_bytes = [values[n] for n in sorted(range(len(values)), key=found.__getitem__)]
        expected = sorted(values, key=str.encode if kind == "text" else None)
        assert by_bytes == expected
        assert typed(carried).to_pylist() == values

    check()


@given(st.lists(st.one_of(st.none(), *STRATEGIES.values()), max_size=20))
def test_a_value_is_carried_alike_alone_and_among_others(values: list[Any]) -> None:
    alone = [encode([value], "i", "the test").to_pylist()[0] for value in values]
    together = encode(values, "i", "the test")
    assert together.to_pylist() == alone
    assert python_values(together) == values
    assert list(map(type, python_values(together))) == list(map(type, values))


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, "1"), (1, True), (1, Decimal(1)), ("a", b"a"), ("", b""), (0, None), ("1", Decimal(1))],
)
def test_values_of_two_kinds_differ(one: Any, other: Any) -> None:
    first, second = encode([one, other], "i", "the test").to_pylist()
    assert first != second


def test_equal_decimals_are_one_value() -> None:
    spellings = [Decimal("1.5"), Decimal("1.500"), Decimal("15E-1")]
    assert len(set(encode(spellings, "i", "the test").to_pylist())) == 1
    zeros = [Decimal(0), Decimal("-0"), Decimal("0.000")]
    assert len(set(encode(zeros, "i", "the test").to_pylist())) == 1


def test_no_tag_begins_a_text() -> None:
    """UTF-8 has no byte above F4, so no text can pose as a value of another kind."""
    assert all(len(kind.tag) == 1 and kind.tag > b"\xf4" for kind in kinds.TAGGED)
    assert len({kind.tag for kind in kinds.TAGGED}) == len(kinds.TAGGED)
    assert chr(0x10FFFF).encode()[:1] == b"\xf4"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None], pa.string()),
        ([7, None], pa.int64()),
        ([True], pa.bool_()),
        ([None], pa.null()),
    ],
    ids=str,
)
def test_arrow_and_python_agree(values: list[Any], kind: pa.DataType) -> None:
    assert encode_array(pa.array(values, kind)) == encode(values, "i", "the test")


def test_descriptions_name_what_is_there() -> None:
    assert describe(encode([], "i", "the test")) == "string"
    assert describe(encode([None], "i", "the test")) == "string"
    assert describe(encode([1, None], "i", "the test")) == "int64"
    assert describe(encode(["a", 1, True], "i", "the test")) == "bool or int64 or string"
