"""Columns in paths: what a value means depends on that value alone, and no message shows one."""

import json
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dp_sips import select_partitions
from dp_sips.errors import InputError
from dp_sips.sources import open_source
from dp_sips.sources.path_columns import without_values

TABLE = pa.table({"u": ["1", "2"], "i": ["a", "b"]})
SECRET = "a diagnosis"[2:]
"""Not as it is written in this file, which tracebacks show."""


def write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_ipc(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": pq.write_table,
    "csv": pacsv.write_csv,
    "jsonl": write_json,
    "arrow": write_ipc,
}


def put(folder: Path, kind: str = "parquet", table: pa.Table = TABLE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    WRITERS[kind](table, folder / f"0.{kind}")
    return folder


@pytest.mark.parametrize("kind", WRITERS)
def test_a_column_can_be_anything(kind: str, tmp_path: Path, read: Any) -> None:
    for day, place in (("1", "x"), ("02", "__HIVE_DEFAULT_PARTITION__")):
        put(tmp_path / f"day={day}" / f"place={place}", kind)
    assert read(tmp_path, item="day") == Counter(
        {("1", "1"): 1, ("2", "1"): 1, ("1", "02"): 1, ("2", "02"): 1}
    )
    assert read(tmp_path, user="day") == Counter(
        {("1", "a"): 1, ("1", "b"): 1, ("02", "a"): 1, ("02", "b"): 1}
    )
    assert read(tmp_path, item=["i", "place"], nulls="drop") == Counter(
        {("1", "a", "x"): 1, ("2", "b", "x"): 1}
    )
    assert read(tmp_path, user="day", item="place", nulls="group") == Counter(
        {("1", "x"): 2, ("02", None): 2}
    )
    assert read(tmp_path / "day=1" / "place=x" / f"0.{kind}", item="day")[("1", "1")] == 1


def test_an_additional_user_with_a_folder_of_their_own(tmp_path: Path) -> None:
    """Were types inferred from all folders, a letter would make two items of one."""
    many = pa.table({"u": [str(n) for n in range(60)]})
    more = pa.table({"u": [str(n) for n in range(60, 120)]})
    put(tmp_path / "n=7", table=many)
    put(tmp_path / "n=07", table=more)

    def release() -> Any:
        return select_partitions(
            tmp_path,
            user="u",
            item="n",
            epsilon=1.0,
            delta=1e-5,
            mechanism="single",
            seed=5,
            insecure_test=True,
        )

    alone = release()
    put(tmp_path / "n=B", table=pa.table({"u": ["hostile"]}))
    among = release()
    assert alone.items.equals(among.items, check_metadata=True)
    assert alone.items["n"].to_pylist() == ["07", "7"]
    assert alone.certificate["items"] == among.certificate["items"]


def test_lists_beside_a_user_in_the_path(tmp_path: Path, read: Any) -> None:
    folder = tmp_path / "u=ann"
    folder.mkdir()
    (folder / "0.jsonl").write_text('{"i": ["a", "b"]}\n{"i": "c"}\n{"i": [1]}\n')
    expected = Counter([("ann", "a"), ("ann", "b"), ("ann", "c"), ("ann", 1)])
    assert read(tmp_path) == expected
    table = pa.table({"i": [["a", "b"], ["c"]]})
    assert read(put(tmp_path / "more" / "u=ann", table=table)).total() == 3


def test_names_and_values_as_writers_spell_them(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "_k=1" / "a%20name=%C3%A9%zz%2f" / "k=")
    assert set(read(tmp_path, item=["a name", "_k", "k"])) == {
        ("1", "é%zz/", "1", ""),
        ("2", "é%zz/", "1", ""),
    }
    put(tmp_path / "in" / "k=1" / "k=2")
    assert set(read(tmp_path / "in", item="k")) == {("1", "2"), ("2", "2")}
    put(tmp_path / "bad" / "k=%FF")
    with pytest.raises(InputError, match=r"k=…/0\.parquet has text that is not UTF-8"):
        read(tmp_path / "bad", item="k")


def test_rows_are_counted_without_reading_them(tmp_path: Path) -> None:
    for day in "123":
        put(tmp_path / f"day={day}")
    source = open_source(tmp_path, user="u", item="day")
    assert source.rows() == 6
    assert source.feed.label == f"3 files from {tmp_path}/day=…/0.parquet on"


@pytest.mark.parametrize("kind", WRITERS)
def test_no_message_shows_a_value(kind: str, tmp_path: Path, read: Any) -> None:
    nulls = pa.table({"u": ["1", None], "i": ["a", "b"]})
    put(tmp_path / f"day={SECRET}", kind, nulls)
    names: list[tuple[dict[str, Any], str]] = [
        ({"item": "day"}, "has nulls"),
        ({"item": "day", "nulls": "drop", "types": {"day": "date"}}, "not of the type date:"),
    ]
    if kind != "jsonl":
        names.append(({"item": "place"}, "no column 'place'"))
    for options, words in names:
        with pytest.raises(InputError, match=words) as error:
            read(tmp_path, **options)
        assert SECRET not in "".join(traceback.format_exception(error.value))
    with pytest.raises(InputError, match="there are none") as error:
        read(tmp_path / "day=0")
    assert SECRET not in str(error.value)


def test_other_columns_in_other_paths(tmp_path: Path, read: Any) -> None:
    put(tmp_path / f"day={SECRET}")
    put(tmp_path / f"hour={SECRET}")
    with pytest.raises(
        InputError, match=r"'day' is in the path of \S*/day=…/0\.parquet but not in that of \S*/hou"
    ) as error:
        read(tmp_path, item="day")
    assert SECRET not in str(error.value)
    assert read(tmp_path).total() == 4


def test_a_number_tells_which_file_it_is(tmp_path: Path, read: Any) -> None:
    for day in "123":
        put(tmp_path / f"day={day}", "jsonl")
    (tmp_path / "day=2" / "0.jsonl").write_text('{"u": "1"}\n')
    with pytest.raises(
        InputError, match=r"day=…/0\.jsonl \(file 2 of 3\) has nulls \(so has a line without"
    ):
        read(tmp_path)
    (tmp_path / "day=2" / "0.jsonl").write_text("[]\n")
    with pytest.raises(InputError, match=r"day=…/0\.jsonl \(file 2 of 3\) cannot be read as JSON"):
        read(tmp_path)


def test_paths_in_messages() -> None:
    assert without_values("a=1/b/c=2/d=3.csv") == "a=…/b/c=…/d=3.csv"
    assert without_values("/a/b.csv") == "/a/b.csv"
