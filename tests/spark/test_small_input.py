"""Small input goes to the driver: the same release, to the bit, in few and small jobs."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dp_sips import InputError, count_users, select_partitions
from dp_sips.engines.spark import SparkEngine, chunks, contributions, gathering

DRIVER = SparkEngine(driver_bytes=10_000_000)
TEST: dict[str, Any] = {
    "user": "u", "item": "i", "epsilon": 3, "delta": 1e-3, "seed": 1, "insecure_test": True,
}  # fmt: skip


def words(rows: int = 3000) -> Any:
    random = np.random.default_rng(5)
    items = random.zipf(1.3, rows) % 300
    texts = [f"{n}, which is longer than a block" if n % 2 else str(n) for n in items]
    return pa.table({"u": random.integers(0, 250, rows), "i": texts})


def jobs(spark: Any) -> int:
    """Return how many jobs ran without a group of their own so far."""
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.fixture
def no_rounds_on_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail("the cluster was asked for a round")

    for name in ("weigh", "weigh_by_claim", "spread", "settle"):
        monkeypatch.setattr(contributions.SparkContributions, name, refuse)


@pytest.fixture(params=["known to Spark", "unknown", "unknown, in small chunks"])
def frame(request: Any, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A frame whose size Spark knows, or not, and with users that span chunks."""
    made = spark.createDataFrame(words())
    if request.param == "known to Spark":
        return made
    if request.param != "unknown":
        # On the workers, chunks have their usual size: the driver cuts them up.
        monkeypatch.setattr(gathering, "read_chunks", lambda rows: in_pieces(rows, 7))
    return spark.createDataFrame(made.rdd, made.schema)


def in_pieces(batches: Any, size: int) -> Any:
    """Stream chunks of a few pairs, as if users had very many items."""
    for chunk in chunks.read_chunks(batches):
        starts = np.append(0, chunk.ends[:-1]).astype(int)
        for begin in range(0, len(chunk.items), size):
            end = min(begin + size, len(chunk.items))
            held = np.flatnonzero((chunk.ends > begin) & (starts < end))
            ends = np.minimum(chunk.ends[held], end).astype(np.uint64) - np.uint64(begin)
            continues = bool(chunk.ends[held[-1]] > end)
            items = chunk.items[begin:end]
            yield chunks.Chunk(chunk.users[held], ends, chunk.blocks, items, continues)


CASES: dict[str, dict[str, Any]] = {
    "sips": {"min_users": 2},
    "cumulative": {"public_items": ["2", "4"]},
    "matching": {},
    "auto": {},
}


@pytest.mark.usefixtures("no_rounds_on_the_cluster")
@pytest.mark.parametrize("mechanism", CASES)
def test_same_release(mechanism: str, frame: Any) -> None:
    options = TEST | {"mechanism": mechanism} | CASES[mechanism]
    released = select_partitions(frame, engine=DRIVER, **options).items
    expected = select_partitions(words(), **options).items["i"].to_pylist()
    assert [row.i for row in released.collect()] == expected
    assert 10 < len(expected) < 300
    assert any("longer" in item for item in expected) or mechanism == "matching"


def test_same_counts(frame: Any) -> None:
    options = TEST | {"max_items": 3, "other": True}
    counts = count_users(frame, engine=DRIVER, **options).table
    expected = count_users(words(), **options).table.to_pylist()
    assert [row.asDict() for row in counts.collect()] == expected


def test_few_jobs(spark: Any) -> None:
    """Rows are counted and collected: nothing runs round by round."""
    kind, frame = "auto", spark.createDataFrame(words())
    before = jobs(spark)
    select_partitions(frame, engine=DRIVER, mechanism=kind, **TEST)
    few = jobs(spark) - before
    assert 0 < few <= 4
    select_partitions(frame, engine=SparkEngine(driver_bytes=0), mechanism=kind, **TEST)
    assert jobs(spark) - before - few > few


def test_many_rows_of_few_bytes_stay_on_the_cluster(spark: Any, monkeypatch: Any) -> None:
    """Spark takes a range for 8 bytes a row; repeats may take up less."""
    collected = []
    monkeypatch.setattr(gathering, "Part", lambda *made: collected.append(made))
    frame = spark.range(3000).selectExpr("cast(id % 100 AS byte) AS u", "cast(1 AS byte) AS i")
    select_partitions(frame, engine=SparkEngine(driver_bytes=100_000), mechanism="sips", **TEST)
    assert not collected


def test_a_failing_function_is_named_as_on_the_cluster(spark: Any) -> None:
    def fail(batches: Any) -> Any:
        yield from batches
        raise ValueError("a secret")

    frame = spark.range(9).selectExpr("id AS u", "id AS i").mapInArrow(fail, "u long, i long")
    with pytest.raises(InputError, match=r"^a Python function of the data failed: ValueError in"):
        select_partitions(frame, engine=DRIVER, mechanism="sips", **TEST)


def test_no_rows_and_nulls(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"u": [1, 2], "i": ["a", None]}))
    options = TEST | {"mechanism": "sips", "engine": DRIVER}
    for made in (frame, spark.createDataFrame(frame.rdd, frame.schema)):
        assert select_partitions(made.where("u > 5"), **options).items.isEmpty()
        with pytest.raises(InputError, match=r"^column 'i' of the Spark data frame has nulls"):
            select_partitions(made, **options)


def test_nothing_stays_in_the_cache(frame: Any, spark: Any) -> None:
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    select_partitions(frame, engine=DRIVER, mechanism="auto", **TEST)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
