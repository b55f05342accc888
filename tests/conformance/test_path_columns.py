"""Columns in the paths of files, as Hive writes them: every engine reads and releases the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dp_sips import CsvFiles, InputError

COUNTRIES = ["a b", "a%2Fb", "100%", "é", "a+b", "007", "7"]
NULL = "__HIVE_DEFAULT_PARTITION__"
VALUES = {"a b", "a/b", "100%", "é", "a+b", "007", "7"}
QUICK: dict[str, Any] = {"mechanism": "weighted-gaussian", "max_items": 12}
SURE: dict[str, Any] = QUICK | {"epsilon": 50.0, "rho": None, "delta": 1e-3}
"""Whatever ten users hold is released."""


def write_json(table: pa.Table, path: Path) -> None:
    path.write_text("\n" + "".join(json.dumps(row) + "\n\n" for row in table.to_pylist()))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": pq.write_table,
    "csv": pacsv.write_csv,
    "jsonl": write_json,
}


def write(folder: Path, kind: str = "parquet") -> Path:
    """Write a folder as Hive does, with all that writers leave beside the data."""
    for place, country in enumerate([*COUNTRIES, NULL]):
        part = folder / f"day=2026-01-0{place % 2}" / f"country={country}"
        part.mkdir(parents=True)
        users = [f"u{n}" for n in range(10)]
        table = pa.table({"u": users, "word": [f"w{place % 3}"] * 10})
        WRITERS[kind](table, part / f"part-0.{kind}")
        (part / f".part-1.{kind}").write_text("not data")
    (folder / "_SUCCESS").touch()
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"0.{kind}").write_text("not data")
    return folder


def rows(release: Any) -> list[Any]:
    return list(release.items.to_pylist())


@pytest.mark.parametrize("kind", WRITERS)
def test_every_engine_reads_the_same(
    kind: str, engine: Any, reference: Any, tmp_path: Path
) -> None:
    """The columns are the item, a part of it, or the user; the same rows count."""
    folder = write(tmp_path / "logs", kind)
    names: list[dict[str, Any]] = [
        {"user": "u", "item": ["word", "day", "country"], "nulls": "group"},
        {"user": "country", "item": "word", "nulls": "drop"},
        {"user": "country", "item": "day", "nulls": "drop"},
    ]
    for options in names if kind == "parquet" else names[:2]:
        found = engine.release(str(folder), **options, **QUICK)
        assert rows(found) == rows(reference.release(str(folder), **options, **QUICK))
        assert found.items.schema.types == [pa.string()] * found.items.num_columns


def test_values_are_text_each_by_itself(any_engine: Any, tmp_path: Path) -> None:
    """007 and 7 are two values, however many folders look like numbers; %2F is a slash."""
    folder = write(tmp_path / "logs")
    found = any_engine.release(str(folder), user="u", item="country", nulls="drop", **SURE)
    assert set(found.items["country"].to_pylist()) == VALUES
    with pytest.raises(InputError, match=r"column 'country' of .* has nulls"):
        any_engine.release(str(folder), user="u", item="country", **SURE)


def test_types_are_declared(any_engine: Any, tmp_path: Path) -> None:
    for number in ("7", "07", "8"):
        part = tmp_path / "logs" / f"n={number}" / "day=2026-01-01"
        part.mkdir(parents=True)
        pq.write_table(pa.table({"u": [f"u{n}" for n in range(10)]}), part / "0.parquet")
    found = any_engine.release(
        str(tmp_path / "logs"),
        user="u",
        item=["n", "day"],
        types={"n": "int", "day": "date"},
        **SURE,
    )
    assert found.items.schema.types == [pa.int64(), pa.date32()]
    assert found.items["n"].to_pylist() == [7, 8]
    with pytest.raises(InputError, match="has a value that is not of the type date:") as error:
        any_engine.release(str(tmp_path), user="u", item="n", types={"n": "date"}, **SURE)
    assert "07" not in str(error.value)


def test_other_columns_in_other_paths(any_engine: Any, tmp_path: Path) -> None:
    for folder in ("day=SECRET", "country=SECRET"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"u": ["1"], "word": ["a"]}), tmp_path / folder / "0.parquet")
    with pytest.raises(
        InputError, match=r"'day' is in the path of .*day=…/0\.parquet but not .*country=…/0\."
    ) as error:
        any_engine.release(str(tmp_path), user="u", item="day")
    assert "SECRET" not in str(error.value)
    assert any_engine.release(str(tmp_path), user="u", item="word", **QUICK).items is not None


def test_the_files_own_column_counts(any_engine: Any, tmp_path: Path) -> None:
    """Except in JSON lines, which do not say what they have."""
    part = tmp_path / "word=path"
    part.mkdir()
    table = pa.table({"u": [f"u{n}" for n in range(10)], "word": ["file"] * 10})
    for kind, value in (("parquet", "file"), ("csv", "file"), ("jsonl", "path")):
        WRITERS[kind](table, part / f"0.{kind}")
        found = any_engine.release(str(part / f"0.{kind}"), user="u", item="word", **SURE)
        assert found.items["word"].to_pylist() == [value]


def test_delimited_text_of_any_kind(any_engine: Any, tmp_path: Path) -> None:
    for day in "12":
        part = tmp_path / f"day={day}"
        part.mkdir()
        (part / "0.csv").write_text("".join(f"u{n}|w\n" for n in range(10)))
    data = CsvFiles(str(tmp_path), delimiter="|", header=False)
    found = any_engine.release(data, user="1", item=["day", "2"], **SURE)
    assert rows(found) == [{"day": "1", "2": "w"}, {"day": "2", "2": "w"}]
