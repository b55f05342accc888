"""Plain rows without Arrow are what Arrow makes of them; what is not plain is left to Arrow."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dp_sips.errors import InputError
from dp_sips.sources import delimited, open_source
from dp_sips.sources.csv_files import CsvFiles, Dialect
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.plain_rows import PlainRows

Row = tuple[str | None, ...]


def plain(text: bytes, block: int, header: str = "u,i", *, wanted: str = "u,i") -> Any:
    """Return the rows that were read without Arrow, and what was left."""
    return steps_of(text, block, header.split(","), wanted.split(","), has_header=True)


def steps_of(
    text: bytes, block: int, header: list[str], wanted: list[str], *, has_header: bool
) -> Any:
    rows: list[Row] = []
    stream = pa.BufferReader(text)
    steps = PlainRows(header, wanted, ",", block).read(stream, has_header=has_header)
    while True:
        try:
            batch = next(steps)
        except StopIteration as end:
            return rows, None if end.value is None else end.value + stream.read()
        batch.validate(full=True)
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)


def read(text: bytes, block: int | None, *, has_header: bool) -> tuple[list[Row], str]:
    """Return all rows, and what is wrong after them; without a block, Arrow reads all of them."""
    header, dialect = ["u", "i"], Dialect(header=has_header)
    schema = pa.schema([(name, pa.string()) for name in header])
    rows: list[Row] = []
    if block is not None:
        rows, left = steps_of(text, block, header, header, has_header=has_header)
        if left is None:
            return rows, ""
        text = left
    file = DataFile.local(Path("a.csv"))
    joined = delimited._Joined(text, pa.BufferReader(b""))
    try:
        with delimited._plainly(file, dialect, header):
            for batch in delimited._read_with_arrow(file, header, schema, dialect, joined):
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    except InputError as error:
        return [], str(error)  # Arrow alone reads whole blocks before it says so
    return rows, ""


MARK = "\ufeff"
plain_pieces = st.sampled_from(["a", "bb", "é", "\0", ",", ",", "\n", "\n", "\r\n", '"c"', "x,y\n"])
any_pieces = st.one_of(plain_pieces, st.sampled_from(["\r", '"', '""', MARK, "\udcff"]))
texts = st.one_of(st.lists(plain_pieces, max_size=30), st.lists(any_pieces, max_size=30))


@given(texts.map("".join), st.integers(8, 40), st.sampled_from(["u,i\n", ""]))
@example("a,b\nc,d", 8, "u,i\n")
@example("a,b\r\n\r\n\nc,d\n", 12, "u,i\n")
@example("a,\n,\n,b\n", 9, "u,i\n")
@example('"a,b",""\n"c","d"\n', 30, "u,i\n")
@example('"a""b",c\n"d",e\n', 30, "u,i\n")
@example('a"b,c\n"d"e,f\n', 30, "u,i\n")
@example(f'1,a\n{MARK}2,"b""c"\n', 30, "")
@example(f'1,a\n{MARK}"2""",c\n', 30, "")
@example(f"{MARK}1,a\n2,b\n", 30, "")
def test_what_arrow_reads(text: str, block: int, header: str) -> None:
    whole = (header + text).encode(errors="surrogateescape")
    has_header = bool(header)
    assert read(whole, block, has_header=has_header) == read(whole, None, has_header=has_header)


rows_of_fields = st.lists(
    st.tuples(*[st.text(st.characters(exclude_characters='",\r\n', codec="utf-8"))] * 4)
)


@given(rows_of_fields, st.sampled_from(["\n", "\r\n"]), st.integers(200, 400))
def test_plain_rows_are_read_to_the_end(rows: list[Row], end: str, block: int) -> None:
    lines = ["a,b,c,d", *(",".join(map(str, row)) for row in rows)]
    if all(len(line.encode()) < 100 for line in lines):
        found, rest = plain(f"{end.join(lines)}{end}".encode(), block, "a,b,c,d", wanted="d,b")
        assert rest is None
        assert found == [(d or None, b or None) for _, b, _, d in rows]


@pytest.mark.parametrize(
    ("text", "rows", "rest"),
    [
        (b'u,i\n1,a\n2,"b""c"\n3,c\n', 1, b'u,i\n2,"b""c"\n3,c\n'),
        (b'u,i\n1,a\n2,"b\nc"\n3,c\n', 1, b'u,i\n2,"b\nc"\n3,c\n'),
        (b'u,i\n1,a\n2,b"c\n3,c\n', 1, b'u,i\n2,b"c\n3,c\n'),
        (b'"u""",i\n1,a\n', 0, b'"u""",i\n1,a\n'),
        (b"u,i\n1,a\n2\n3,c\n", 1, b"u,i\n2\n3,c\n"),
        (b"u,i\n1,a\n2,b,c\n3,c\n", 1, b"u,i\n2,b,c\n3,c\n"),
        (b"u,i\n1,a\n2,b\rc,d\n", 1, b"u,i\n2,b\rc,d\n"),
        (b"u,i\n1,a\n2,\xff\n", 0, b"u,i\n1,a\n2,\xff\n"),
        (b"\nu,i\n1,a\n", 0, b"\nu,i\n1,a\n"),
        (b"u,i\n", 0, None),
        (b'"u","i"\n"1","a"\n"2","b,c"\n', 2, None),
        (b"u,i\n1,a\n2,b", 2, None),
        (b"\xef\xbb\xbfu,i\r\n1,a\r\n2,b\r\n", 2, None),
    ],
    ids=range(13),
)
def test_what_is_left_to_arrow(text: bytes, rows: int, rest: bytes | None) -> None:
    found, left = plain(text, 1 << 10)
    assert (len(found), left) == (rows, rest)


def test_a_blank_line_is_not_a_header_without_a_name() -> None:
    text = b'\n""\n'
    assert steps_of(text, 64, [""], [""], has_header=True) == ([], text)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"x", "a row has 1 field, and the header 2"),
        (b"x,y,z", "a row has 3 fields, and the header 2"),
        (b'1,"open', "ends inside of quotes"),
        (b"x,\xff", "is not UTF-8"),
    ],
    ids=str,
)
def test_bad_rows_after_many_plain_ones(
    bad: bytes, message: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_bytes(b"u,i\n" + b"1,a\n" * 50 + bad + b"\n")
    with pytest.raises(InputError, match=message):
        list(open_source(path, user="u", item="i").batches())


@pytest.mark.parametrize("before", range(1, 36))
def test_line_ends_in_quotes_do_not_depend_on_where_blocks_begin(
    before: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_bytes(b'u,i\n1,"a""b"\n2,' + b"x" * before + b'\n3,"c\r\nd"\n' * 3)
    batches = open_source(path, user="u", item="i").batches()
    items = [item for batch in batches for item in batch.column(1).to_pylist()]
    assert items[2:] == ["c\r\nd"] * 3


def test_a_delimiter_that_the_last_row_could_have(tmp_path: Any) -> None:
    path = tmp_path / "a.csv"
    for digit in "0123456789abcdef":
        path.write_text(f'u{digit}i\nx{digit}"y""z"\n')
        (batch,) = open_source(CsvFiles(str(path), delimiter=digit), user="u", item="i").batches()
        assert batch.to_pydict() == {"user": ["x"], "i": ['y"z']}
