"""How long values are, by their blocks alone."""

import numpy as np
import pyarrow as pa
import pytest

from dp_sips.engines.encoding import value_blocks
from dp_sips.privacy.blocks import combine, lengths
from dp_sips.privacy.noise import Key, Purpose

SCRAMBLER = Key.for_tests(1).scrambler(Purpose.LONG_ITEMS)
NUMBERS = [0, 7, 9, 10, 99, 100, -1, -9, -10, 2**63 - 1, -(2**63), 10**18, 10**18 - 1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["", "a", "é", "fifteen bytes!!", "sixteen bytes!!!", "x" * 99], [0, 1, 2, 15, 16, 16]),
        (NUMBERS, [len(str(number)) for number in NUMBERS]),
        (["7", "-12", None], [1, 3, 0]),
        ([], []),
    ],
    ids=str,
)
def test_lengths(values: list[object], expected: list[int]) -> None:
    kind = pa.int64() if values is NUMBERS else pa.string()
    assert lengths(value_blocks(pa.array(values, kind), SCRAMBLER)).tolist() == expected


def test_numbers_are_as_long_as_their_text() -> None:
    texts = value_blocks(pa.array([str(n) for n in NUMBERS if abs(n) < 10**14]), SCRAMBLER)
    numbers = value_blocks(pa.array([n for n in NUMBERS if abs(n) < 10**14]), SCRAMBLER)
    assert (lengths(texts) == lengths(numbers)).all()


def test_several_columns_are_hashed() -> None:
    column = value_blocks(pa.array([1, 2]), SCRAMBLER)
    assert lengths(combine([column, column], SCRAMBLER)).tolist() == [16, 16]
    assert lengths(np.empty((0, 2), dtype=np.uint64)).tolist() == []
