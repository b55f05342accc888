"""Spark tables in, Spark tables out; bad input as in the memory engine; nothing left behind."""

import datetime as dt
import os
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import RDD

from dp_sips import Cumulative, InputError, UsageError, select_partitions
from dp_sips.engines.spark import SparkEngine
from dp_sips.engines.spark.contributions import SparkContributions

TEST: dict[str, Any] = {
    "rho": 0.5, "delta": 0.01, "seed": 1, "insecure_test": True, "mechanism": "weighted-gaussian",
}  # fmt: skip
NAMES: dict[str, Any] = {"user": "u", "item": "i"}
LONG = "longer than the fifteen bytes of a block"


def words(rows: int = 4000) -> Any:
    random = np.random.default_rng(2)
    items = random.zipf(1.4, rows) % 200
    texts = [f"{n} {LONG}" if n % 2 else str(n) for n in items]
    return pa.table({"u": random.integers(0, 300, rows), "i": texts})


def test_a_table_in_and_a_table_out(spark: Any) -> None:
    data = words()
    frame = spark.createDataFrame(data)
    released = select_partitions(frame, max_items=5, **NAMES, **TEST).items
    expected = select_partitions(data, max_items=5, **NAMES, **TEST).items
    assert released.schema["i"].dataType.simpleString() == "string"
    assert [row.i for row in released.collect()] == expected["i"].to_pylist()
    assert released.columns == ["i"]


def test_as_many_partitions_as_spark_has_by_default(spark: Any) -> None:
    """Other tests have few, so that they take less time."""
    name = "spark.sql.shuffle.partitions"
    few = spark.conf.get(name)
    spark.conf.set(name, "200")
    try:
        released = select_partitions(spark.createDataFrame(words()), **NAMES, **TEST).items
    finally:
        spark.conf.set(name, few)
    expected = select_partitions(words(), **NAMES, **TEST).items["i"].to_pylist()
    assert [row.i for row in released.collect()] == expected


def test_the_result_needs_no_second_run(spark: Any) -> None:
    frame = spark.createDataFrame(words())
    released = select_partitions(frame, **NAMES, **TEST).items
    plan = released._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" not in plan
    assert "Exchange" not in plan


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("tinyint", [1, -2, 127]),
        ("smallint", [1, -2, 300]),
        ("int", [1, -2, 2**31 - 1]),
        ("bigint", [1, -(2**63), 2**63 - 1]),
        ("boolean", [True, False]),
        ("date", [dt.date(1950, 1, 1), dt.date(2024, 2, 29)]),
        ("timestamp", [dt.datetime(1969, 5, 1, 1, 2, 3), dt.datetime(2024, 2, 29)]),  # noqa: DTZ001
        ("timestamp_ntz", [dt.datetime(2024, 2, 29, 1, 1, 1, 5)]),  # noqa: DTZ001
        ("decimal(12,2)", [Decimal("1.25"), Decimal("-3.00")]),
        ("binary", [b"\0", b"\xff" * 40]),
        ("string", ["", "a", LONG]),
    ],
)
def test_kinds_of_items(kind: str, values: list[Any], spark: Any) -> None:
    rows = [(user, value) for user in range(60) for value in values]
    frame = spark.createDataFrame(rows, f"u int, i {kind}")
    released = select_partitions(frame, **NAMES, **TEST).items
    assert released.schema["i"].dataType.simpleString() == kind
    found = [bytes(row.i) if kind == "binary" else row.i for row in released.collect()]
    assert found == sorted(values)


def test_several_columns_and_nulls_as_a_group(spark: Any) -> None:
    rows = [(str(user), n % 3 or None, "ab"[n % 2]) for user in range(80) for n in range(6)]
    frame = spark.createDataFrame(rows, "u string, n int, `a.b` string")
    columns: dict[str, Any] = {"user": "u", "item": ["n", "a.b"], "nulls": "group"}
    released = select_partitions(frame, **columns, **TEST).items
    expected = sorted({(n or 9, word) for _, n, word in rows})
    assert [(row[0] or 9, row[1]) for row in released.collect()] == expected


def test_array_columns(spark: Any) -> None:
    rows = [(user, ["a", "b", "b", None]) for user in range(80)] + [(999, [])]
    frame = spark.createDataFrame(rows, "u int, i array<string>")
    released = select_partitions(frame, nulls="drop", **NAMES, **TEST).items
    assert [row.i for row in released.collect()] == ["a", "b"]


def test_bad_input_is_named(spark: Any) -> None:
    frame = spark.createDataFrame(
        [(1, 1.5, "a", {"k": 1})], "u int, x double, word string, m map<string,int>"
    )
    cases: list[tuple[dict[str, Any], str]] = [
        ({"user": "u", "item": "wrod"}, "no column 'wrod' in the Spark data frame: did you mean"),
        ({"user": "u", "item": "x"}, "has the type double: cast it first"),
        ({"user": "u", "item": "m"}, "which cannot be a user or an item"),
    ]
    for columns, message in cases:
        with pytest.raises(InputError, match=message):
            select_partitions(frame, **columns, **TEST)


