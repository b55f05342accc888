"""Damaged files are read or refused: no crash, no other error, no value in a message."""

import struct
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips import InputError
from dp_sips.sources import open_source


@pytest.fixture
def fuzz_files() -> Any:
    return import_module("fuzz_files")


def test_hundreds_of_mutants(fuzz_files: Any) -> None:
    found = list(fuzz_files.fuzz(mutants=500, seed=0, processes=2))
    assert [pair for pair in found if not fuzz_files.is_fine(pair[1])] == []
    counts = Counter(outcome.split()[0] for _, outcome in found)
    assert min(counts["read"], counts["refused"]) > 20


def test_a_crash_is_noticed(
    fuzz_files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = fuzz_files.Reader()
    monkeypatch.setattr(fuzz_files, "_READER", "\nimport os, sys; sys.stdin.readline(); os.abort()")
    assert reader(tmp_path) == "CRASHED with code -6"
    assert not fuzz_files.is_fine("CRASHED with code -6")
    monkeypatch.setattr(fuzz_files, "_READER", "\nimport sys; sys.stdin.readline(); print('read')")
    assert reader(tmp_path) == "read"
    reader.close()


def read(path: Path) -> list[Any]:
    source = open_source(path, user="u", item="i", nulls="drop")
    return [row for batch in source.batches() for row in batch.to_pylist()]


def write(path: Path, items: pa.Array) -> None:
    table = pa.table({"u": range(len(items)), "i": items})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def damage(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


TEXTS = ["VALUE one", "VALUE two", "VALUE three"]
OFFSETS = words(0, 9, 18, 29)
LAYOUTS: dict[str, tuple[pa.Array, bytes, bytes]] = {
    "text offset": (pa.array(TEXTS), OFFSETS, words(0, 9, 2**30, 29)),
    "text end": (pa.array(TEXTS), OFFSETS, words(0, 9, 18, 2**30)),
    "list offset": (
        pa.array([[7], [8, 9], [7]]),
        words(0, 1, 3, 4),
        words(0, 1, 2**30, 4),
    ),
    "index": (
        pa.DictionaryArray.from_arrays(pa.array([4, 5, 4], pa.int32()), pa.array(list("abcdef"))),
        words(4, 5, 4),
        words(4, 6, 4),
    ),
    "index below zero": (
        pa.DictionaryArray.from_arrays(pa.array([4, 5, 4], pa.int32()), pa.array(list("abcdef"))),
        words(4, 5, 4),
        words(4, -1, 4),
    ),
    "view": (
        pa.array(["a text of more than twelve bytes", "b", "c"], pa.string_view()),
        words(32) + b"a te" + words(0, 0),
        words(32) + b"a te" + words(0, 2**30),
    ),
    "list view": (
        pa.array([[7], [8, 9], [7]], pa.list_view(pa.int64())),
        words(1, 2, 1),
        words(1, 2**30, 1),
    ),
    "text in a list": (pa.array([TEXTS, [], []]), OFFSETS, words(0, 9, 2**30, 29)),
    "time": (
        pa.array([11, 12, 13], pa.int32()).view(pa.time32("s")),
        words(11, 12, 13),
        words(11, 2**30, 13),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_places_outside_of_their_buffers(layout: str, tmp_path: Path) -> None:
    items, old, new = LAYOUTS[layout]
    path = tmp_path / "a.arrow"
    write(path, items)
    assert read(path)
    damage(path, old, new)
    with pytest.raises(InputError, match=r"a\.arrow cannot be read: the column 'i' is corrupt$"):
        read(path)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "ipc"])
def test_a_file_cut_short_while_it_is_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    rng = np.random.default_rng(0)
    table = pa.table(
        {"u": rng.integers(0, 2**60, 2_000_000), "i": rng.integers(0, 2**60, 2_000_000)}
    )
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=200_000)
    else:
        opened = (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema)
        with opened as writer:
            writer.write_table(table, max_chunksize=200_000)
    batches = open_source(path, user="u", item="i").batches()
    next(batches)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(InputError, match=rf"a\.{kind} cannot be read"):
        list(batches)


@pytest.mark.parametrize("field", ["i", "other"])
@pytest.mark.parametrize("depth", [1000, 20_000, 500_000])
def test_deep_json(field: str, depth: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    deep = "[" * depth + "]" * depth
    path.write_text(f'{{"u": 1, "i": "a"}}\n{{"u": 1, "{field}": {deep}, "x": "]"}}\n')
    with pytest.raises(InputError, match=r"a\.jsonl has a line that nests more than 64 deep"):
        read(path)


def test_brackets_that_are_not_deep(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"u": 1, "i": "' + "[" * 500 + r"\"{[" + '"}\n'
        '{"u": 2, "i": "b", "wide": [' + "[], " * 500 + "[]]}\n"
        '{"u": 3, "i": "c", "deep": ' + "[" * 60 + "]" * 60 + "}\n"
    )
    assert [bytes(row["i"])[:1] for row in read(path)] == [b"[", b"b", b"c"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"u": 1, "\xff": 2, "i": "a"}\n'),
        ("a.jsonl", b'{"u": 1, "i": "\xff"}\n'),
        ("a.jsonl", b'{"u": 1, "i": "\\ud800"}\n'),
        ("a.csv", b"u,i,\xff\n1,2,3\n"),
        ("a.csv", b"u,i\n1,\xff\n"),
    ],
)
def test_text_that_is_not_utf8(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError):
        read(tmp_path / name)
