"""Files of every kind come in as the same rows."""

import bz2
import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from dp_sips.errors import InputError
from dp_sips.sources import batches, open_source

TABLE = pa.table({"z": [0.5, 1.5, 2.5], "i": ["a", "b", "a"], "u": [1, 2, 1]})
ROWS = Counter({(1, "a"): 2, (2, "b"): 1})
TYPES = {"u": "int"}
"""CSV files are text otherwise."""


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def write_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_tsv(table: pa.Table, path: Path) -> None:
    pacsv.write_csv(table, path, pacsv.WriteOptions(delimiter="\t"))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "a.parquet": pq.write_table,
    "a.pq": pq.write_table,
    "A.PARQUET": pq.write_table,
    "a.csv": pacsv.write_csv,
    "a.tsv": write_tsv,
    "a.jsonl": write_json,
    "a.ndjson": write_json,
    "a.json": write_json,
    "a.arrow": write_file,
    "a.ipc": write_stream,
    "a.feather": feather.write_feather,
}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("pack", ["", ".gz", ".bz2", ".zst"])
def test_empty_parts_are_left_out(kind: str, pack: str, tmp_path: Path, read: Any) -> None:
    WRITERS[f"a.{kind}"](TABLE, tmp_path / f"a.{kind}")
    pa.output_stream(str(tmp_path / f"b.{kind}{pack}"), compression="detect").close()
    assert read(tmp_path, types=TYPES) == ROWS


@pytest.mark.parametrize("pack", ["", ".gz", ".bz2", ".zst"])
def test_a_file_of_0_bytes(pack: str, tmp_path: Path, read: Any) -> None:
    """JSON lines need no header: no line is no row."""
    for kind in ("csv", "tsv", "jsonl"):
        pa.output_stream(str(tmp_path / f"b.{kind}{pack}"), compression="detect").close()
    assert read(tmp_path / f"b.jsonl{pack}") == Counter()
    for kind in ("csv", "tsv"):
        with pytest.raises(InputError, match=r"b\..* has no header: 0 bytes"):
            read(tmp_path / f"b.{kind}{pack}")


@pytest.mark.parametrize("name", WRITERS)
def test_each_kind_gives_the_same_rows(name: str, tmp_path: Path, read: Any, items: Any) -> None:
    WRITERS[name](TABLE, tmp_path / name)
    assert read(tmp_path / name, types=TYPES) == ROWS
    assert read(str(tmp_path / name), types=TYPES) == ROWS
    source = open_source(tmp_path / name, user="u", item="i", types=TYPES)
    assert source.user_type == pa.int64()
    assert source.restore(items(source, ["a", "b"])) == pa.table({"i": ["a", "b"]})
    assert source.rows() in (3, None)


def _zst(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(text)
    return bytes(sink.getvalue())


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": _zst,
}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
@pytest.mark.parametrize("suffix", COMPRESS)
def test_text_files_may_be_compressed(name: str, suffix: str, tmp_path: Path, read: Any) -> None:
    WRITERS[name](TABLE, tmp_path / name)
    text = (tmp_path / name).read_bytes()
    path = tmp_path / (name + suffix)
    path.write_bytes(COMPRESS[suffix](text))
    assert read(path, types=TYPES) == ROWS


