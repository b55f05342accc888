"""JSON lines: lists, missing fields, text that looks like a date."""

from collections import Counter
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


def test_text_stays_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"u": "2024-01-01", "i": ["2024-01-01 10:00:00"]}')
    source = open_source(path, user="u", item="i")
    assert source.item_schema == pa.schema({"i": pa.string()})
    (batch,) = source.batches()
    assert batch.to_pylist() == [{"user": "2024-01-01", "i": "2024-01-01 10:00:00"}]


def test_later_blocks(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    nothing = ['{"u": 1, "i": []}'] * 20
    path = write(tmp_path / "a.jsonl", *nothing, '{"u": 1, "i": ["a"], "new": 1}')
    assert read(path) == Counter([(1, "a")])
    path = write(tmp_path / "b.jsonl", *(['{"u": 1}'] * 20), '{"u": 1, "i": 7}')
    assert read(path, nulls="drop") == Counter([(1, 7)])


@pytest.mark.parametrize("late", ['{"u": 1, "i": "secret"}', '{"u": 1, "i": 7.125}'])
def test_a_later_value_that_does_not_fit(
    late: str, tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    path = write(tmp_path / "a.jsonl", *(['{"u": 1, "i": 2}'] * 20), late)
    with pytest.raises(InputError, match=r"a\.jsonl.*'i' int64") as caught:
        read(path)
    assert "secret" not in str(caught.value)
    assert "7.125" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"u": 1, "i": 2}]', "one object per line"),
        ('{"u": 1, "i": 2}\n{"u": 1', r"a\.json"),
        ('{"u": 1, "i": {"a": 1}}', "struct"),
        ('{"u": 1, "it": 2}', "no column 'i'"),
        ("\n\n", r"a\.json"),
    ],
)
def test_bad_files(text: str, message: str, tmp_path: Path, read: Any) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "a.json", text))


@pytest.mark.parametrize("before", [0, 20])
def test_a_line_that_never_ends(
    before: int, tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    long = '{"u": 1, "i": "' + "x" * 500 + '"}'
    path = write(tmp_path / "a.jsonl", *(['{"u": 1, "i": "a"}'] * before), long)
    with pytest.raises(InputError, match=r"a\.jsonl has a line of more than .* MB"):
        read(path)
