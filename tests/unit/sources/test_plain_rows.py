"""Plain rows without Arrow are what Arrow makes of them; what is not plain is left to Arrow."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dp_sips.errors import InputError
from dp_sips.sources import delimited, open_source
from dp_sips.sources.csv_files import Dialect
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.plain_rows import PlainRows

Row = tuple[str | None, ...]


def plain(text: bytes, block: int, header: str = "u,i", *, wanted: str = "u,i") -> Any:
    """Return the rows that were read without Arrow, and what was left."""
    names = header.split(",")
    rows: list[Row] = []
    stream = pa.BufferReader(text)
    steps = PlainRows(names, wanted.split(","), ",", block).read(stream, has_header=True)
    while True:
        try:
            batch = next(steps)
        except StopIteration as end:
            return rows, None if end.value is None else end.value + stream.read()
        batch.validate(full=True)
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)


def read(path: Path, block: int | None) -> list[Row] | str:
    """Return all rows, or what is wrong with them; without a block, Arrow reads all of them."""
    file, header, dialect = DataFile.local(path), ["u", "i"], Dialect()
    schema = pa.schema([(name, pa.string()) for name in header])
    rows: list[Row] = []

    def note(batch: pa.RecordBatch) -> None:
        rows.extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))

    rest, stream = b"", file.stream()
    try:
        if block is not None:
            found, left = plain(path.read_bytes(), block)
            rows += found
            if left is None:
                return rows
            rest, stream = left, pa.BufferReader(b"")
        joined = delimited._Joined(rest, stream)
        for batch in delimited._read_with_arrow(file, header, schema, dialect, joined):
            note(batch)
    except (pa.ArrowInvalid, InputError) as error:
        return type(error).__name__
    return rows


pieces = st.sampled_from(["a", "bb", "é", ",", ",", "\n", "\n", "\r\n", "\r", '"', '"c"', "x,y\n"])
texts = st.lists(pieces, max_size=30).map("".join)


@given(texts, st.integers(8, 40))
@example("a,b\nc,d", 8)
@example("a,b\r\n\r\n\nc,d\n", 12)
@example("a,\n,\n,b\n", 9)
@example('"a,b",""\n"c","d"\n', 30)
@example('"a""b",c\n"d",e\n', 30)
@example('a"b,c\n"d"e,f\n', 30)
def test_what_arrow_reads(text: str, block: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes(b"u,i\n" + text.encode())
        assert read(path, block) == read(path, None)


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


@pytest.mark.parametrize("bad", [b"x", b"x,y,z", b'"open', b"x,\xff"])
def test_bad_rows_after_many_plain_ones(
    bad: bytes, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_bytes(b"u,i\n" + b"1,a\n" * 50 + bad + b"\n")
    with pytest.raises(InputError):
        list(open_source(path, user="u", item="i").batches())