def test_nulls_and_empty_tables(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, None)], "u int, i string")
    with pytest.raises(InputError, match=r"^column 'i' of the Spark data frame has nulls: nulls="):
        select_partitions(frame, **NAMES, **TEST)
    assert select_partitions(frame.where("u > 5"), **NAMES, **TEST).items.isEmpty()
    none_left = select_partitions(frame.where("u = 2"), nulls="drop", **NAMES, **TEST)
    assert none_left.items.isEmpty()


def test_nothing_is_left_in_the_session(spark: Any) -> None:
    def state() -> Any:
        held = spark.sparkContext._jsc.getPersistentRDDs().size()
        settings = sorted(spark.conf.getAll.items())
        return held, settings, spark.catalog.listTables(), RDD.toDF, spark.getActiveSession()

    frame = spark.createDataFrame(words()).persist()
    frame.count()
    before = state()
    select_partitions(frame, **NAMES, **TEST)
    select_partitions(frame, engine=SparkEngine(broadcast_items=0), **NAMES, **TEST)
    with pytest.raises(InputError):
        select_partitions(frame.selectExpr("u", "nullif(i, '2') AS i"), **NAMES, **TEST)
    assert state() == before
    assert frame.is_cached
    frame.unpersist()


def test_files_are_read_by_spark(spark: Any, tmp_path: Any) -> None:
    del spark
    data = words()
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    pq.write_table(data, tmp_path / "a.parquet")
    pacsv.write_csv(data, tmp_path / "a.csv")
    expected = select_partitions(data, **NAMES, **TEST).items
    for name in ("a.parquet", "a.csv"):
        path = str(tmp_path / name)
        types = {"u": "int64"} if name == "a.csv" else None
        released = select_partitions(path, engine="spark", types=types, **NAMES, **TEST).items
        assert released["i"].to_pylist() == expected["i"].to_pylist()
    with pytest.raises(InputError, match="no such file"):
        select_partitions(str(tmp_path / "b.csv"), engine="spark", **NAMES, **TEST)


@pytest.mark.parametrize("paths", [list, tuple])
def test_csv_has_the_quotes_of_the_memory_engine(paths: Any, spark: Any, tmp_path: Any) -> None:
    del spark
    fields = ['"say ""hi"""', '"ends in \\"', '"two\nlines"', '"a,b"']
    rows = [f"{user},{field}" for user in range(40) for field in fields]
    (tmp_path / "blob").write_text("\n".join(["u,i", *rows]) + "\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "blob")
    files = paths([str(tmp_path / "link.csv")])
    options = NAMES | TEST | {"rho": 50.0}
    released = [
        select_partitions(files, engine=engine, **options).items["i"].to_pylist()
        for engine in ("spark", "memory")
    ]
    assert released[0] == released[1] == ["a,b", "ends in \\", 'say "hi"', "two\nlines"]


def test_csv_that_is_not_as_usual(spark: Any, tmp_path: Any) -> None:
    from dp_sips import CsvFiles

    del spark

    rows = "".join(f"{user}|{item}\n" for user in range(300) for item in ("thé", f"own {user}"))
    (tmp_path / "rows.txt").write_text(rows, encoding="latin-1")
    unusual: dict[str, Any] = {"delimiter": "|", "header": False}
    files = CsvFiles(str(tmp_path / "rows.txt"), encoding="latin-1", **unusual)
    release = select_partitions(files, user="1", item="2", engine="spark", **TEST)
    assert release.items["2"].to_pylist() == ["thé"]
    with pytest.raises(UsageError, match="Spark reads CSV in utf-8"):
        select_partitions(
            CsvFiles(str(tmp_path / "rows.txt"), encoding="cp1252", **unusual),
            user="1", item="2", engine="spark", **TEST,
        )  # fmt: skip


def test_csv_files_with_other_headers_are_refused(spark: Any, tmp_path: Any) -> None:
    """Spark would take users for items, and items for users."""
    del spark
    (tmp_path / "a.csv").write_text("u,i\n1,a\n2,a\n")
    (tmp_path / "b.csv").write_text("i,u\na,3\nb,4\n")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    with pytest.raises(InputError, match=r"^the CSV files have different headers: Spark needs"):
        select_partitions(files, engine="spark", **NAMES, **TEST)


@pytest.mark.parametrize("row", ["SECRET", "SECRET,1,2"])
def test_csv_with_a_broken_row_is_named(row: str, spark: Any, tmp_path: Any) -> None:
    del spark
    folder = tmp_path / "day=SECRET" / "a b"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("u,i\n" + "1,a\n" * 50 + f"{row}\n")
    (folder / "b.csv").write_text("u,i\n1,a\n")
    said = (
        r"/day=[^/]*/a b/a\.csv cannot be read: a row has more or fewer fields than the first: put"
    )
    with pytest.raises(InputError, match=said) as caught:
        select_partitions(str(tmp_path), engine="spark", **NAMES, **TEST)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "fix"),
    [
        (
            "s3://box/*.parquet",
            r"s3://: add hadoop-aws \(spark\.jars\.packages\) and write s3a://, or",
        ),
        ("S3A://box/a.csv", r"s3a://: add hadoop-aws \(spark\.jars\.packages\), or"),
        ("https://box/a.csv", "https://: copy the files first, or"),
        ("nothing://box/a.csv", r"nothing://: add one \(spark\.jars\.packages\), or"),
    ],
)
def test_spark_without_a_connector(address: str, fix: str, spark: Any) -> None:
    del spark
    said = f"cannot be read: this Spark has no connector for {fix} leave out engine='spark'$"
    with pytest.raises(InputError, match=said):
        select_partitions(address, engine="spark", **NAMES, **TEST)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_broken_files_are_named(name: str, spark: Any, tmp_path: Any) -> None:
    del spark
    (tmp_path / name).write_text('{"u": 1, "i": "a"}\n{"u": 2, "i": \n')
    with pytest.raises(InputError, match=f"{name} cannot be read"):
        select_partitions(str(tmp_path / name), engine="spark", **NAMES, **TEST)


