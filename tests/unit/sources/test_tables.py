"""Tables of every library come in as the same rows and go out as the same kind and dtypes."""

import datetime as dt
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
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
from pandas.io.pytables import TableIterator
from pandas.io.sas.sas7bdat import SAS7BDATReader
from pandas.io.sas.sas_xport import XportReader
from pandas.testing import assert_frame_equal

from dp_sips.errors import InputError, UsageError
from dp_sips.sources import open_source

DATA = {"z": [0.5, 1.5, 2.5], "i": ["a", "b", "a"], "u": [1, 2, 1]}
TABLE = pa.table(DATA)
ROWS = Counter({(1, "a"): 2, (2, "b"): 1})


class Capsule:
    """An object of an unknown library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


class Frame(pd.DataFrame):
    """What other libraries make of pandas."""


TABLES: dict[str, Any] = {
    "table": lambda: TABLE,
    "record batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "dataset": lambda: pads.dataset(TABLE),
    "scanner": lambda: pads.dataset(TABLE).scanner(columns=["i", "u"]),
    "capsule": Capsule,
    "pandas": lambda: pd.DataFrame(DATA, index=[5, 5, 7]),
    "pandas subclass": lambda: Frame(DATA),
    "polars": lambda: pl.DataFrame(DATA),
    "lazy": lambda: pl.LazyFrame(DATA),
    "duckdb": lambda: duckdb.connect().from_arrow(TABLE),
}


@pytest.mark.parametrize("kind", TABLES)
def test_each_kind_gives_the_same_rows(kind: str, read: Any) -> None:
    assert read(TABLES[kind]()) == ROWS


@pytest.mark.parametrize("kind", TABLES)
def test_each_kind_lists_its_columns(kind: str) -> None:
    with pytest.raises(UsageError, match=r"user= must name a column of the .*'i', 'u'"):
        open_source(TABLES[kind](), user=None, item="i")
    with pytest.raises(UsageError, match=r"item= must name a column of the .*'i', 'u'"):
        open_source(TABLES[kind](), user="u", item=None)
    with pytest.raises(InputError, match=r"no column 'I' in the .*did you mean 'i'"):
        open_source(TABLES[kind](), user="u", item="I")


@pytest.mark.parametrize("kind", ["table", "record batch", "reader", "dataset", "capsule"])
def test_arrow_objects_restore_to_a_table(kind: str, items: Any) -> None:
    source = open_source(TABLES[kind](), user="u", item="i")
    assert source.restore(items(source, ["a"])) == pa.table({"i": ["a"]})


def test_rows_are_known_for_tables_in_memory() -> None:
    known = {kind: open_source(make(), user="u", item="i").rows() for kind, make in TABLES.items()}
    in_memory = {"table", "record batch", "pandas", "pandas subclass", "polars"}
    assert {kind for kind, rows in known.items() if rows == 3} == in_memory
    assert {kind for kind, rows in known.items() if rows is None} == known.keys() - in_memory


def test_several_item_columns_keep_their_order_and_names(read: Any) -> None:
    table = pa.table({"user": [7], "item": ["x"], "u": [1]})
    source = open_source(table, user="u", item=["user", "item"])
    assert source.item_schema == pa.schema({"user": pa.int64(), "item": pa.string()})
    assert read(table, item=("user", "item")) == Counter([(1, 7, "x")])
    assert read(table, item=["item", "user"]) == Counter([(1, "x", 7)])
    assert source.restore(table.select(["user", "item"])) == table.select(["user", "item"])


@pytest.mark.parametrize(
    ("user", "item", "message"),
    [
        ("u", "u", "same column, 'u'"),
        ("u", ["i", "u"], "same column, 'u'"),
        ("u", ["i", "i"], "'i' twice"),
        ("u", [1], "column names are text, got 1"),
        (1, "i", "column names are text, got 1"),
        ("u", [], "item= must name a column"),
        ("u", 3, "item must name a column, or several in a list, got 3"),
    ],
)
def test_names_that_make_no_sense(user: Any, item: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_source(TABLE, user=user, item=item)


def test_ambiguous_names(read: Any) -> None:
    table = pa.table([[1], [2], ["a"]], names=["u", "u", "i"])
    with pytest.raises(InputError, match="the table has 2 columns 'u'"):
        read(table)


def test_a_reader_is_read_lazily_and_once() -> None:
    taken = []

    def produce() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            taken.append(number)
            yield pa.record_batch({"u": [number], "i": [number]})

    schema = pa.schema({"u": pa.int64(), "i": pa.int64()})
    reader = pa.RecordBatchReader.from_batches(schema, produce())
    source = open_source(reader, user="u", item="i")
    assert taken == []
    batches = source.batches()
    next(batches)
    assert len(taken) < 5
    assert len(list(batches)) == 99
    with pytest.raises(UsageError, match="RecordBatchReader was read already"):
        list(source.batches())


def test_tables_can_be_read_twice(count: Any) -> None:
    for kind in TABLES.keys() - {"reader", "scanner", "capsule"}:
        source = open_source(TABLES[kind](), user="u", item="i")
        assert count(source) == count(source) == ROWS


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "duckdb"])
def test_large_tables_come_in_batches(kind: str) -> None:
    makers: dict[str, Any] = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "lazy": pl.LazyFrame,
        "duckdb": lambda data: duckdb.connect().from_arrow(pa.table(data)),
    }
    data = makers[kind]({"u": list(range(300_000)), "i": list(range(300_000))})
    sizes = [batch.num_rows for batch in open_source(data, user="u", item="i").batches()]
    assert sum(sizes) == 300_000
    assert max(sizes) <= 1 << 18


PANDAS: dict[str, Any] = {
    "str": pd.Series(["a", None], dtype="str"),
    "object": pd.Series(["a", None], dtype=object),
    "string": pd.Series(["a", None], dtype="string"),
    "int32": pd.Series([1, 2], dtype="int32"),
    "uint8": pd.Series([1, 2], dtype="uint8"),
    "Int64": pd.Series([2**62 + 1, None], dtype="Int64"),
    "object ints": pd.Series([2**62 + 1, None], dtype=object),
    "bool": pd.Series([True, False]),
    "boolean": pd.Series([True, None], dtype="boolean"),
    "datetime": pd.Series(pd.DatetimeIndex(["2024-05-01", pd.NaT])),
    "datetime ns tz": pd.Series(
        pd.DatetimeIndex(["2024-05-01", pd.NaT]).as_unit("ns").tz_localize("Europe/Paris")
    ),
    "timedelta": pd.Series(pd.to_timedelta([1, 2], unit="s")),
    "date": pd.Series([dt.date(2024, 5, 1), None], dtype=object),
    "decimal": pd.Series([Decimal("1.25"), None], dtype=object),
    "bytes": pd.Series([b"a", None], dtype=object),
    "category": pd.Series(["z", "b", None], dtype=pd.CategoricalDtype(["z", "b"], ordered=True)),
    "category of ints": pd.Series([3, 1], dtype="category"),
    "arrow": pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string())),
    "arrow date": pd.Series([dt.date(2024, 5, 1)], dtype=pd.ArrowDtype(pa.date32())),
    "period": pd.Series(pd.period_range("2024-01", periods=2, freq="M")),
}


@pytest.mark.parametrize("kind", PANDAS)
def test_pandas_dtypes_return(kind: str) -> None:
    frame = pd.DataFrame({"i": PANDAS[kind]})
    source = open_source(
        frame.assign(u=1).set_index(frame.index + 5), user="u", item="i", nulls="group"
    )
    (batch,) = source.batches()
    released = pa.table([batch.column(1).cast(source.item_schema.types[0])], names=["i"])
    assert_frame_equal(source.restore(released), frame)


def test_pandas_categories_that_are_not_released_stay_secret(items: Any) -> None:
    frame = pd.DataFrame({"u": [1, 2, 3], "i": ["q", "b", "secret"]}).astype({"i": "category"})
    source = open_source(frame, user="u", item="i")
    released = source.restore(items(source, ["b", "q"]))["i"]
    assert list(released) == ["b", "q"]
    assert list(released.cat.categories) == ["b", "q"]
    empty = source.restore(items(source, []))["i"]
    assert len(empty.cat.categories) == 0


def test_pandas_categories_show_no_order_of_appearance_and_keep_their_own(items: Any) -> None:
    for ordered, kept in ((False, ["b", "q"]), (True, ["q", "b"])):
        dtype = pd.CategoricalDtype(["q", "secret", "b"], ordered=ordered)
        frame = pd.DataFrame({"u": [1, 2], "i": pd.Series(["q", "b"], dtype=dtype)})
        source = open_source(frame, user="u", item="i")
        released = source.restore(items(source, ["b", "q"]))["i"]
        assert list(released.cat.categories) == kept
        assert released.cat.ordered == ordered


def test_pandas_lists_become_items(read: Any, items: Any) -> None:
    frame = pd.DataFrame({"u": [1, 2], "i": [["a", "b"], []]})
    assert read(frame) == Counter([(1, "a"), (1, "b")])
    source = open_source(frame, user="u", item="i")
    expected = pd.DataFrame({"i": ["a"]}, dtype=object)
    assert_frame_equal(source.restore(items(source, ["a"])), expected)
    kind = pd.ArrowDtype(pa.list_(pa.int32()))
    source = open_source(frame.assign(i=pd.Series([[1], [2]], dtype=kind)), user="u", item="i")
    assert source.restore(items(source, [1])).dtypes["i"] == pd.ArrowDtype(pa.int32())


@pytest.mark.parametrize(
    "values", [["secret", 1.5], [object(), object()], [2**80, 1], ["\ud800", "a"]]
)
def test_pandas_columns_that_are_no_plain_values(values: list[Any], read: Any) -> None:
    frame = pd.DataFrame({"u": [1, 2], "i": pd.Series(values, dtype=object)})
    with pytest.raises(InputError, match="column 'i' of the data frame") as caught:
        read(frame)
    assert "secret" not in str(caught.value)


def test_pandas_floats_and_odd_names(read: Any) -> None:
    gap = pd.DataFrame({"u": [1, None], "i": [1, 2]})
    with pytest.raises(InputError, match=r"no dependable equality.*\.astype\(\"Int64\"\)"):
        read(gap)
    assert read(gap.astype({"u": "Int64"}), nulls="drop") == Counter([(1, 1)])
    assert read(gap, nulls="drop", types={"u": "int64"}) == Counter([(1, 1)])
    with pytest.raises(InputError, match="no column 'i'"):
        read(pd.DataFrame({"u": [1], 0: [1]}))


POLARS: dict[str, Any] = {
    "string": pl.Series(["a", None]),
    "uint8": pl.Series([1, None], dtype=pl.UInt8),
    "bool": pl.Series([True, None]),
    "date": pl.Series([dt.date(2024, 5, 1), None]),
    "datetime": pl.Series([dt.datetime(2024, 5, 1, tzinfo=dt.UTC), None]),
    "time": pl.Series([dt.time(12), None]),
    "duration": pl.Series([dt.timedelta(1), None]),
    "decimal": pl.Series([Decimal("1.25"), None]),
    "binary": pl.Series([b"a", None]),
    "enum": pl.Series(["b", None], dtype=pl.Enum(["b"])),
    "null": pl.Series([None, None]),
}


@pytest.mark.parametrize("kind", POLARS)
@pytest.mark.parametrize("lazy", [False, True])
def test_polars_dtypes_return(kind: str, lazy: bool) -> None:  # noqa: FBT001
    frame = pl.DataFrame({"i": POLARS[kind]})
    whole = frame.with_columns(u=1)
    source = open_source(whole.lazy() if lazy else whole, user="u", item="i", nulls="group")
    released = pa.Table.from_batches(source.batches()).select(["i"])
    assert released.schema == source.item_schema
    restored = source.restore(released)
    assert isinstance(restored, pl.LazyFrame if lazy else pl.DataFrame)
    assert restored.lazy().collect().equals(frame)
    assert restored.lazy().collect_schema() == frame.schema


@pytest.mark.parametrize("kind", [pl.List(pl.Int16), pl.Array(pl.Int16, 2)])
def test_polars_lists_become_items(kind: Any, read: Any, items: Any) -> None:
    frame = pl.DataFrame({"u": [1, 2], "i": pl.Series([[1, 2], None], dtype=kind)})
    assert read(frame, nulls="drop") == Counter([(1, 1), (1, 2)])
    source = open_source(frame, user="u", item="i")
    assert source.restore(items(source, [1])).schema == {"i": pl.Int16}


@pytest.mark.parametrize("lists", [False, True])
def test_polars_categories_that_are_not_released_stay_secret(lists: bool, items: Any) -> None:  # noqa: FBT001
    values = pl.Series(["b", "q", "secret"], dtype=pl.Enum(["q", "secret", "b", "unseen"]))
    frame = pl.DataFrame({"u": [1, 2, 3], "i": values})
    frame = frame.with_columns(pl.concat_list("i")) if lists else frame
    for data in (frame, frame.lazy()):
        source = open_source(data, user="u", item="i")
        for released, kept in ((["b", "q"], ["q", "b"]), ([], [])):
            restored = source.restore(items(source, released)).lazy().collect()
            assert restored["i"].to_list() == released
            assert restored.schema == {"i": pl.Enum(kept)}


def test_polars_categoricals_become_enums(items: Any) -> None:
    """Polars numbers the categories of a process in the order in which it meets them."""
    for values in (["q", "secret", "b"], ["b", "secret", "q"]):
        series = pl.Series(values, dtype=pl.Categorical)
        source = open_source(pl.DataFrame({"u": [1, 2, 3], "i": series}), user="u", item="i")
        released = source.restore(items(source, ["b", "q"]))
        assert released.schema == {"i": pl.Enum(["b", "q"])}
        assert released["i"].to_physical().to_list() == [0, 1]
        assert released["i"].to_list() == ["b", "q"]


@pytest.mark.parametrize("kind", [pl.Object, pl.Int128, pl.List(pl.Int128)])
def test_polars_types_that_arrow_lacks(kind: Any, read: Any) -> None:
    frame = pl.DataFrame({"u": pl.Series([1]), "i": pl.Series([None], dtype=kind)})
    with pytest.raises(InputError, match="column 'i' of the data frame has the type"):
        read(frame)


def test_lazy_queries_that_fail(read: Any) -> None:
    with pytest.raises(InputError, match="the lazy frame cannot be read"):
        read(pl.scan_parquet("/nowhere/a.parquet"))
    late = pl.LazyFrame({"u": [1], "i": ["secret"]}).with_columns(pl.col("i").cast(pl.Int64))
    with pytest.raises(InputError, match="the lazy frame cannot be read") as caught:
        read(late)
    assert "secret" not in str(caught.value)


def test_duckdb_items_return_to_the_same_connection(items: Any) -> None:
    connection = duckdb.connect()
    connection.sql("CREATE TABLE t AS SELECT 1 AS u, 'a'::ENUM('a', 'b') AS i, 3 AS \"odd name\"")
    source = open_source(connection.table("t"), user="u", item="i")
    released = source.restore(items(source, ["a"]))
    joined = connection.sql("SELECT t.u, released.i FROM released JOIN t ON t.i = released.i")
    assert joined.fetchall() == [(1, "a")]
    assert released.columns == ["i"]


@pytest.mark.parametrize("kind", ["TABLE", "VIEW", "TEMP TABLE"])
def test_duckdb_never_takes_a_table_of_the_database_for_the_items(kind: str, items: Any) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE {kind} items AS SELECT 1 AS u, 'secret' AS i, 3 AS n")
    source = open_source(connection.table("items"), user="u", item="i")
    released = source.restore(items(source, ["a"]))
    connection.execute("CREATE TABLE released AS SELECT 'secret' AS i")
    assert (released.columns, released.fetchall()) == (["i"], [("a",)])
    tables = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
    assert sorted(tables) == [("items",), ("released",)]


@pytest.mark.parametrize("option", ["python_enable_replacements", "enable_external_access"])
def test_duckdb_connections_that_take_no_table_in_are_refused_at_once(option: str) -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS u, 'a' AS i")
    connection.execute(f"SET {option} = false")
    with pytest.raises(InputError, match=r"the relation .*pass relation\.to_arrow_table\(\)"):
        open_source(relation, user="u", item="i")


def test_duckdb_columns_that_would_be_renamed_are_refused_at_once() -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS u, 'a' AS i, 'b' AS I")
    with pytest.raises(InputError, match="the relation"):
        open_source(relation, user="u", item=["i", "I"])


def test_duckdb_connections_that_are_closed(items: Any) -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS u, 'a' AS i")
    source = open_source(relation, user="u", item="i")
    released = items(source, ["a"])
    connection.close()
    closed = r"the relation cannot be read: its connection is closed; keep that open until"
    for step in (
        lambda: open_source(relation, user="u", item="i"),
        lambda: list(source.batches()),
        lambda: source.restore(released),
    ):
        with pytest.raises(InputError, match=closed):
            step()


def test_duckdb_odd_names_lists_and_failures(read: Any) -> None:
    connection = duckdb.connect()
    odd = connection.sql('SELECT 1 AS "my ""user""", [1, 2] AS "select"')
    assert read(odd, user='my "user"', item="select") == Counter([(1, 1), (1, 2)])
    wrong = connection.sql("SELECT 1 AS u, CAST(i AS INT) AS i FROM (VALUES ('secret')) v(i)")
    with pytest.raises(InputError, match="the relation cannot be read") as caught:
        read(wrong)
    assert "secret" not in str(caught.value)


