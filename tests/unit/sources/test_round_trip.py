"""Whatever the kind of input, the rows that go in are the rows that come out."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather

from dp_sips.sources import open_source

USERS = st.integers(-(2**63), 2**63 - 1)
ITEMS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5)
PAIRS = st.lists(st.tuples(USERS, ITEMS), min_size=1, max_size=30)


def _write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def _in(kind: str, table: pa.Table, folder: Path) -> Any:
    path = folder / f"data.{kind}"
    match kind:
        case "pandas":
            return pd.DataFrame(table.to_pydict())
        case "polars":
            return pl.DataFrame(table.to_pydict())
        case "lazy":
            return pl.LazyFrame(table.to_pydict())
        case "duckdb":
            return duckdb.connect().from_arrow(table)
        case "table":
            return table
        case "parquet":
            pq.write_table(table, path, row_group_size=7)
        case "feather":
            feather.write_feather(table, path, chunksize=7)
        case "csv":
            pacsv.write_csv(table, path)
        case _:
            _write_json(table, path)
    return path


@pytest.mark.parametrize(
    "kind",
    ["pandas", "polars", "lazy", "duckdb", "table", "parquet", "feather", "csv", "jsonl"],
)
def test_rows_in_are_rows_out(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp(kind)

    @settings(max_examples=25, deadline=None)
    @given(PAIRS)
    def check(pairs: list[tuple[int, str]]) -> None:
        users, items = zip(*pairs, strict=True)
        table = pa.table({"u": pa.array(users, pa.int64()), "i": pa.array(items, pa.string())})
        data = _in(kind, table, folder)
        rows = _rows(open_source(data, user="u", item="i"))
        # In a CSV file users are text, too.
        assert rows == Counter((str(u) if kind == "csv" else u, i) for u, i in pairs)

    check()


@given(st.dictionaries(USERS, st.lists(ITEMS, max_size=4), min_size=1))
@settings(max_examples=50, deadline=None)
def test_mappings_and_list_columns_agree(baskets: dict[int, list[str]]) -> None:
    expected = Counter((user, item) for user, items in baskets.items() for item in items)
    if not expected:
        return
    lists = pa.table({"u": list(baskets), "i": pa.array(baskets.values(), pa.list_(pa.string()))})
    assert _rows(open_source(baskets, user=None, item=None)) == expected
    assert _rows(open_source(lists, user="u", item="i")) == expected


def _rows(source: Any) -> Counter[tuple[Any, ...]]:
    rows: Counter[tuple[Any, ...]] = Counter()
    for batch in source.batches():
        rows.update(zip(*source.values(batch), strict=True))
    return rows
