"""No Java, wrong Java, no cluster, a stopped session, no PySpark: said, and what to do."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SELECT = """
import dp_sips, sys
from dp_sips.engines import find_engine
try:
    engine = find_engine("spark", master=sys.argv[1])
    dp_sips.select_partitions({1: ["a"]}, engine=engine, epsilon=1, delta=1e-6)
except dp_sips.UsageError as error:
    print(error)
"""

STOPPED = """
from pyspark.sql import SparkSession
import dp_sips
def start():
    return SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark = start()
frame = spark.sql("SELECT 1 AS u, 'a' AS i")
spark.stop()
options = {"user": "u", "item": "i", "epsilon": 1, "delta": 1e-6}
for prepare, engine in ((bool, "auto"), (bool, "memory"), (start, "auto")):
    prepare()
    try:
        dp_sips.select_partitions(frame, engine=engine, **options)
    except dp_sips.InputError as error:
        print(error)
"""


def said(master: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SELECT, master],
        capture_output=True, text=True, check=True, env=environment | {"PYTHONPATH": _source()},
    )  # fmt: skip
    return done.stdout


def _source() -> str:
    import dp_sips

    return str(Path(dp_sips.__file__).parents[1])


def test_no_java(tmp_path: Path) -> None:
    told = "Spark needs Java, and there is none"
    assert said("local[1]", PATH=str(tmp_path)).startswith(f"{told}: install Java 17 or later")
    assert said("local[1]", JAVA_HOME=str(tmp_path)).startswith(f"{told} at {tmp_path}/bin/java")


def test_wrong_java(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    told = said("local[1]", PATH=f"{tmp_path}:/bin:/usr/bin")
    assert told.startswith(
        f'Spark needs Java 17 or later, and {java} says openjdk version "1.8.0_402"'
    )


def test_no_cluster_at_the_address() -> None:
    told = said("spark://127.0.0.1:1", PATH="/bin:/usr/bin:/usr/local/bin")
    assert (
        told == "no Spark cluster answers at spark://127.0.0.1:1: start one, or check the address\n"
    )


def test_a_stopped_session() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": _source()},
    )  # fmt: skip
    told = "the Spark data frame cannot be read: its Spark session has been stopped; make a new "
    assert done.stdout == f"{told}session, and the frame again\n" * 3


@pytest.mark.parametrize("address", [Path.__str__, Path.as_uri])
def test_the_command_line_is_quiet(address: Any, tmp_path: Path) -> None:
    """Neither Java nor PySpark says anything beside the command's own words."""
    table = tmp_path / "data.csv"
    table.write_text("u,i\n" + "".join(f"{user},a\n" for user in range(200)))
    flags = "--user u --item i --epsilon 1 --delta 1e-5 --engine spark --master local[1]"
    done = subprocess.run(
        [sys.executable, "-m", "dp_sips", "select", address(table), *flags.split()],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": _source()},
    )  # fmt: skip
    assert done.stdout.split() == ["i", "a"]
    own = (
        "Released 1 item.",
        "By its private look at the data, auto chose ",
        "Guarantee: (1, ",
        "for one user",
        "Fewer than you expected?",
    )
    assert all(line.startswith(own) for line in done.stderr.splitlines())
    assert "(1, 1e-05)-differentially private as asked" in done.stderr


def test_no_pyspark(monkeypatch: Any) -> None:
    from dp_sips import UsageError
    from dp_sips.engines import find_engine

    for name in [
        name for name in sys.modules if name.startswith(("dp_sips.engines.spark", "pyspark"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UsageError, match=r"needs pyspark: pip install 'dp-sips\[spark\]'"):
        find_engine("spark")
