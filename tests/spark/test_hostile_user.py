"""What leaves a run on Spark is a function of the released items, whatever one user has.

For each kind of column, on the cluster and on the driver: the table that comes out, its schema with
metadata, order and partitions, the certificate, logs, warnings, stdout and stderr are the same with
and without a hostile user. ε = 28 makes items of all users as good as certain, and nothing of the
hostile user's comes out with this seed.
"""

import datetime as dt
import json
import logging
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dp_sips import DpSipsError, InputError, select_partitions
from dp_sips.engines.spark import SparkEngine

OPTIONS: dict[str, Any] = {
    "epsilon": 28, "delta": 1e-6, "mechanism": "weighted-gaussian", "max_items": 4,
    "nulls": "drop", "seed": 1, "insecure_test": True,
}  # fmt: skip
USERS = 40
ENGINES = {"cluster": SparkEngine(driver_bytes=0), "driver": SparkEngine(driver_bytes=10**9)}
KINDS: dict[str, tuple[list[Any], list[Any]]] = {
    "string": (
        ["7", "007", "NULL", "né"],
        ["", "8", "NaN", "\x00", "\ufeff", "\u202e", "𝄞", "y" * 70_000, "2024-05-01", None],
    ),
    "bigint": ([0, -1, 2**40], [2**63 - 1, -(2**63), None, *range(100, 2000)]),
    "date": ([dt.date(2024, 5, 1)], [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "timestamp_ntz": (
        [dt.datetime(2024, 5, 1, 10)],  # noqa: DTZ001
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), None],  # noqa: DTZ001
    ),
    "decimal(38,2)": ([Decimal("1.25"), Decimal(0)], [Decimal(10**35), Decimal("-0.01"), None]),
    "binary": ([b"\0", b"a"], [b"", b"\xff\xfe", b"z" * 5000, None]),
    "array<string>": ([["a", "b"], ["a"]], [[], None, [None], ["x"] * 500, ["", "y" * 70_000]]),
}


def crowd(values: list[Any]) -> list[tuple[Any, Any]]:
    return [(f"user {n}", value) for n in range(USERS) for value in values]


def hostile(values: list[Any], own: list[Any]) -> list[tuple[Any, Any]]:
    """Return a user's rows: odd values, repeats, others' items in another order, and nulls."""
    mixed = [("x" * 5000, value) for value in [*own, *reversed(values), *own]]
    return [*mixed, (None, own[0])]


def left(data: Any, engine: str, capfd: Any, caplog: Any, **options: Any) -> Any:
    """Return all that a run leaves behind."""
    capfd.readouterr()
    caplog.clear()
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.INFO):
        warnings.simplefilter("always")
        made = select_partitions(
            data, user="u", engine=ENGINES[engine], **{"item": "i"} | OPTIONS | options
        )
    shown, logs = capfd.readouterr(), [record.getMessage() for record in caplog.records]
    certificate = json.dumps(made.certificate | {"time": "of the run"})
    own = [log for log in logs if "py4j" not in log]
    return table(made.items), certificate, repr(made), shown, own, [str(w.message) for w in warned]


def table(items: Any) -> tuple[Any, ...]:
    """Return rows in order, and everything that is known of a table beside them."""
    if hasattr(items, "rdd"):
        rows = [tuple(row) for row in items.collect()]
        return rows, items.schema.json(), items.rdd.getNumPartitions()
    return items.to_pylist(), str(items.schema), items.schema.metadata, items.nbytes


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_frames_show_nothing_else(
    kind: str, engine: str, spark: Any, capfd: Any, caplog: Any
) -> None:
    values, own = KINDS[kind]

    def seen(rows: list[Any]) -> Any:
        # Spark knows the size of a persisted table, so that the driver may take it.
        frame = spark.createDataFrame(rows, f"u string, i {kind}").coalesce(1).persist()
        frame.count()
        try:
            return left(frame, engine, capfd, caplog)
        finally:
            frame.unpersist()

    alone = seen(crowd(values))
    assert len(alone[0][0]) == (2 if kind.startswith("array") else len(values))
    assert seen([*hostile(values, own), *crowd(values)]) == alone


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("kind", "engine"),
    [("csv", "driver"), ("jsonl", "driver"), ("jsonl", "cluster"), ("parquet", "driver")],
)
def test_files_show_nothing_else(
    kind: str, engine: str, tmp_path: Path, capfd: Any, caplog: Any
) -> None:
    """The hostile user is in both files."""
    values = ["7", "007", "a,b", '"quoted"']
    own = ["8", "1.5", "2024-05-01", "true", "y" * 5000, "\\N", "two\nlines"]

    def seen(rows: list[Any]) -> Any:
        for n in range(2):
            write(rows[n::2], tmp_path / f"{n}.{kind}")
        return left(f"{tmp_path}/*.{kind}", engine, capfd, caplog)

    alone = seen(crowd(values))
    assert len(alone[0][0]) == len(values)
    assert seen([*hostile(values, own), *crowd(values)]) == alone


def write(rows: list[Any], path: Path) -> None:
    users, items = zip(*rows, strict=True)
    made = pa.table({"u": pa.array(users, pa.string()), "i": pa.array(items, pa.string())})
    if path.suffix == ".csv":
        pacsv.write_csv(made, path)
    elif path.suffix == ".parquet":
        pq.write_table(made, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in made.to_pylist()))


def test_a_difference_would_show(spark: Any, capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    """Were items in the order of first appearance, a user who is first would set it."""
    values, own = KINDS["string"]
    monkeypatch.setattr("dp_sips.select.sorted_items", lambda items, _: items)
    seen = []
    for rows in (crowd(values), [*hostile(values, own), *crowd(values)]):
        frame = spark.createDataFrame(rows, "u string, i string").coalesce(1).persist()
        frame.count()
        seen.append(left(frame, "driver", capfd, caplog))
        frame.unpersist()
    assert seen[0] != seen[1]
    assert sorted(seen[0][0][0]) == sorted(seen[1][0][0])


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_show_no_value_and_no_row(engine: str, spark: Any) -> None:
    """Where rows end a run, the message is the same wherever they stand and whatever they hold."""
    said = set()
    for secret in ("31ff", "fffe32"):
        for place in (3, 97):
            odd = f"if(id = {place}, cast(unhex('{secret}') AS string), 'a')"
            frame = spark.range(100).selectExpr("id AS u", f"{odd} AS i")
            with pytest.raises(InputError) as caught:
                select_partitions(frame, user="u", item="i", engine=ENGINES[engine], **OPTIONS)
            said.add(str(caught.value))
    assert len(said) == 1
    assert "UTF-8" in said.pop()


def test_a_type_is_refused_whatever_its_values(spark: Any) -> None:
    said = set()
    for value in ("1.5D", "double('NaN')", "cast(NULL AS double)"):
        frame = spark.range(3).selectExpr("id AS u", f"{value} AS i")
        with pytest.raises(DpSipsError) as caught:
            select_partitions(frame, user="u", item="i", engine=ENGINES["driver"], **OPTIONS)
        said.add(str(caught.value))
    assert len(said) == 1
