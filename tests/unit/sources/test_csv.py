"""CSV: text unless declared, nulls and values that do not fit."""

import bz2
import datetime as dt
import gzip
import re
import traceback
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dp_sips.errors import InputError, UsageError
from dp_sips.sources import delimited, open_source
from dp_sips.sources.csv_files import CsvFiles


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("value", ["7", "007", "tea", "true", "2024-05-01", "NA", "1.50", " x "])
@pytest.mark.parametrize("beside", ["7", "B", '""'])
def test_every_column_is_text(value: str, beside: str, tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", f"u,i\n1,{value}\n{beside},{beside}\n")
    source = open_source(path, user="u", item="i")
    assert [source.user_type, *source.item_schema.types] == [pa.string(), pa.string()]
    beside = beside.strip('"')
    assert read(path) == Counter([("1", value), (beside, beside)])


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("string", "007", "007"),
        ("int", "007", 7),
        (pa.uint8(), "7", 7),
        ("bool", "true", True),
        ("date", "2024-05-01", dt.date(2024, 5, 1)),
        ("timestamp", "2024-05-01 10:00", dt.datetime(2024, 5, 1, 10)),  # noqa: DTZ001
        ("Decimal(5, 2)", "1.5", Decimal("1.50")),
        ("binary", "a", b"a"),
    ],
    ids=str,
)
def test_types_are_declared(name: Any, value: str, meant: Any, tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", f"u,i\n{value},{value}\n")
    assert read(path, types={"i": name, "u": name}) == Counter([(meant, meant)])


@pytest.mark.parametrize("name", ["int", "date", "timestamp[s]", "decimal(4,1)", "bool", "uint8"])
def test_a_value_that_does_not_fit_is_not_shown(name: str, tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", "u,i\n1,\n2,SECRET\n")
    with pytest.raises(
        InputError, match=r"column 'i' of .*a\.csv has a value that is not"
    ) as caught:
        read(path, types={"i": name}, nulls="drop")
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("int", "int: declare another type"),
        ("Boolean", "bool: declare another type"),
        ("uint8", "uint8: declare another type"),
        ("decimal(4, 1)", r"decimal\(4, 1\): declare another type"),
        (pa.date32(), "date: write dates as 2026-01-31, or declare another type"),
        ("date", "date: write dates as 2026-01-31, or declare another type"),
        ("timestamp", "timestamp: write times as 2026-01-31 13:45:00, or declare another type"),
        ("timestamp[s]", r"timestamp\[s\]: write times as 2026-01-31 13:45:00, or declare"),
    ],
    ids=str,
)
def test_types_are_named_as_they_are_declared(
    name: Any, said: str, tmp_path: Path, read: Any
) -> None:
    path = write(tmp_path / "a.csv", "u,i\n1,31.1.2026\n")
    with pytest.raises(InputError, match=f"has a value that is not of the type {said}"):
        read(path, types={"i": name})


@pytest.mark.parametrize(
    ("name", "value"), [("date", "2026-01-31"), ("timestamp", "2026-01-31 13:45:00")]
)
def test_what_a_message_says_to_write_can_be_read(
    name: str, value: str, tmp_path: Path, read: Any
) -> None:
    path = write(tmp_path / "a.csv", f"u,i\n1,{value}\n")
    ((_, found),) = read(path, types={"i": name})
    assert str(found) == value


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"i": "flaot"}, "unknown type 'flaot' of 'i'"),
        ({"i": "strng"}, "did you mean 'string'"),
        ({"i": "decimal(99,2)"}, "unknown type"),
        ({"i": 7}, "type of 'i' must be a name or an Arrow type, got 7"),
        ({"zip": "string"}, "types names 'zip', which is neither the user nor an item"),
        ("string", "types must be a mapping"),
    ],
    ids=str,
)
def test_declarations_that_make_no_sense(types: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "u,i\n")
    with pytest.raises(UsageError, match=message):
        open_source(path, user="u", item="i", types=types)


@pytest.mark.parametrize("kind", [pa.float64(), pa.struct([("a", pa.int64())]), pa.time32("s")])
def test_types_that_text_cannot_have(kind: pa.DataType, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "u,i\n")
    with pytest.raises(InputError, match="column 'i'"):
        open_source(path, user="u", item="i", types={"i": kind})