def test_rows_are_known_for_parquet_only(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(TABLE, tmp_path / name)
    assert open_source(tmp_path, user="u", item="i").rows() == 6
    pacsv.write_csv(TABLE, tmp_path / "c.csv")
    assert open_source(tmp_path, user="u", item="i", types=TYPES).rows() is None


def test_files_of_several_kinds_and_text_layouts_are_one_table(tmp_path: Path, read: Any) -> None:
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        WRITERS[name](TABLE, tmp_path / name)
    wide = TABLE.set_column(1, "i", TABLE["i"].cast(pa.large_string()))
    pq.write_table(wide, tmp_path / "wide.parquet")
    write_file(TABLE.set_column(1, "i", TABLE["i"].cast(pa.string_view())), tmp_path / "v.arrow")
    types = {"u": "int", "i": "string"}
    assert read(tmp_path, types=types) == Counter({(1, "a"): 10, (2, "b"): 5})


def test_files_that_differ_need_a_declaration(tmp_path: Path) -> None:
    WRITERS["a.jsonl"](TABLE, tmp_path / "a.jsonl")
    pq.write_table(TABLE, tmp_path / "b.parquet")
    message = r"column 'u' is without a type in .*jsonl but int64 in .*types=\{'u': \"string\"\}"
    with pytest.raises(InputError, match=message):
        open_source(tmp_path, user="u", item="i")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    names = ["b.parquet", "a.parquet", "sub/c.parquet", ".hidden.parquet", "_x.parquet"]
    for name in [*names, "_temporary/d.parquet", "spark.parquet/part-0.parquet"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(TABLE, tmp_path / name)
    (tmp_path / "README.md").write_text("not data")
    (tmp_path / "spark.parquet" / "_SUCCESS").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("", 4),
        ("*", 4),
        ("*.parquet", 3),
        ("_*.parquet", 1),
        ("_temporary/*", 1),
        ("**/*.parquet", 4),
        ("[ab].parquet", 2),
        ("sub", 1),
        ("spark.parquet", 1),
        ("**/c.parquet", 1),
        ("sub/**", 1),
    ],
)
def test_folders_and_globs(pattern: str, files: int, tree: Path, read: Any) -> None:
    assert read(f"{tree}/{pattern}") == Counter({(1, "a"): 2 * files, (2, "b"): files})


def test_a_list_names_each_file_once(tree: Path, read: Any) -> None:
    places = [tree / "a.parquet", f"{tree}/*.parquet", str(tree / "sub")]
    assert read(places)[2, "b"] == 4
    assert read(tuple(places))[2, "b"] == 4


def test_files_are_read_by_name(tmp_path: Path) -> None:
    for name in "cab":
        pq.write_table(pa.table({"u": [1], "i": [name]}), tmp_path / f"{name}.parquet")
    source = open_source(tmp_path, user="u", item="i")
    assert [batch[1].to_pylist() for batch in source.batches()] == [["a"], ["b"], ["c"]]


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path, read: Any) -> None:
    pq.write_table(TABLE, tmp_path / "a[1].parquet")
    assert read(tmp_path / "a[1].parquet") == ROWS


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pq.write_table(TABLE, tmp_path / "a.parquet")
    assert read("~/a.parquet") == ROWS
    assert read("~/*.parquet") == ROWS


@pytest.mark.parametrize("distinct", [10, 10_000])
def test_parquet_text_stays_in_dictionaries_where_they_are_small(
    distinct: int, tmp_path: Path, count: Any
) -> None:
    words = [f"word {number % distinct}" for number in range(10_000)]
    table = pa.table({"u": words, "i": [[word, word] for word in words]})
    pq.write_table(table, tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", user="u", item="i")
    assert count(source).total() == 20_000
    for batch in source.batches():
        small = [pa.types.is_dictionary(column.type) for column in batch.columns]
        assert small == [distinct == 10] * 2


def test_names_with_dots_are_plain_names(tmp_path: Path, read: Any) -> None:
    pq.write_table(pa.table({"a.b": [1], "a.c": ["x"], "a": [2]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", user="a.b", item="a.c") == Counter({(1, "x"): 1})
    assert read(tmp_path / "a.parquet", user="a", item="a.c") == Counter({(2, "x"): 1})


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_large_arrow_batches_are_cut(kind: str, tmp_path: Path, read: Any) -> None:
    table = pa.table({"u": pa.array(range(300_000)), "i": pa.array(range(300_000))})
    {"file": write_file, "stream": write_stream}[kind](table, tmp_path / "a.arrow")
    assert read(tmp_path / "a.arrow").total() == 300_000


@pytest.mark.parametrize("kind", ["file", "frame"])
def test_long_texts_come_in_small_batches(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_BYTES", 10_000)
    table = pa.table({"u": list(range(100)), "i": [f"{n}" * 500 for n in range(100)]})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    data = {"file": tmp_path / "a.parquet", "frame": pl.DataFrame(table)}[kind]
    found = list(open_source(data, user="u", item="i").batches())
    assert max(batch.nbytes for batch in found) < 20_000
    assert [value for batch in found for value in batch.column(1).to_pylist()] == table[
        "i"
    ].to_pylist()
