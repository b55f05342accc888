"""Keys of every kind, brought to the types of the data's own items."""

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips import InputError, UsageError, text
from dp_sips.sources import Source, open_source
from dp_sips.sources.keys import read_keys


def source(kind: Any, item: Any = "i") -> Source:
    data = pa.table(
        {"u": pa.array([], pa.int64()), "i": pa.array([], kind), "j": pa.array([], "date32")}
    )
    return open_source(data, user="u", item=item)


KEYS: dict[str, Any] = {
    "list": [3, 1, 3],
    "tuple": (3, 1),
    "columns": {"i": [3, 1], "more": ["a", "b"]},
    "arrow": pa.table({"more": [0.5, 1.5], "i": [3, 1]}),
    "small integers": pa.table({"i": pa.array([3, 1], pa.int8())}),
    "text": pa.table({"i": ["3", "1"]}),
    "pandas": pd.DataFrame({"i": [3, 1]}),
    "polars": pl.DataFrame({"i": [3, 1]}),
    "series of pandas": pd.Series([3, 1]),
    "series of Polars": pl.Series([3, 1]),
    "polars lazy": pl.LazyFrame({"i": [3, 1]}),
    "stream": pa.RecordBatchReader.from_batches(
        pa.schema([("i", pa.int64())]), pa.table({"i": [3, 1]}).to_batches()
    ),
}


@pytest.mark.parametrize("kind", KEYS)
def test_any_table_or_list(kind: str) -> None:
    found = read_keys(KEYS[kind], source(pa.int64()))
    assert found.schema.field("i").type == pa.int64()
    assert set(found["i"].to_pylist()) == {1, 3}


def test_a_relation() -> None:
    found = read_keys(duckdb.sql("SELECT 3 AS i UNION SELECT 1"), source(pa.int32()))
    assert set(found["i"].to_pylist()) == {1, 3}


def test_a_relation_of_a_closed_connection() -> None:
    connection = duckdb.connect()
    keys = connection.sql("SELECT 3 AS i")
    connection.close()
    with pytest.raises(InputError, match="its connection is closed"):
        read_keys(keys, source(pa.int32()))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"keys.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table({"i": [3, 1]}), path)
    else:
        path.write_text("i\n3\n1\n" if suffix == "csv" else '{"i": 3}\n{"i": 1}\n')
    assert read_keys(path, source(pa.int64()))["i"].to_pylist() == [3, 1]
    assert read_keys(str(path), source(pa.int64()))["i"].to_pylist() == [3, 1]


def test_items_of_two_columns() -> None:
    found = read_keys([("a", dt.date(2026, 1, 2))], source(pa.string(), ["i", "j"]))
    assert found.to_pylist() == [{"i": "a", "j": dt.date(2026, 1, 2)}]


def test_items_of_no_declared_type() -> None:
    """Each key is of its own kind, as the items are: 1 and "1" are two."""
    data = open_source({"ann": [1, "1"]}, user=None, item=None)
    batch = next(iter(data.batches()))
    for keys in ([1, "1"], {"item": [1, "1"]}):
        assert read_keys(keys, data)["item"].to_pylist() == batch.column(1).to_pylist()
    typed = pa.table({"item": [1]})
    assert read_keys(typed, data)["item"].to_pylist() == batch.column(1).to_pylist()[:1]


def test_words_of_texts() -> None:
    data = open_source(
        pa.table({"u": [1], "body": ["Tea and jam"]}), user="u", item=text.words("body")
    )
    assert read_keys(["tea"], data).to_pylist() == [{"body": "tea"}]


def test_dictionaries_are_decoded() -> None:
    keys = pa.table({"i": pa.array(["a", "b"]).dictionary_encode()})
    found = read_keys(keys, source(pa.dictionary(pa.int8(), pa.string())))
    assert found.schema.field("i").type == pa.string()
    assert found["i"].to_pylist() == ["a", "b"]


def test_an_empty_list_has_the_types_of_items() -> None:
    assert read_keys([], source(pa.date32())).schema.field("i").type == pa.date32()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (pa.table({"k": [1]}), "no column 'i'"),
        (pa.table({"i": [[1]]}), "holds lists, not keys"),
        (pa.table({"i": ["three"]}), "is not of the type int:"),
        (["three"], "is not of the type int:"),
        ([1.5], "floats"),
    ],
)
def test_values_that_cannot_be_keys_are_refused(keys: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_keys(keys, source(pa.int64()))


@pytest.mark.parametrize("keys", [7, b"keys", None])
def test_other_objects_are_refused(keys: Any) -> None:
    with pytest.raises(UsageError, match="keys must be a selection, a table, a file or a list"):
        read_keys(keys, source(pa.int64()))


@pytest.mark.parametrize("keys", [["a"], [("a",)], [("a", 1, 2)]])
def test_tuples_have_a_value_for_each_column(keys: Any) -> None:
    with pytest.raises(UsageError, match="keys must be tuples of 2 values: i, j"):
        read_keys(keys, source(pa.string(), ["i", "j"]))