def test_an_empty_field_is_null_and_quotes_make_it_text(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", 'u,i\n1,\n2,""\n3,"a\nb"\n')
    assert read(path, nulls="group") == Counter([("1", None), ("2", ""), ("3", "a\nb")])
    assert read(path, nulls="drop") == Counter([("2", ""), ("3", "a\nb")])
    with pytest.raises(InputError, match=r"column 'i' .* not of the type int:"):
        read(path, nulls="drop", types={"i": "int"})


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", b"\xef\xbb\xbfu,i\r\n1,a\r\n")
    assert read(path) == Counter([("1", "a")])


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_all_rows_are_read(
    end: str, tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = write(tmp_path / "a.csv", "z,u,i\n" + "x,1,2\n" * 50 + "x,x7," + end)
    assert read(path, nulls="group") == Counter({("1", "2"): 50, ("x7", None): 1})


def test_files_without_rows(tmp_path: Path, read: Any) -> None:
    write(tmp_path / "a.csv", "u,i\n")
    assert read(tmp_path / "a.csv") == Counter()
    write(tmp_path / "b.csv", "u,i\n1,2\n")
    write(tmp_path / "c.csv", "u,i\n1,\n")
    write(tmp_path / "d.csv", "")
    write(tmp_path / "e.csv", "u,i")
    assert read(tmp_path, nulls="group") == Counter([("1", "2"), ("1", None)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"u,i\n1,SECRET,3\n", r"a\.csv cannot be read: a row has 3 fields, and the header 2"),
        (b"u,i\n1\nSECRET\n", r"a row has 1 field, and the header 2: put quotes around"),
        (b"u,i\n1,SECRET\xff\n", r"column 'i' of .*a\.csv is not UTF-8"),
        (b'u,i\n1,a\n2,"SECRET\n', r"a\.csv ends inside of quotes"),
        (b'u,i\n1,a\n2,"SECRET', r"a\.csv ends inside of quotes"),
        (b'u,i\n1,a\n2,"SEC""RET""\n3,b\n', r"a\.csv ends inside of quotes"),
        (b"u,i,i\n1,1,2\n", r"a\.csv has 2 columns 'i'"),
        (b"u,it\n1,1\n", r"no column 'i' in .*a\.csv"),
        (b"SECRET,7\nx,8\n", r"no column 'u' or 'i' in the first row of .*a\.csv: .*--no-header"),
        (b"", r"a\.csv has no header: 0 bytes"),
        (b"\n\n", r"a\.csv has no header: its lines are empty"),
        (b"\xef\xbb\xbf\r\n", r"a\.csv has no header: its lines are empty"),
        (b'"u,i\n1,SECRET\n', r"a\.csv ends inside of quotes: is a quote left open"),
        (b'u,"i\n1,SECRET\n', r"a\.csv ends inside of quotes: is a quote left open"),
    ],
    ids=range(14),
)
def test_bad_files(text: bytes, message: str, tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", text)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("options", [{}, {"header": False}, {"encoding": "latin-1"}], ids=str)
@pytest.mark.parametrize(
    ("begin", "message"),
    [
        ('"u,i\n1,SECRET\n', "ends inside of quotes: is a quote left open"),
        ("u,i," + "x" * 99, r"has a row of more than \d+ MB: is a quote left open"),
        ('u,i,"' + "x\n" * 50, r"has a row of more than \d+ MB: is a quote left open"),
        ("\n" * 99, r"begins with \d+ MB of empty lines: remove them"),
    ],
    ids=range(4),
)
@pytest.mark.usefixtures("small_blocks")
def test_files_whose_first_row_has_no_end(
    begin: str, message: str, options: Any, tmp_path: Path, read: Any
) -> None:
    path = write(tmp_path / "a.csv", f"{begin}\nu,i\n1,a\n" if len(begin) > 64 else begin)
    with pytest.raises(InputError, match=message):
        read(CsvFiles(path, **options), user="1" if "header" in options else "u", item="2")


@pytest.mark.parametrize(
    ("name", "mark"),
    [("a.csv", ";"), ("a.csv", "|"), ("a.csv", "\t"), ("a.csv.gz", ";"), ("a.tsv", ",")],
)
@pytest.mark.parametrize(
    "header", ["u{0}i", "t{0}u{0}i", "t, \tx{0}u{0}i", '"t"{0}"u"{0}"i"', '"a\nb"{0}u{0}i']
)
def test_a_header_shows_another_delimiter_whatever_the_rows_have(
    name: str, mark: str, header: str, tmp_path: Path, read: Any
) -> None:
    text = f"{header.format(mark)}\n1{mark}a,b\tc,d\n".encode()
    path = write(tmp_path / name, gzip.compress(text) if name.endswith("gz") else text)
    usual = "\t" if name.endswith("tsv") else ","
    said = re.escape(f"seem to be separated by {mark!r}, not by {usual!r}: say delimiter={mark!r}")
    with pytest.raises(InputError, match=said) as caught:
        read(path)
    assert f"(--delimiter {mark!r})" in str(caught.value)


def test_a_named_delimiter_may_be_the_wrong_one(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.txt", "u\ti\n1\tx\n")
    with pytest.raises(InputError, match=re.escape(r"by '\t', not by ',': say delimiter='\t'")):
        read(CsvFiles(path, delimiter=","))
    assert read(CsvFiles(path, delimiter="\t")) == Counter([("1", "x")])


def test_paths_of_other_libraries_may_have_parts(tmp_path: Path) -> None:
    class Parts:
        def __fspath__(self) -> str:
            return str(write(tmp_path / "a.csv", "u,i\n1,x\n"))

        def __iter__(self) -> Iterator[str]:
            return iter(("a", "csv"))

    assert open_source(Parts(), user="u", item="i").rows() is None


def test_another_delimiter_is_sought_in_text_of_another_encoding(tmp_path: Path, read: Any) -> None:
    """With it, the first row has no end, and takes in what is not UTF-8."""
    path = write(tmp_path / "a.csv", b'x;"y,z\n1,2\n3,"M\xfcller"\n')
    with pytest.raises(InputError, match="no column 'u' or 'i' in the first row"):
        read(path)


def test_text_in_utf8_is_not_in_the_encoding_that_was_named(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", "u,i\n1,x\n2,\n")
    with pytest.raises(
        InputError, match=r"not utf-16: name its encoding.*, leave it out for UTF-8"
    ):
        read(CsvFiles(path, encoding="utf-16"))


def test_names_may_contain_another_delimiter(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", "a;b,c|d\n1,x\n")
    assert read(path, user="a;b", item="c|d") == Counter([("1", "x")])
    with pytest.raises(InputError, match="no column 'c' in"):
        read(path, user="a;b", item="c")
    with pytest.raises(InputError, match="in the first row of"):
        read(path)
    quoted = write(tmp_path / "b.csv", '"u;old","item"\n1,x\n')
    with pytest.raises(InputError, match="in the first row of"):
        read(quoted, user="u", item="item2")
    single = write(tmp_path / "u=1" / "a.csv", "a;b\nx\n")
    assert read(single, item="a;b") == Counter([("1", "x")])


@pytest.mark.parametrize("begin", ["", "\n\r\n", "\ufeff"])
@pytest.mark.parametrize("names", ["u,i", '"u","i"', 'u,i,"a\nb"', '"a,\r\n""b""\n"x,u,i'])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_header_is_looked_at_before_the_first_rows(
    begin: str, names: str, end: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", f"{begin}{names}{end}1,2,3,4{end}")
    with pytest.raises(InputError, match="no column 'v' in"):
        open_source(path, user="v", item="i")
    fix = "put quotes around fields that contain a comma; if the delimiter is not a comma, name it"
    with pytest.raises(InputError, match=rf"a row has 4 fields, and the header \d: {fix}, as "):
        open_source(path, user="u", item="i")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (gzip.compress(b"u,i\n1,a\n"), "add .gz to its name"),
        (bytes(pa.compress(b"u,i\n1,a\n", "zstd", asbytes=True)), "add .zst to its name"),
        (bz2.compress(b"u,i\n1,a\n"), "add .bz2 to its name"),
        (bytes(pa.compress(b"u,i\n1,a\n", "lz4", asbytes=True)), "bytes: unpack it"),
        (b"PK\x03\x04" + bytes(60), "save its table as CSV"),
        (b"\xd0\xcf\x11\xe0" + bytes(60), "save its table as CSV"),
        ("\ufeffu,i\n1,a\n".encode("utf-16-le"), "--encoding utf-16"),
        ("\ufeffu,i\n1,a\n".encode("utf-16-be"), "--encoding utf-16"),
        (b"sep=;\r\nu;i\r\n1;a\r\n", "remove that line"),
        (b'"sep=;"\nu;i\n1;a\n', "remove that line"),
        (b"\xef\xbb\xbfSEP=,\nu,i\n1,a\n", "remove that line"),
    ],
    ids=range(11),
)
def test_files_that_are_not_what_they_are_called(
    text: bytes, fix: str, tmp_path: Path, read: Any
) -> None:
    with pytest.raises(InputError, match=re.escape(fix)):
        read(write(tmp_path / "a.csv", text))


def test_a_column_may_be_called_sep(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", "sep=,u,i\n1,2,a\n")
    assert read(path) == Counter([("2", "a")])


def test_a_first_row_that_is_no_header_may_begin_as_it_likes(tmp_path: Path, read: Any) -> None:
    """It is somebody's: no error may depend on it."""
    path = write(tmp_path / "a.csv", b"PK\x03\x04,a\n")
    assert read(CsvFiles(path, header=False), user="1", item="2") == Counter([("PK\3\4", "a")])
    with pytest.raises(InputError, match=r"no column '3' in .*a\.csv: ") as caught:
        read(CsvFiles(path, header=False), user="1", item="3")
    assert "first bytes" not in str(caught.value)


def test_names_in_another_case_do_not_show_the_first_row(tmp_path: Path, read: Any) -> None:
    path = write(tmp_path / "a.csv", "user,url\n1,a\n")
    with pytest.raises(InputError, match="upper and lower case differ") as caught:
        read(path, user="User", item="URL")
    assert "'user'" not in str(caught.value)


def test_a_row_that_never_ends(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = write(tmp_path / "a.csv", "u,i\n" + "1,a\n" * 20 + '1,"' + "x" * 500)
    with pytest.raises(InputError, match=r"a\.csv has a row of more than .* MB"):
        read(path)


def test_truncated_gzip(tmp_path: Path, read: Any) -> None:
    text = b"u,i\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(1000))
    path = write(tmp_path / "a.csv.gz", gzip.compress(text)[:-100])
    with pytest.raises(InputError, match=r"a\.csv\.gz cannot be read: it ends too early"):
        read(path)
