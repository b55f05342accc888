"""Columns of texts become words, whatever kind of table they are in."""

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from dp_sips import InputError, UsageError
from dp_sips.progress import Progress
from dp_sips.sources import open_source, texts
from dp_sips.sources.base import Feed
from dp_sips.text import ngrams, words

DATA = {"z": [0.5, 1.5, 2.5], "i": ["Tea, jam.", "Jam jam", "- ..."], "u": [1, 2, 1]}
TABLE = pa.table(DATA)
ROWS = Counter({(1, "tea"): 1, (1, "jam"): 1, (2, "jam"): 2})
KINDS: dict[str, Any] = {
    "table": lambda: TABLE,
    "reader": TABLE.to_reader,
    "dataset": lambda: pads.dataset(TABLE),
    "pandas": lambda: pd.DataFrame(DATA),
    "pandas objects": lambda: pd.DataFrame(DATA).astype({"i": object}),
    "polars": lambda: pl.DataFrame(DATA),
    "lazy": lambda: pl.LazyFrame(DATA),
    "duckdb": lambda: duckdb.connect().from_arrow(TABLE),
    "views": lambda: TABLE.set_column(1, "i", TABLE["i"].cast(pa.string_view())),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_table(kind: str, read: Any, items: Any) -> None:
    assert read(KINDS[kind](), item=words("i")) == ROWS
    source = open_source(KINDS[kind](), user="u", item=words("i"))
    released = source.restore(items(source, ["tea"]))
    as_it_was = open_source(KINDS[kind](), user="u", item="i")
    same = as_it_was.restore(items(as_it_was, ["tea"]))
    assert type(released) is type(same)
    assert str(released) == str(same)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files(suffix: str, tmp_path: Path, read: Any) -> None:
    writer = {"parquet": pq.write_table, "csv": pacsv.write_csv}[suffix]
    for name in "ab":
        writer(TABLE, tmp_path / f"{name}.{suffix}")
    assert read(tmp_path, item=words("i"), types={"u": "int"}) == ROWS + ROWS


def test_dictionary_pages(tmp_path: Path, read: Any) -> None:
    pq.write_table(pa.table({"u": [1, 2] * 500, "i": ["A b", "C"] * 500}), tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet", item=words("i"))
    assert found == {(1, "a"): 500, (1, "b"): 500, (2, "c"): 500}


@pytest.mark.parametrize(
    "data", [{"ann": ["Tea, jam."], "bob": ["jam"]}, [("ann", ["Tea, jam."]), ("bob", ["jam"])]]
)
def test_plain_python(data: Any, read: Any) -> None:
    found = read(data, user=None, item=words())
    assert found == {("ann", "tea"): 1, ("ann", "jam"): 1, ("bob", "jam"): 1}


def test_ngrams(read: Any) -> None:
    found = read(TABLE, item=ngrams("i", 2))
    assert found == ROWS + Counter({(1, "tea jam"): 1, (2, "jam jam"): 1})


def test_no_ngram_spans_rows(read: Any) -> None:
    table = pa.table({"u": [1, 1], "i": ["to be", "or not"]})
    assert (1, "be or") not in read(table, item=ngrams("i", 2))


def test_texts_are_taken_apart_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, read: Any) -> None:
    monkeypatch.setattr(texts, "_BYTES", 64)
    table = pa.table({"u": list(range(100)), "i": [f"w{i} x" for i in range(100)]})
    expected = Counter({(i, word): 1 for i in range(100) for word in (f"w{i}", "x")})
    for processes in (1, 2):
        assert read(table, item=words("i", processes=processes)) == expected


def test_nulls(read: Any) -> None:
    table = pa.table({"u": [1, 2], "i": ["a", None]})
    with pytest.raises(InputError, match="column 'i' of the table has nulls"):
        read(table, item=words("i"))
    assert read(table, item=words("i"), nulls="drop") == {(1, "a"): 1}
    assert read(table, item=words("i"), nulls="group") == {(1, "a"): 1, (2, None): 1}


def test_no_words_at_all(read: Any) -> None:
    assert read(pa.table({"u": [1], "i": ["..."]}), item=words("i")) == Counter()


NO_TEXTS: list[Any] = [[1], [b"a"], [["a"]], pa.array(["a"]).dictionary_encode()]


@pytest.mark.parametrize("values", NO_TEXTS, ids=range(4))
def test_what_is_no_text(values: Any) -> None:
    with pytest.raises(InputError, match=r"column 'i' of the table has the type .*cast this one"):
        open_source(pa.table({"u": [1], "i": values}), user="u", item=words("i"))


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no column 'bodi' in the table: did you mean 'body'"):
        open_source(pa.table({"u": [1], "body": ["a"]}), user="u", item=words("bodi"))


def test_without_nltk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        texts, "find_spec", lambda name: None if name == "nltk" else find_spec(name)
    )
    with pytest.raises(UsageError, match=r"nltk.*pip install 'dp-sips\[text\]'"):
        open_source(TABLE, user="u", item=words("i"))


def test_spark_is_told_to_use_a_file() -> None:
    schema = TABLE.select(["u", "i"]).schema
    feed = Feed("the Spark data frame", schema, (), lambda t: t, frame=object())
    with pytest.raises(UsageError, match=r"Spark reads the Spark data frame.*dp-sips tokenize"):
        texts.tokenized(feed, {}, words("i"), Progress(show=False))