def test_other_values_in_the_second_reading(spark: Any) -> None:
    def fickle(batches: Any) -> Any:
        for batch in batches:
            word = os.urandom(20).hex()
            yield pa.RecordBatch.from_arrays([batch[0], [word] * len(batch)], names=["u", "i"])

    frame = spark.range(0, 400, 1, 1).mapInArrow(fickle, "u long, i string")
    with pytest.raises(InputError, match=r"^the Spark data frame changed while it was read"):
        select_partitions(frame, **NAMES, **TEST)


def test_no_join_after_the_last_round(spark: Any, monkeypatch: Any) -> None:
    shuffles = []
    shuffle_by_user = SparkContributions._shuffle_by_user

    def counted(self: Any, *rules: Any) -> None:
        shuffles.append(1)
        shuffle_by_user(self, *rules)

    monkeypatch.setattr(SparkContributions, "_shuffle_by_user", counted)
    frame = spark.createDataFrame(words())
    select_partitions(frame, engine=SparkEngine(broadcast_items=0), **NAMES, **TEST)
    assert len(shuffles) == 1


def test_many_found_items_leave_by_a_join(spark: Any) -> None:
    data = words(8000)
    frame = spark.createDataFrame(data)
    for most in (0, 20):
        engine = SparkEngine(broadcast_items=most)
        for mechanism in ("sips", "weighted-gaussian"):
            options = {"max_items": 4, **NAMES, **TEST, "mechanism": mechanism}
            released = select_partitions(frame, engine=engine, **options).items
            expected = select_partitions(data, **options).items
            assert [row.i for row in released.collect()] == expected["i"].to_pylist()


def test_evidence_stays_with_its_items(spark: Any) -> None:
    data = words()
    mechanism = Cumulative(rounds=4)
    options = {"max_items": 4, **NAMES, **TEST, "mechanism": mechanism}
    for engine in (
        SparkEngine(),
        SparkEngine(driver_items=0),
        SparkEngine(driver_items=0, broadcast_items=10),
        SparkEngine(driver_items=len(set(data["i"].to_pylist())) // 2),
    ):
        frame = spark.createDataFrame(data)
        released = select_partitions(frame, engine=engine, **options).items
        expected = select_partitions(data, **options).items
        assert [row.i for row in released.collect()] == expected["i"].to_pylist()


def test_plans_are_shown_on_request(spark: Any, capsys: Any) -> None:
    frame = spark.createDataFrame(words())
    select_partitions(frame, engine=SparkEngine(explain=True), **NAMES, **TEST)
    shown = capsys.readouterr()
    assert "MapInArrow" in shown.err
    assert shown.out == ""


def test_progress_is_shown_round_by_round(spark: Any, capsys: Any) -> None:
    frame = spark.createDataFrame(words())
    select_partitions(frame, progress=True, **NAMES, **TEST | {"mechanism": "sips"})
    shown = capsys.readouterr().err
    assert "laying out by user" in shown
    for done in range(4):
        assert re.search(rf"rounds.* {done}\.00/3\.00", shown)


def test_skew(spark: Any) -> None:
    """One user with most items, one item of every user, and items that only one user has."""
    random = np.random.default_rng(3)
    one_user = [(0, item) for item in range(20_000)]
    one_item = [(user, 7) for user in range(1, 20_000)]
    singles = [(int(user), 10**6 + n) for n, user in enumerate(random.integers(1, 900, 20_000))]
    users, items = zip(*(one_user + one_item + singles), strict=True)
    data = pa.table({"u": users, "i": items})
    for mechanism in ("sips", Cumulative(rounds=4)):
        options = {**NAMES, **TEST, "mechanism": mechanism, "max_items": 50}
        released = select_partitions(spark.createDataFrame(data), **options).items
        expected = select_partitions(data, **options).items
        assert [row.i for row in released.collect()] == expected["i"].to_pylist()
        assert 7 in expected["i"].to_pylist()


def test_options_are_checked() -> None:
    with pytest.raises(
        UsageError, match="broadcast_items must be a whole number of at least 0, got -1"
    ):
        SparkEngine(broadcast_items=-1)
