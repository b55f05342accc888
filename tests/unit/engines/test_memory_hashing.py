"""The compiled blocks are those of `encoding.value_blocks`, to the bit."""

import decimal
import random
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines import encoding
from dp_sips.engines.memory.hashing import value_blocks
from dp_sips.privacy.noise import Key, Purpose

SCRAMBLER = Key.fresh().scrambler(Purpose.LONG_ITEMS)
LENGTHS = [0, 1, 7, 8, 9, 14, 15, 16, 17, 31, 32, 33, 100, 1023, 1024, 1025, 3000]
TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


def assert_same(values: Any) -> None:
    expected = encoding.value_blocks(values, SCRAMBLER)
    assert value_blocks(values, SCRAMBLER).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_length(kind: Any) -> None:
    assert_same(pa.array(["x" * length for length in LENGTHS], kind))


@given(st.lists(st.none() | st.binary(max_size=40), max_size=9), st.data())
def test_any_slice_with_nulls(values: list[bytes | None], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    length = data.draw(st.integers(0, len(values) - start))
    assert_same(pa.array(values, pa.binary()).slice(start, length))


def test_nulls_that_cover_bytes() -> None:
    valid = pa.py_buffer(b"\x05")  # of "ab", "cd" and "ef" the second is null
    offsets, content = pa.array([0, 2, 4, 6], pa.int32()).buffers()[1], pa.py_buffer(b"abcdef")
    assert_same(pa.Array.from_buffers(pa.string(), 3, [valid, offsets, content]))
    assert_same(pa.nulls(3, pa.string()))


def test_more_values_than_are_taken_at_a_time() -> None:
    rng = random.Random(0)
    assert_same(pa.array([f"{rng.random():.{rng.randrange(40)}f}" for _ in range(20_000)]))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([uuid.UUID(int=n).bytes for n in range(5)], pa.binary(16)),
        pa.array([decimal.Decimal(n) for n in range(5)], pa.decimal128(9, 2)),
        pa.array([1, None, -3]),
        pa.array([], pa.string()),
    ],
    ids=lambda values: str(values.type),
)
def test_other_types(values: Any) -> None:
    assert_same(values)
