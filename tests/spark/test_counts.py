"""Counts of a Spark table: a table comes out, noise is drawn once, and nothing is left behind."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips import count_users

TEST: dict[str, Any] = {
    "user": "u", "item": "i", "epsilon": 3, "delta": 1e-3, "max_items": 3, "other": True,
    "seed": 1, "insecure_test": True,
}  # fmt: skip


def visits() -> Any:
    random = np.random.default_rng(2)
    return pa.table({"u": random.integers(0, 400, 3000), "i": random.zipf(1.5, 3000) % 300})


def test_a_table_in_and_a_table_out(spark: Any) -> None:
    data = visits()
    counts = count_users(spark.createDataFrame(data), **TEST)
    expected = count_users(data, **TEST).table
    assert counts.table.columns == ["i", "users"]
    assert counts.table.schema["users"].dataType.simpleString() == "bigint"
    # Collected twice: the noise is in the table, not in its plan.
    for _ in range(2):
        rows = [(row.i, row.users) for row in counts.table.collect()]
        assert rows == list(zip(*expected.to_pydict().values(), strict=True))
    assert counts.selection.items.columns == ["i"]


def test_keys_in_a_spark_table(spark: Any) -> None:
    frame, keys = spark.createDataFrame(visits()), spark.createDataFrame([(1,), (7,)], "i long")
    counts = count_users(frame, **TEST, keys=keys)
    assert [row.i for row in counts.table.collect()] == [1, 7, None]


def test_a_report_of_a_spark_table(spark: Any, tmp_path: Path) -> None:
    counts = count_users(spark.createDataFrame(visits()), **TEST)
    counts.report(tmp_path / "counts.html")
    counts.selection.report(tmp_path / "items.html")
    first = counts.table.collect()[0]
    page = (tmp_path / "counts.html").read_text("utf-8")
    assert f"<tr><td><bdi>{first.i}</bdi></td><td><bdi>{first.users}</bdi></td></tr>" in page


def test_nothing_stays_in_the_cache(spark: Any) -> None:
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    count_users(spark.createDataFrame(visits()), **TEST)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
