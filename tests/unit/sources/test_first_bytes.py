"""Files whose names say what they are not: the first bytes tell, and are not shown."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips import CsvFiles, InputError

ROWS = {"u": [1, 2], "i": ["SECRET", "SECRET"]}


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(ROWS), sink)
    return bytes(sink.getvalue())


def arrow(opener: Callable[..., Any]) -> bytes:
    sink = pa.BufferOutputStream()
    with opener(sink, pa.table(ROWS).schema) as writer:
        writer.write_table(pa.table(ROWS))
    return bytes(sink.getvalue())


CSV = b"u,i\n1,SECRET\n"
JSON = b'{"u": 1, "i": "SECRET"}\n'
PARQUET, FILE, STREAM = parquet(), arrow(pa.ipc.new_file), arrow(pa.ipc.new_stream)
ARRAY = json.dumps([{"u": 1, "i": "SECRET"}] * 3)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", PARQUET, "is a Parquet file by its first bytes: rename it to .parquet"),
        ("a.jsonl", PARQUET, "is a Parquet file by its first bytes: rename it to .parquet"),
        ("a.arrow", PARQUET, "is a Parquet file by its first bytes: rename it to .parquet"),
        ("a.csv.gz", PARQUET, "is a Parquet file by its first bytes: rename it to .parquet"),
        (
            "a.csv.gz",
            gzip.compress(PARQUET, mtime=0),
            "bytes: unpack it, and rename it to .parquet",
        ),
        ("a.csv", FILE, "is an Arrow file by its first bytes: rename it to .arrow"),
        ("a.tsv", STREAM, "is an Arrow file by its first bytes: rename it to .arrow"),
        ("a.parquet", FILE, "is an Arrow file by its first bytes: rename it to .arrow"),
        ("a.csv", JSON, "is a file of JSON lines by its first bytes: rename it to .jsonl"),
        ("a.parquet", JSON, "is a file of JSON lines by its first bytes: rename it to .jsonl"),
        ("a.parquet", CSV, "is text by its first bytes: rename it to .csv, .tsv or .jsonl"),
        ("a.arrow", CSV, "is text by its first bytes: rename it to .csv, .tsv or .jsonl"),
        ("a.csv.gz", CSV, "is not packed by its first bytes: leave .gz out of its name"),
        ("a.csv.zst", CSV, "is not packed by its first bytes: leave .zst out of its name"),
        ("a.jsonl.bz2", JSON, "is not packed by its first bytes: leave .bz2 out of its name"),
        ("a.csv.gz", bz2.compress(CSV), "first bytes: unpack it, or name it .bz2, not .gz"),
        (
            "a.jsonl",
            gzip.compress(JSON, mtime=0),
            "is packed by its first bytes: unpack it, or add .gz",
        ),
        ("a.parquet", gzip.compress(CSV, mtime=0), "is packed by its first bytes: unpack it"),
        ("a.parquet", b"PK\x03\x04" + bytes(60), "a workbook or an archive by its first bytes"),
        ("a.json", ARRAY.encode(), "is a JSON array by its first bytes: write one object per line"),
        ("a.csv", ARRAY.encode(), "is a JSON array by its first bytes: write one object per line"),
    ],
    ids=range(21),
)
def test_the_kind_is_named(name: str, content: bytes, said: str, tmp_path: Path, read: Any) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path} ")
    assert said in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("name", "content"), [("a.parquet", PARQUET), ("a.jsonl", JSON)], ids=range(2)
)
def test_csv_files_are_not_for_other_kinds(
    name: str, content: bytes, tmp_path: Path, read: Any
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"leave out dp_sips\.CsvFiles \(--delimiter"):
        read(CsvFiles(tmp_path / name, delimiter=","))


@pytest.mark.parametrize("first", ['{"a": 1}', "BZh91AY&SY", "PK\3\4", '[{"a"'])
def test_the_first_row_of_text_without_a_header_is_not_looked_at(
    first: str, tmp_path: Path, read: Any
) -> None:
    messages = set()
    for begin in (first, "x"):
        for packed in (bytes, gzip.compress):
            path = tmp_path / ("a.csv.gz" if packed is gzip.compress else "a.csv")
            path.write_bytes(packed(f"{begin};y\n".encode()))
            with pytest.raises(InputError) as caught:
                read(CsvFiles(path, header=False, delimiter=";"), user="1", item="3")
            messages.add(str(caught.value).replace("a.csv.gz", "a.csv"))
    assert len(messages) == 1


@pytest.mark.parametrize("row", [b"1,SECRET\n", b'{"SECRET\1",1\n', b'[{"SECRET"\0'])
def test_text_that_should_be_packed_is_told_without_a_header(
    row: bytes, tmp_path: Path, read: Any
) -> None:
    (tmp_path / "a.csv.gz").write_bytes(row)
    with pytest.raises(InputError, match=r"is not packed by its first bytes: leave \.gz out"):
        read(CsvFiles(tmp_path / "a.csv.gz", header=False), user="1", item="2")


@pytest.mark.parametrize("name", ["PAR1", "ARROW1", "BZh", '{"'])
def test_a_header_may_begin_as_it_likes(name: str, tmp_path: Path, read: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{name},u,i\n0,1,a\n")
    if name == '{"':
        path.write_text('"{""",u,i\n0,1,a\n')
    assert sum(read(path).values()) == 1


def test_a_column_that_is_called_as_a_kind_of_file_begins(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.tsv").write_text("PAR1\tu\ti\n0\t1\ta\n")
    with pytest.raises(InputError, match="did you mean 'u'"):
        read(tmp_path / "a.tsv", user="U")
