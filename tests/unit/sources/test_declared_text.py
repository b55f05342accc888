"""Numbers in columns that are declared as text: each by its own digits, whatever is beside it."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dp_sips import InputError

LARGE = 2**80


def json_lines(folder: Path, values: list[Any]) -> Path:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps({"u": 1, "i": value}) + "\n" for value in values))
    return path


def frame(_: Path, values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"u": "1", "i": pd.Series(values, dtype=object)})


def categories(folder: Path, values: list[Any]) -> pd.DataFrame:
    return frame(folder, values).astype({"i": "category"})


def columns(_: Path, values: list[Any]) -> dict[str, list[Any]]:
    return {"u": [1] * len(values), "i": values}


@pytest.mark.parametrize("make", [json_lines, frame, categories, columns])
@pytest.mark.parametrize("values", [[LARGE], [LARGE, -LARGE, 7], ["a", 7, LARGE]], ids=range(3))
def test_large_numbers_are_their_digits(
    make: Any, values: list[Any], tmp_path: Path, read: Any
) -> None:
    found = read(make(tmp_path, values), types={"i": "string"})
    assert Counter(item for _, item in found.elements()) == Counter(map(str, values))


@pytest.mark.parametrize("make", [json_lines, frame, categories, columns])
def test_large_numbers_need_a_declaration(make: Any, tmp_path: Path, read: Any) -> None:
    fix = r"does not fit int64: declare its type, as types=\{'i': \"string\"\} \(--type i=string\)"
    with pytest.raises(InputError, match=fix) as caught:
        read(make(tmp_path, ["a", LARGE]))
    assert str(LARGE) not in str(caught.value)
    with pytest.raises(InputError, match="not of the type int: declare another type"):
        read(make(tmp_path, [LARGE]), types={"i": "int64"})


def test_large_numbers_in_lists_and_pairs(tmp_path: Path, read: Any) -> None:
    text = {"i": "string"}
    assert read(json_lines(tmp_path, [[LARGE, 7]]), types=text) == Counter(
        [(1, str(LARGE)), (1, "7")]
    )
    pairs = read({1: [LARGE]}, user=None, item=None, types={"item": "string"})
    assert pairs == Counter([(1, str(LARGE))])


def test_types_that_hold_more_digits(tmp_path: Path, read: Any) -> None:
    path = json_lines(tmp_path, [7, 2**63])
    for kind, number in (("uint64", int), ("decimal(20,0)", Decimal)):
        assert read(path, types={"i": kind}) == Counter([(1, number(7)), (1, number(2**63))])


@pytest.mark.parametrize("make", [json_lines, frame, columns])
@pytest.mark.parametrize("beside", ["1.25", "0.00000001", "1e30", "100.0"])
def test_decimals_do_not_take_on_the_scale_of_others(
    make: Any, beside: str, tmp_path: Path, read: Any
) -> None:
    """What the value of one user means depends on nobody else's."""
    if make is json_lines:
        data: Any = tmp_path / "a.jsonl"
        data.write_text(f'{{"u": 1, "i": 1.5}}\n{{"u": 1, "i": {beside}}}\n')
    else:
        data = make(tmp_path, [Decimal("1.5"), Decimal(beside)])
    found = {item for _, item in read(data, types={"i": "string"})}
    assert found == {"1.5", f"{Decimal(beside):f}".removesuffix(".0")}
