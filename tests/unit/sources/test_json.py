"""JSON lines: lists, missing fields, text that looks like a date."""

import datetime as dt
import traceback
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dp_sips.errors import InputError
from dp_sips.sources import json_lines, open_source


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines))
    return path


def test_lists_and_missing_fields(tmp_path: Path, read: Any) -> None:
    path = write(
        tmp_path / "a.jsonl",
        '{"u": 1, "i": ["a", "b"], "z": 1.5}',
        '{"u": 2, "i": []}',
        '{"u": 3}',
        '{"i": ["a", null], "u": 4}',
    )
    kept = [(1, "a"), (1, "b"), (4, "a")]
    assert read(path, nulls="drop") == Counter(kept)
    assert read(path, nulls="group") == Counter([*kept, (3, None), (4, None)])
    with pytest.raises(InputError, match="column 'i'"):
        read(path)


def test_text_stays_text(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.jsonl", '{"u": "2024-01-01", "i": ["2024-01-01 10:00:00"]}')
    assert read(path) == Counter([("2024-01-01", "2024-01-01 10:00:00")])


VALUES: dict[str, Any] = {
    "1": 1,
    '"1"': "1",
    "1.0": Decimal(1),
    "true": True,
    '"é\\u0000"': "é\0",
    "-0": 0,
    "9223372036854775807": 2**63 - 1,
    "12345678901234567890.125": Decimal("12345678901234567890.125"),
}


@pytest.mark.parametrize("beside", ["", *VALUES, "[]", '["x"]', "null"])
def test_a_value_means_the_same_whatever_stands_beside_it(
    beside: str, tmp_path: Path, read: Any
) -> None:
    """Arrow reads lines of one kind, Python all others."""
    for text, value in VALUES.items():
        lines = [f'{{"u": {text}, "i": {text}}}', *([f'{{"u": 0, "i": {beside}}}'] * bool(beside))]
        found = read(write(tmp_path / "a.jsonl", *lines), nulls="drop")
        ((user, item), *_) = found
        assert (user, item) == (value, value)
        assert type(user) is type(item) is type(value)


def test_what_comes_out_has_the_type_of_the_released(tmp_path: Path, items: Any) -> None:
    path = write(tmp_path / "a.jsonl", '{"u": 1, "i": 1}', '{"u": 2, "i": "secret"}')
    source = open_source(path, user="u", item="i")
    for values, kind, spelled in (
        ([1, 2], pa.int64(), [1, 2]),
        (["a", None], pa.string(), ["a", None]),
        ([], pa.string(), []),
        ([True], pa.bool_(), [True]),
        ([Decimal("1.5"), Decimal(20)], pa.decimal128(3, 1), [Decimal("1.5"), Decimal(20)]),
        (["1", True, 1, Decimal(1)], pa.string(), ['"1"', "true", "1", "1.0"]),
    ):
        released = source.restore(items(source, values))
        assert released == pa.table({"i": pa.array(spelled, kind)})
    assert source.describe(items(source, [1, "a"])) == {"i": "int64 or string"}


def test_types_that_are_declared(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.jsonl", '{"u": 1, "i": "2024-05-01"}', '{"u": "2", "i": null}')
    types = {"u": "int", "i": "date"}
    found = read(path, types=types, nulls="group")
    assert found == Counter([(1, dt.date(2024, 5, 1)), (2, None)])
    source = open_source(path, user="u", item="i", types=types)
    assert (source.user_type, source.item_schema) == (pa.int64(), pa.schema({"i": pa.date32()}))
    with pytest.raises(
        InputError, match=r"column 'i' of .*a\.jsonl has a value that is not of the type int"
    ):
        read(path, types={"i": "int"}, nulls="drop")


def test_lists_for_several_columns(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.jsonl", '{"u": 1, "i": ["secret"], "j": 1}')
    for columns in ({"item": ["i", "j"]}, {"user": "i", "item": "j"}):
        with pytest.raises(InputError, match=r"column 'i' of .* has lists") as caught:
            read(path, **columns)
        assert "secret" not in shown(caught.value)


def shown(error: BaseException) -> str:
    """Return all that Python shows of an error that nobody catches."""
    return "".join(traceback.format_exception(error))


def test_later_blocks(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    nothing = ['{"u": 1, "i": []}'] * 20
    path = write(tmp_path / "a.jsonl", *nothing, '{"u": 1, "i": ["a"], "new": 1}')
    assert read(path) == Counter([(1, "a")])
    path = write(tmp_path / "b.jsonl", *(['{"u": 1}'] * 20), '{"u": 1, "i": 7}')
    assert read(path, nulls="drop") == Counter([(1, 7)])


def test_kinds_that_change_late(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    late = ('{"u": 1, "i": "2"}', '{"u": 1, "i": 7.125}', '{"u": "1", "i": [2]}')
    path = write(tmp_path / "a.jsonl", *(['{"u": 1, "i": 2}'] * 20), *late)
    others = {(1, "2"): 1, (1, Decimal("7.125")): 1, ("1", 2): 1}
    assert read(path) == Counter({(1, 2): 20} | others)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"u": 1, "i": 2}]', "one object per line"),
        ('{"u": 1, "i": 2}\n{"u": 1', r"a\.json"),
        ('{"u": 1, "i": {"secret": 1}}', "column 'i' of .* values of the type dict"),
        ('{"u": 1, "it": "secret"}', r"column 'i' of .* nulls .*without that field: is the name"),
        ('{"u": 1, "i": NaN}', r"a\.json"),
        ('{"u": "secret\\ud800", "i": 1}', r"column 'u' of .*json has a value that does not fit"),
        ('{"u": 1, "i": 12345678901234567890}', r"column 'i' of .*does not fit int64"),
    ],
    ids=range(7),
)
def test_bad_files(text: str, message: str, tmp_path: Path, read: Any) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(write(tmp_path / "a.json", text))
    assert "secret" not in shown(caught.value)


def test_no_lines(tmp_path: Path, read: Any) -> None:
    assert read(write(tmp_path / "a.json", "", " ", "")) == Counter()


@pytest.mark.parametrize("before", [0, 20])
def test_a_line_that_never_ends(
    before: int, tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    long = '{"u": 1, "i": "' + "x" * 500 + '"}'
    path = write(tmp_path / "a.jsonl", *(['{"u": 1, "i": "a"}'] * before), long)
    with pytest.raises(InputError, match=r"a\.jsonl has a line of more than .* MB"):
        read(path)
