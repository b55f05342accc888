"""Blocks: distinct values have distinct blocks, and a value has one block whatever carries it."""

import datetime as dt
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips.engines.encoding import (
    integer_words,
    integers_from_words,
    is_integer_like,
    value_blocks,
)
from dp_sips.privacy.blocks import combine
from dp_sips.privacy.noise import Key

SCRAMBLER = Key.fresh().noise_of_round(0)


def blocks(values: Any) -> list[bytes]:
    return [block.tobytes() for block in value_blocks(values, SCRAMBLER)]


def as_dictionary(values: list[Any], kind: Any) -> Any:
    """Return a dictionary array whose dictionary has repeats and values that no row has."""
    entries = [*reversed(values), *values]
    indices: Any = pa.array(range(len(values), 2 * len(values)), pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(entries, kind))


bytes_like = st.binary(max_size=40) | st.integers(0, 40).map(bytes)
texts = st.text(max_size=12) | st.text(alphabet="a\0", max_size=40)
naive = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))  # noqa: DTZ001
TYPES: dict[str, tuple[Any, Any]] = {
    "int64": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "int8": (st.integers(-128, 127), pa.int8()),
    "uint64": (st.integers(0, 2**64 - 1), pa.uint64()),
    "uint16": (st.integers(0, 2**16 - 1), pa.uint16()),
    "bool": (st.booleans(), pa.bool_()),
    "string": (texts, pa.string()),
    "large_string": (texts, pa.large_string()),
    "binary": (bytes_like, pa.binary()),
    "large_binary": (bytes_like, pa.large_binary()),
    "fixed binary": (st.binary(min_size=20, max_size=20), pa.binary(20)),
    "date32": (st.dates(), pa.date32()),
    "date64": (st.dates(), pa.date64()),
    "timestamp": (naive, pa.timestamp("us")),
    "timestamp tz": (naive, pa.timestamp("us", "Asia/Tokyo")),
    "time32": (st.integers(0, 86399).map(lambda s: dt.time(s // 3600, s // 60 % 60, s % 60)),
               pa.time32("s")),
    "time64": (st.times(), pa.time64("us")),
    "duration": (st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)), pa.duration("us")),
    "decimal128": (st.decimals(-999, 999, places=2), pa.decimal128(20, 2)),
    "decimal256": (st.decimals(-999, 999, places=2), pa.decimal256(50, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_blocks_are_equal_where_values_are(name: str) -> None:
    strategy, kind = TYPES[name]

    @settings(max_examples=40)
    @given(st.lists(st.none() | strategy, min_size=1, max_size=20), st.integers(0, 5))
    def check(values: list[Any], offset: int) -> None:
        found = blocks(pa.array(values, kind))
        assert len(set(found)) == len(set(values))
        assert len(set(zip(values, found, strict=True))) == len(set(values))
        # Slices, and dictionaries, of the same values.
        padded = pa.array([*values[:1] * offset, *values, *values[:1]], kind)
        assert blocks(padded.slice(offset, len(values))) == found
        assert blocks(as_dictionary(values, kind)) == found

    check()


@given(st.lists(st.none() | texts, max_size=20))
def test_text_has_one_block_in_every_type_of_array(values: list[str | None]) -> None:
    found = blocks(pa.array(values, pa.string()))
    encoded = [None if value is None else value.encode() for value in values]
    for other in (
        pa.array(values, pa.large_string()),
        pa.array(values, pa.string()).dictionary_encode(),
        pa.array(values, pa.large_string()).dictionary_encode(),
        pa.array(encoded, pa.binary()),
    ):
        assert blocks(other) == found


@given(st.lists(st.integers(0, 127), min_size=1))
def test_integers_have_one_block_in_every_width(values: list[int]) -> None:
    found = blocks(pa.array(values, pa.int64()))
    for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.uint64()):
        assert blocks(pa.array(values, kind)) == found


def test_kinds_of_values_never_share_a_block() -> None:
    """A number, its text, a null, and the bytes of a block as text are five different items."""
    number = blocks(pa.array([0, 1], pa.int64()))
    text = blocks(pa.array(["", "\0", "0", "1", "x" * 15, "x" * 16, "\0" * 15, "\0" * 16]))
    null = blocks(pa.nulls(1, pa.string()))
    assert null == blocks(pa.nulls(1, pa.int64()))
    as_text = blocks(pa.array([number[0], null[0]], pa.binary()))
    together = number + text + null + as_text
    assert len(set(together)) == len(together)


def test_short_values_are_padded_and_long_ones_hashed() -> None:
    short, full, long = blocks(pa.array([b"ab", b"x" * 15, b"x" * 16], pa.binary()))
    assert short == b"ab" + bytes(13) + b"\x02"
    assert full == b"x" * 15 + b"\x0f"
    assert long[15] == 0xFF
    assert long[:15] != b"x" * 15


def test_hashes_are_keyed() -> None:
    values = pa.array(["a long text that must be hashed"])
    other = value_blocks(values, Key.fresh().noise_of_round(0))
    assert (value_blocks(values, SCRAMBLER) != other).any()


@given(st.lists(bytes_like.map(lambda b: b"0123456789abcdef" + b), min_size=2, unique=True))
def test_long_values_with_a_common_start_differ(values: list[bytes]) -> None:
    assert len(set(blocks(pa.array(values, pa.binary())))) == len(values)


def test_the_end_of_a_long_value_counts_and_its_neighbours_do_not() -> None:
    word = b"w" * 100
    same = [word + b"1", word + b"2", word, word + b"\0", word]
    found = blocks(pa.array(same, pa.binary()))
    assert len(set(found)) == 4
    assert found[2] == found[4] == blocks(pa.array([word, b"z" * 50], pa.binary()))[0]


def test_no_values() -> None:
    for kind in (pa.string(), pa.int64(), pa.decimal128(9, 0), pa.bool_()):
        assert value_blocks(pa.array([], kind), SCRAMBLER).shape == (0, 2)
        empty = pa.nulls(3, pa.dictionary(pa.int8(), kind))
        assert value_blocks(empty.slice(3), SCRAMBLER).shape == (0, 2)
        assert blocks(empty) == blocks(pa.nulls(3, kind))


class TestCombine:
    def test_one_column_stays_as_it_is(self) -> None:
        column = value_blocks(pa.array(["a", "b"]), SCRAMBLER)
        assert combine([column], SCRAMBLER) is column

    @given(st.lists(st.tuples(texts, st.none() | st.integers(-3, 3)), min_size=1, max_size=30))
    def test_rows_are_equal_where_all_columns_are(self, rows: list[tuple[str, int | None]]) -> None:
        texts_of, numbers = zip(*rows, strict=True)
        columns = [pa.array(texts_of, pa.string()), pa.array(numbers, pa.int64())]
        found = combine([value_blocks(column, SCRAMBLER) for column in columns], SCRAMBLER)
        named = set(zip(rows, (block.tobytes() for block in found), strict=True))
        assert len(named) == len(set(rows)) == len({block for _, block in named})

    def test_order_and_number_of_columns_count(self) -> None:
        a, b = (value_blocks(pa.array([value]), SCRAMBLER) for value in "ab")
        made = [combine(columns, SCRAMBLER) for columns in ([a, b], [b, a], [a, a, b], [a, b, b])]
        assert len({block.tobytes() for block in [*made, a, b]}) == 6
        assert all(int(block[0, 1]) >> 56 == 0xFF for block in made)


@pytest.mark.parametrize("name", TYPES)
def test_integers_there_and_back(name: str) -> None:
    strategy, kind = TYPES[name]
    if not is_integer_like(kind):
        assert pa.types.is_decimal(kind) or "binary" in str(kind) or "string" in str(kind)
        return

    @settings(max_examples=20)
    @given(st.lists(strategy, max_size=10))
    def check(values: list[Any]) -> None:
        array = pa.array(values, kind)
        assert integers_from_words(integer_words(array), kind).equals(array)
        assert integers_from_words(integer_words(array), pa.dictionary(pa.int8(), kind)).equals(
            array
        )

    check()


def test_which_types_are_integers_inside() -> None:
    assert is_integer_like(pa.dictionary(pa.int8(), pa.date32()))
    assert not is_integer_like(pa.dictionary(pa.int8(), pa.string()))
    nulls = integer_words(pa.array([None, 5, None], pa.int16()))
    assert nulls.tolist() == [0, 5, 0]
    assert nulls.dtype == np.uint64


def test_long_values_are_hashed_one_by_one() -> None:
    lengths = [1023, 1024, 1025, 1026, 5000, 1_000_000]
    values = [bytes([kind]) * length for length in lengths for kind in (1, 2)]
    values += [b"\x01" * 1025 + b"\x02", b"\x01" * 1025 + b"\x00"]
    first, (short,), again = (blocks(pa.array(part)) for part in (values, [b"short"], values))
    assert first == again
    assert len({*first, short}) == len(values) + 1
    assert {block[-1] for block in first} == {0xFF}
    others = value_blocks(pa.array(values), Key.fresh().noise_of_round(0))
    assert not set(first) & {block.tobytes() for block in others}


def test_the_company_of_a_long_value_does_not_matter() -> None:
    long, short = "x" * 2000, "y" * 100
    assert blocks(pa.array([long, short, long])) == [
        *blocks(pa.array([long])), *blocks(pa.array([short])), *blocks(pa.array([long])),
    ]  # fmt: skip


def test_megabytes_take_no_minutes() -> None:
    values = pa.array([bytes([kind]) * 10_000_000 for kind in range(3)], pa.large_binary())
    start = time.process_time()
    blocks(values)
    assert time.process_time() - start < 60  # of this process: others do not count
