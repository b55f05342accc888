"""CSV: types, nulls and values that do not fit."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dp_sips.errors import InputError
from dp_sips.sources import delimited, open_source


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("7", pa.int64()),
        ("tea", pa.string()),
        ("true", pa.bool_()),
        ("2024-05-01", pa.date32()),
        ("2024-05-01 10:00:00", pa.timestamp("s")),
        ("NA", pa.string()),
    ],
)
def test_types_are_inferred(value: str, kind: pa.DataType, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f"u,i\n1,{value}\n")
    assert open_source(path, user="u", item="i").item_schema.types == [kind]
    source = open_source(path, user="u", item="i", text=True)
    assert [source.user_type, *source.item_schema.types] == [pa.string(), pa.string()]
    assert [batch.to_pylist() for batch in source.batches()] == [[{"user": "1", "i": value}]]


def test_an_empty_field_is_null_and_quotes_make_it_text(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", 'u,i\n1,\n2,""\n3,"a\nb"\n')
    assert read(path, nulls="group") == Counter([(1, None), (2, ""), (3, "a\nb")])
    assert read(path, nulls="drop", text=True) == Counter([("2", ""), ("3", "a\nb")])


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", b"\xef\xbb\xbfu,i\r\n1,a\r\n")
    assert read(path) == Counter([(1, "a")])


def test_a_later_value_that_does_not_fit(
    tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = write(tmp_path / "a.csv", "z,u,i\n" + "x,1,2\n" * 50 + "x,x7,3\n")
    with pytest.raises(InputError, match=r"column 'u' of .*a\.csv .* int64.*'x7'.*--text"):
        read(path)
    assert read(path, text=True).total() == 51


def test_a_column_that_begins_with_nulls(
    tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = write(tmp_path / "a.csv", "u,i\n" + "1,\n" * 50 + "1,7\n")
    assert read(path, nulls="drop") == Counter([(1, 7)])


def test_a_file_without_values_takes_the_type_of_the_others(tmp_path: Path, read: Any) -> None:
    write(tmp_path / "a.csv", "u,i\n")
    write(tmp_path / "b.csv", "u,i\n1,2\n")
    write(tmp_path / "c.csv", "u,i\n1,\n")
    write(tmp_path / "d.csv", "")
    assert read(tmp_path, nulls="group") == Counter([(1, 2), (1, None)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"u,i\n1,2,3\n", r"a\.csv cannot be read: .*Expected 2 columns"),
        (b"u,i\n1,\xff\n", r"column 'i' of .*a\.csv is not UTF-8"),
        (b"u,i\n1,1.5\n", r"column 'i' of .*a\.csv .*double.*floats.*--text"),
        (b"u,i,i\n1,1,2\n", r"a\.csv has 2 columns 'i'"),
        (b"u,it\n1,1\n", r"no column 'i' in .*a\.csv"),
        (b"", r"no rows in .*a\.csv: 0 bytes"),
        (b"u,i\n", r"no rows in .*a\.csv"),
    ],
)
def test_bad_files(text: bytes, message: str, tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", text)
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_row_that_never_ends(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = write(tmp_path / "a.csv", "u,i\n" + "1,a\n" * 20 + '1,"' + "x" * 500)
    with pytest.raises(InputError, match=r"a\.csv has a row of more than .* MB"):
        read(path, text=True)


def test_truncated_gzip(tmp_path: Path, read: Any) -> None:
    text = b"u,i\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(1000))
    path = write(tmp_path / "a.csv.gz", gzip.compress(text)[:-100])
    with pytest.raises(InputError, match=r"a\.csv\.gz cannot be read: Truncated"):
        read(path)
