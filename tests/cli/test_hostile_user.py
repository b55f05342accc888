"""What leaves the command line is a function of the released items, whatever one user has.

For each kind of file that is read and each that is written: bytes of the output and of the
certificate, stdout and stderr are the same with and without a hostile user. ε = 28 makes items of
all users as good as certain, and nothing of the hostile user's comes out with this seed.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

Rows = list[tuple[str | None, str | None]]

FLAGS = [
    *("--user", "user", "--item", "item", "--epsilon", 28, "--delta", 1e-6, "--nulls", "drop"),
    *("--mechanism", "sips", "--max-items", 3, "--seed", 1, "--insecure-test", "--force"),
]
ITEMS = ("7", "007", "a,b", '"quoted"', "two\nlines", "=1+1", "né", "")
CROWD: Rows = [(f"user {n}", item) for n in range(40) for item in ITEMS]
HOSTILE: dict[str, Rows] = {
    "numbers": [("8", "8"), ("8", "1.5"), ("8", str(10**40)), ("8", "NaN"), ("8", "-0")],
    "dates": [("x", "2024-05-01"), ("x", "2024-05-01T10:00:00.123456789Z")],
    "delimiters": [("x", ",;\t|"), ("x", '""",'), ("x", "\\N"), ("x", "\r\n\n"), ("x,y", "#")],
    "long": [("x" * 5000, "y" * 70_000)],
    "many": [("x", f"own {n}") for n in range(5000)],
    "nulls": [(None, "x"), ("x", None), (None, None)],
    "unicode": [("x", "\ufeff"), ("x", "\u202e"), ("x", "𝄞"), ("x", "\x00"), ("x", "NULL")],
    "repeats": [("x", "7")] * 500,
}


def _table(rows: Rows) -> pa.Table:
    users, items = zip(*rows, strict=True)
    return pa.table({"user": pa.array(users, pa.string()), "item": pa.array(items, pa.string())})


def _csv(rows: Rows, path: Path) -> None:
    pacsv.write_csv(_table(rows), path)


def _tsv(rows: Rows, path: Path) -> None:
    pacsv.write_csv(_table(rows), path, pacsv.WriteOptions(delimiter="\t"))


def _json(rows: Rows, path: Path) -> None:
    lines = (json.dumps({"user": user, "item": item}) + "\n" for user, item in rows)
    path.write_text("".join(lines))


def _parquet(rows: Rows, path: Path) -> None:
    pq.write_table(_table(rows), path, row_group_size=97)


def _coded(rows: Rows, path: Path) -> None:
    table = _table(rows)
    coded = [column.dictionary_encode() for column in table.columns]
    feather.write_feather(pa.table(coded, names=table.column_names), path)


SOURCES: dict[str, tuple[str, Callable[[Rows, Path], None]]] = {
    "csv": ("data.csv", _csv),
    "tsv": ("data.tsv", _tsv),
    "json lines": ("data.jsonl", _json),
    "parquet": ("data.parquet", _parquet),
    "arrow with dictionaries": ("data.arrow", _coded),
}
OUTPUTS = ("csv", "csv.gz", "jsonl", "parquet", "arrow", "txt")


def _left(run: Any, folder: Path, source: str, output: str, rows: Rows) -> tuple[Any, ...]:
    """Return all that a run leaves behind."""
    name, write = SOURCES[source]
    write(rows, folder / name)
    written, certificate = folder / f"out.{output}", folder / "certificate.json"
    files = ("-o", written, "--certificate", certificate)
    ran = run("select", folder / name, *FLAGS, *files)
    assert ran.code == 0, ran.err
    rest = {path.name for path in folder.iterdir()} - {name}
    return written.read_bytes(), _timeless(certificate.read_text()), ran.out, ran.err, rest


def _timeless(certificate: str) -> str:
    return re.sub(r'"time": "[^"]*"', "", certificate)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("source", SOURCES)
def test_files_show_nothing_else(run: Any, tmp_path: Path, source: str, output: str) -> None:
    alone = _left(run, tmp_path, source, output, CROWD)
    assert f"Released {len(ITEMS)} items" in alone[3]
    for n, own in enumerate(HOSTILE.values()):
        rows = [*own, *CROWD] if n % 2 else [*CROWD, *own]
        assert _left(run, tmp_path, source, output, rows) == alone


@pytest.mark.parametrize("flags", [(), ("--json",), ("--quiet",)])
@pytest.mark.parametrize("source", SOURCES)
def test_stdout_shows_nothing_else(run: Any, tmp_path: Path, source: str, flags: Any) -> None:
    name, write = SOURCES[source]
    seen = []
    for rows in ([], *HOSTILE.values()):
        write([*rows, *CROWD], tmp_path / name)
        ran = run("select", tmp_path / name, *FLAGS, *flags)
        assert ran.code == 0, ran.err
        seen.append((_timeless(ran.out), ran.err))
    assert all(each == seen[0] for each in seen)


JSON_ROWS = b'{"user": 1, "item": 2}\n' * 30
BAD_BYTES = {
    "csv": ("data.csv", b"user,item\n" + b"u,i\n" * 30, b"%s,\xff\xfe\n"),
    "json lines": ("data.jsonl", JSON_ROWS, b'{"user": %s, "item": "\xff"}\n'),
    "lone surrogates": ("data.jsonl", JSON_ROWS, b'{"user": %s, "item": "\\ud800"}\n'),
}


@pytest.mark.parametrize("kind", BAD_BYTES)
def test_errors_show_no_value_and_no_row(run: Any, tmp_path: Path, kind: str) -> None:
    """Where rows end a run, the message is the same wherever they stand and whatever they hold."""
    name, crowd, row = BAD_BYTES[kind]
    head, rest = crowd.split(b"\n", 1)
    said = set()
    for secret in (b"1234567", b"7654321"):
        own = row % secret
        for text in (head + b"\n" + own + rest, crowd + own):
            (tmp_path / name).write_bytes(text)
            ran = run("select", tmp_path / name, *FLAGS)
            assert ran.refused(name)
            said.add(ran.err)
    assert len(said) == 1
