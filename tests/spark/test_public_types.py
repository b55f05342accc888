"""On Spark, too, a value means the same whatever other rows hold, and no error shows one."""

import json
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips import InputError, select_partitions
from dp_sips.engines.spark.reading import _read
from dp_sips.sources.spark_frames import SparkFiles

NAMES: dict[str, Any] = {"user": "u", "item": "i"}
TEST: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "mechanism": "single",
    "max_items": 1,
    "insecure_test": True,
}
IDS = [(f"{zero}{n}", "7") for n in range(1, 13) for zero in ("", "0")]


def write(path: Path, pairs: list[tuple[Any, Any]]) -> str:
    lines = {
        ".csv": ["u,i", *(f"{user},{item}" for user, item in pairs)],
        ".tsv": ["u\ti", *(f"{user}\t{item}" for user, item in pairs)],
        ".jsonl": [json.dumps({"u": user, "i": item}) for user, item in pairs],
    }[path.suffix]
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def released(data: Any, engine: str = "spark", seed: int = 1, **options: Any) -> list[Any]:
    found = select_partitions(data, engine=engine, seed=seed, **NAMES, **(TEST | options)).items
    table = found if engine == "memory" or isinstance(data, str) else found.toArrow()
    return list(table["i"].to_pylist())


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_ids_with_zeros_in_front(name: str, spark: Any, tmp_path: Path) -> None:
    """Were types inferred, an additional user with a letter would make 24 users of 12."""
    del spark
    for seed in range(2):
        alone = released(write(tmp_path / name, IDS), seed=seed)
        among = released(write(tmp_path / name, [*IDS, ("h", "B")]), seed=seed)
        assert alone == [item for item in among if item == "7"] == ["7"]


SECRET = "a diagnosis"[2:]
"""Not as it is written in this file, which tracebacks show."""
KINDS = [1, "1", True, "long " * 9, 2**40]


def test_json_is_what_it_is_in_memory(spark: Any, tmp_path: Path) -> None:
    """Values of all kinds, in lists and alone; nulls and missing fields."""
    del spark
    pairs = [(f"{n}", KINDS if n % 2 else KINDS[n % 5]) for n in range(200)]
    path = write(tmp_path / "a.jsonl", [*pairs, ("x", None), (7, 7)])
    options: dict[str, Any] = {"max_items": 5, "mechanism": "sips", "nulls": "drop", "epsilon": 5.0}
    items = [released(path, engine, **options) for engine in ("spark", "memory")]
    assert items[0] == items[1]
    assert set(items[0]) == {json.dumps(kind) for kind in KINDS}


def test_types_that_are_declared(spark: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", IDS)
    types = {"u": "int", "i": "int"}
    for seed in range(3):
        assert released(path, "spark", seed, types=types) == released(
            path, "memory", seed, types=types
        )
    frame = spark.createDataFrame([(n, "007") for n in range(300)], "u int, i string")
    assert released(frame, types={"i": "int"}) == [7]
    with pytest.raises(
        InputError, match=r"column 'i' of .* has a value that is not of the type int:"
    ) as e:
        released(write(tmp_path / "b.csv", [*IDS, ("1", SECRET)]), types=types)
    assert SECRET not in shown(e.value)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
@pytest.mark.parametrize("mechanism", ["single", "sips", "cumulative"])
def test_no_rows_are_an_empty_release(
    name: str, mechanism: str, spark: Any, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"mechanism": mechanism, "rho": 1.0, "epsilon": None}
    options = {} if mechanism == "single" else options
    assert released(write(tmp_path / name, []), **options) == []
    assert released(spark.createDataFrame([], "u int, i string"), **options) == []


def test_nulls_are_told_without_a_page_of_spark(spark: Any) -> None:
    frame = spark.createDataFrame([(1, SECRET), (2, None)], "u int, i string")
    with pytest.raises(InputError, match="column 'i' of the Spark data frame has nulls") as caught:
        released(frame)
    assert "org.apache" not in shown(caught.value)
    assert SECRET not in shown(caught.value)
    assert released(frame, nulls="drop") == []


def test_a_function_that_fails_is_named(spark: Any) -> None:
    from pyspark.sql.functions import udf

    def number(text: Any) -> int:
        return int(text)

    number.__annotations__.clear()  # Spark would take them for hints
    frame = spark.createDataFrame([(1, SECRET)], "u int, i string")
    frame = frame.withColumn("i", udf(number, "int")("i"))
    message = r"a Python function of the data failed: ValueError in number, line \d+ of .*\.py"
    with pytest.raises(InputError, match=message) as caught:
        released(frame)
    assert SECRET not in shown(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "u,i\n1,a\n2,{},b\n"),
        ("a.jsonl", '{"u": 1, "i": "{}"}\n{"u": 2, "i": {}}\n'),
        ("a.jsonl", '{"u": 1, "i": 1}\n{"u": 2, "i": {"{}": 1}}\n'),
    ],
    ids=range(3),
)
def test_broken_rows_are_not_shown(name: str, text: str, spark: Any, tmp_path: Path) -> None:
    del spark
    (tmp_path / name).write_text(text.replace("{}", SECRET))
    with pytest.raises(Exception, match=r"a\.(csv|jsonl) ") as caught:
        released(str(tmp_path / name))
    assert SECRET not in shown(caught.value)


def shown(error: BaseException) -> str:
    """Return all that Python shows of an error that nobody catches."""
    return "".join(traceback.format_exception(error))


def test_folders_that_spark_itself_finds(spark: Any, tmp_path: Path) -> None:
    """As at s3://: Spark would infer from all paths that 7 and 07 are one number."""
    for number, users in (("7", range(60)), ("07", range(60, 120)), ("_", range(999, 1000))):
        folder = tmp_path / f"i={number}"
        folder.mkdir()
        pq.write_table(pa.table({"u": [str(user) for user in users]}), folder / "0.parquet")
    frame = _read(spark, "parquet", [str(tmp_path)])
    assert frame.columns == ["u"]
    found = select_partitions(SparkFiles(frame, "logs"), engine="spark", seed=1, **NAMES, **TEST)
    assert found.items["i"].to_pylist() == ["07", "7"]
    assert found.items.equals(
        select_partitions(str(tmp_path), engine="memory", seed=1, **NAMES, **TEST).items
    )