def test_files_that_pandas_would_read_in_chunks(tmp_path: Path) -> None:
    csv, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    csv.write_text("u,i\n1,a\n")
    lines.write_text('{"u": 1, "i": "a"}\n')
    stata = tmp_path / "a.dta"
    pd.read_csv(csv).to_stata(stata, write_index=False)
    for names in ({"user": "u", "item": "i"}, {"user": None, "item": None}):
        with (
            pd.read_csv(csv, chunksize=1) as rows,
            pd.read_json(lines, lines=True, chunksize=1) as objects,
            pd.read_stata(stata, chunksize=1) as labelled,
        ):
            for reader in (rows, objects, labelled):
                with pytest.raises(UsageError, match="chunksize=: pass the path of the file itse"):
                    open_source(reader, **names)


@pytest.mark.parametrize("kind", [SAS7BDATReader, XportReader, TableIterator])
def test_readers_of_other_formats(kind: type) -> None:
    with pytest.raises(UsageError, match="neither CSV nor JSON lines, leave chunksize= out"):
        open_source(object.__new__(kind), user="u", item="i")


def test_a_connection_is_no_table() -> None:
    with pytest.raises(UsageError, match="a DuckDB connection has many tables"):
        open_source(duckdb.connect(), user="u", item="i")


@pytest.mark.parametrize("data", [7, None, b"a.parquet", object()])
def test_data_of_no_known_kind(data: Any) -> None:
    with pytest.raises(UsageError, match=f"cannot read data of type {type(data).__name__}"):
        open_source(data, user="u", item="i")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_no_library_is_imported_for_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    (pacsv.write_csv if name == "a.csv" else pq.write_table)(TABLE, path)
    script = (
        "import sys; from dp_sips.sources import open_source;"
        f"list(open_source({str(path)!r}, user='u', item='i', nulls='drop').batches());"
        "print(sorted({'pandas', 'polars', 'duckdb'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_a_failed_query_says_how_to_see_why(tmp_path: Path, read: Any) -> None:
    with pytest.raises(InputError, match=r"\(FileNotFoundError\); run \.collect\(\) on it to see"):
        read(pl.scan_csv(tmp_path / "nothing.csv"))
    relation: Any = duckdb.sql("SELECT 1 AS u, CAST(x AS INT) AS i FROM (VALUES ('SECRET')) t(x)")
    with pytest.raises(InputError, match=r"run \.to_arrow_table\(\) on it to see why") as caught:
        read(relation)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(duckdb.Error, match="SECRET"):
        relation.to_arrow_table()


@pytest.mark.parametrize("column", [pd.Series([1]), pl.Series([1]), pa.chunked_array([[1]])])
def test_a_column_is_not_a_table(column: Any, read: Any) -> None:
    with pytest.raises(
        InputError, match=r"is not a table with columns: pass a data frame, .*index"
    ):
        read(column)


def test_a_user_in_the_index(read: Any) -> None:
    frame = pd.DataFrame({"u": [1], "i": ["a"]})
    with pytest.raises(InputError, match=r"'u' is in the index of .*: pass frame\.reset_index\(\)"):
        read(frame.set_index("u"))
    assert read(frame.set_index("u").reset_index()) == Counter([(1, "a")])


@pytest.mark.parametrize("names", [{"user": 0, "item": 1}, {"user": 0, "item": "1"}])
def test_numbers_as_names_of_columns(names: dict[str, Any], read: Any) -> None:
    frame = pd.DataFrame({0: [7], 1: ["a"]})
    with pytest.raises(
        UsageError, match=r"as text first, as frame\.rename\(columns=str\), and say"
    ):
        read(frame, **names)
    assert read(frame.rename(columns=str), user="0", item="1") == Counter([(7, "a")])


def test_numbers_as_names_of_columns_of_a_mapping(read: Any) -> None:
    with pytest.raises(UsageError, match=r'got 0: name the columns as text first, and say "0"'):
        read({0: [7], "i": ["a"]}, user=0)
