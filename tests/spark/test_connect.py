"""Frames of Spark Connect: a server of its own, the same release as in memory."""

import json
import os
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from dp_sips import select_partitions

SELECT = """
import json, sys
from pyspark.sql import SparkSession
import dp_sips
from dp_sips.engines.spark import SparkEngine

builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
spark = builder.getOrCreate()
frame = spark.createDataFrame(json.loads(sys.argv[1]), "user int, city string")
for mechanism in ("sips", "auto"):
    options = json.loads(sys.argv[2])
    for engine in (SparkEngine(driver_bytes=0), SparkEngine()):
        found = dp_sips.select_partitions(frame, mechanism=mechanism, engine=engine, **options)
        assert type(found.items).__module__ == "pyspark.sql.connect.dataframe", type(found.items)
        print(mechanism, json.dumps(found.items.toArrow()["city"].to_pylist()))
spark.stop()
try:
    dp_sips.select_partitions(frame, **options)
except dp_sips.InputError as error:
    print("stopped", json.dumps([str(error)]))
"""
CITIES = [f"a city whose name goes on and on: {n}" if n % 2 else f"city {n}" for n in range(40)]
ROWS = [(user, city) for user in range(400) for n, city in enumerate(CITIES) if user % (n + 1) == 0]
OPTIONS: dict[str, Any] = {
    "user": "user", "item": "city", "epsilon": 2, "delta": 1e-5, "max_items": 20,
    "seed": 7, "insecure_test": True, "progress": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def released() -> dict[str, list[list[str]]]:
    """What mechanisms release on Connect; a process of its own, as each has one kind of Spark."""
    done = subprocess.run(
        [sys.executable, "-c", SELECT, json.dumps(ROWS), json.dumps(OPTIONS)],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[str]]] = {}
    for line in done.stdout.splitlines():
        mechanism, items = line.split(" ", 1)
        found.setdefault(mechanism, []).append(json.loads(items))
    return found


@pytest.mark.parametrize("mechanism", ["sips", "auto"])
def test_same_release_as_in_memory(mechanism: str, released: dict[str, list[list[str]]]) -> None:
    users, cities = zip(*ROWS, strict=True)
    table = pa.table({"user": pa.array(users, pa.int32()), "city": cities})
    here = select_partitions(table, mechanism=mechanism, **OPTIONS).items["city"].to_pylist()
    assert 1 < len(here) < len(CITIES)
    assert released[mechanism] == [here, here]  # by the cluster, and by the driver


def test_a_stopped_session_is_told(released: dict[str, list[list[str]]]) -> None:
    [[said]] = released["stopped"]
    assert "its Spark session has been stopped; make a new session, and the frame again" in said
