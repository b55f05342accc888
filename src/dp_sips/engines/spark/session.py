"""The Spark session, found, started or cloned, and all else that touches Spark's Java side."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dp_sips.errors import DpSipsError, InputError, UsageError
from dp_sips.sources.addresses import is_remote, local_path, shown_address
from dp_sips.sources.path_columns import without_values

JAVA_ERRORS: Final = (PySparkException, Py4JError)
"""PySpark translates some of Java's errors and passes others on."""

_JAVA: Final = 17
_SECONDS: Final = 5

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_BYPASS: Final = 200
"""Up to this number of partitions, a task writes a file for each of them, which takes longer."""

_PARTITION_SIZE: Final = "16m"
"""What a task should get after a shuffle: two million pairs, so that it merges none on disk."""

_OWN_ERROR: Final = re.compile(r"dp_sips\.errors\.(InputError|UsageError): ([^\n]*)")
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '(\w+)'")
_STACK_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_RAISED = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception))\b", re.MULTILINE)
_HEADERS: Final = "CSV header does not conform to the schema"
_MALFORMED: Final = "[MALFORMED_CSV_RECORD]"
_READING: Final = re.compile(
    r"\[FAILED_READ_FILE\S*\] Encountered error while reading file (\S+)\. "
)


def find_session(master: str | None) -> SparkSession:
    """Return the active session, or start one at `master`."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    _check_java()
    master = master or "local[*]"
    _check_master(master)
    if master.startswith("local"):
        # Otherwise Spark takes the first python3 of the path, which may be another one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("dp-sips").master(master)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    with _quiet_java():
        return builder.config("spark.log.level", "OFF").getOrCreate()


@contextmanager
def _quiet_java() -> Iterator[None]:
    """Start Java with its stderr in a file, which is read only if the start fails."""
    with tempfile.TemporaryFile() as output:
        stderr = os.dup(2)
        os.dup2(output.fileno(), 2)
        try:
            yield
        except PySparkException as error:
            output.seek(0)
            last = output.read().decode(errors="replace").strip().splitlines()[-1:]
            raise UsageError(f"Spark did not start: {''.join(last) or error}") from error
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    fix = f"install Java {_JAVA} or later, or point JAVA_HOME to it"
    if java is None or not Path(java).exists():
        raise UsageError(
            f"Spark needs Java, and there is none{f' at {java}' if java else ''}: {fix}"
        )
    output = subprocess.run(  # noqa: S603 (the program that Spark is about to run)
        [java, "-version"], capture_output=True, text=True, check=False
    ).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is None or int(version[1]) < _JAVA:
        found = output.splitlines()[0] if output else "no version"
        raise UsageError(f"Spark needs Java {_JAVA} or later, and {java} says {found}: {fix}")


def _check_master(master: str) -> None:
    """Try each address of a standalone cluster: Spark itself would wait for minutes."""
    if not master.startswith("spark://"):
        return
    addresses = master.removeprefix("spark://").split(",")
    if not any(map(_answers, addresses)):
        raise UsageError(f"no Spark cluster answers at {master}: start one, or check the address")


def _answers(address: str) -> bool:
    try:
        parts = urlsplit(f"//{address}")
        with socket.create_connection((parts.hostname or "", parts.port or 7077), _SECONDS):
            return True
    except (OSError, ValueError):
        return False


def in_cloned_session(frame: DataFrame) -> DataFrame:
    """Return the same table in a clone of its session: same cluster and cache, its own settings.

    Spark Connect cannot clone sessions: there, the caller's settings are used as they are.
    """
    spark: Any = frame.sparkSession
    if _is_connect(spark):
        return frame
    to_df = RDD.toDF  # a new session replaces it
    clone: Any = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001
    RDD.toDF = to_df  # type: ignore[method-assign]
    # Let Spark coalesce the partitions of persisted tables by size, as it does for others.
    clone.conf.set("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning", "true")
    clone.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", _PARTITION_SIZE)
    if _BYPASS // 4 < shuffle_partitions(spark) <= _BYPASS:
        clone.conf.set(_PARTITIONS, str(_BYPASS + 1))
    plan = frame._jdf.queryExecution().logical()  # noqa: SLF001
    dataset = spark._jvm.org.apache.spark.sql.classic.Dataset  # noqa: SLF001
    return DataFrame(dataset.ofRows(clone._jsparkSession, plan), clone)  # noqa: SLF001


def shuffle_partitions(spark: SparkSession) -> int:
    """Return the number of partitions that a shuffle starts with."""
    setting = spark.conf.get(_PARTITIONS, "200") or "200"
    return int(setting) if setting.isdigit() else 200


def known_size(frame: DataFrame) -> float:
    """Return how many bytes a table has by what Spark knows of it; infinity if it does not.

    Of files that is their size, of a persisted table its size in the cache. No job runs. (Spark
    Connect does not tell.)
    """
    if _is_connect(frame.sparkSession):
        return float("inf")
    java: Any = frame._jdf  # noqa: SLF001
    return float(java.queryExecution().optimizedPlan().stats().sizeInBytes())


def print_plan(frame: DataFrame) -> None:
    """Print a physical plan to stderr."""
    with redirect_stdout(sys.stderr):
        frame.explain("formatted")


def cut_lineage(frame: DataFrame, *, eager: bool) -> DataFrame:
    """Return a persisted table as a plain scan, without the plan that made it.

    Spark prints that plan in every later plan, twice: after twelve rounds, four thousand times.
    Lost blocks are still recomputed. (Spark Connect has no way to do this.)

    All stages up to the plan's last shuffle run now. The last stage runs now if `eager`, and
    otherwise within the first job that reads the table, which saves a job.
    """
    spark: Any = frame.sparkSession
    if _is_connect(spark):
        return frame
    adaptive = spark.conf.get(_ADAPTIVE)
    if not eager:
        spark.conf.set(_ADAPTIVE, "false")  # for this scan alone, which has no shuffle
    java: Any = frame.select("*")._jdf  # noqa: SLF001 (a new query, which finds the cached table)
    rows, schema = java.queryExecution().toRdd(), java.schema()
    spark.conf.set(_ADAPTIVE, adaptive)
    scan = spark._jsparkSession.internalCreateDataFrame(rows, schema, False)  # noqa: FBT003, SLF001
    return DataFrame(scan, spark)


def _is_connect(spark: Any) -> bool:
    """Whether this is a session of Spark Connect, which has no Java side in this process."""
    return not isinstance(spark, SparkSession)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Replace Spark's long errors by short ones of our own."""
    try:
        yield
    except JAVA_ERRORS as error:
        # Without its cause: a page of Java, which may show values.
        raise _translate(error) from None


def _translate(error: Exception) -> Exception:
    text = str(error)
    if own := _OWN_ERROR.search(text):
        kind = InputError if own[1] == "InputError" else UsageError
        return kind(own[2])
    if missing := _NO_MODULE.search(text):
        return UsageError(
            f"Spark's workers have no Python package {missing[1]!r}: install dp-sips[spark] on "
            "every node, or ship an environment with spark.archives"
        )
    if _HEADERS in text:
        return InputError(
            "the CSV files have different headers: Spark needs the same columns in the same order"
        )
    if _MALFORMED in text:
        return InputError(
            f"{_file_in(text)} cannot be read: a row has more or fewer fields than the first: "
            "put quotes around fields that contain the delimiter; if that is another, name it, as "
            "delimiter=';' of dp_sips.CsvFiles (--delimiter ';')"
        )
    if frames := _STACK_FRAME.findall(text):
        file, line, function = frames[-1]
        kind = (_RAISED.findall(text) or ["an error"])[-1]
        return _failed_function(f"{kind} in {function}, line {line} of {file}", Path(file))
    return DpSipsError(f"Spark failed: {condition(error)}")


def _file_in(text: str) -> str:
    """Return the file that Spark was reading, as messages show it."""
    found = _READING.search(text)
    if found is None:
        return "a CSV file"
    address = found[1]
    return shown_address(address) if is_remote(address) else without_values(local_path(address))


def _failed_function(place: str, file: Path) -> Exception:
    """Say where a worker's Python failed; what it said may show values."""
    if "dp_sips" in file.parts:
        return DpSipsError(f"Spark failed: {place}")
    return InputError(
        f"a Python function of the data failed: {place}; its message may show values: to read it, "
        "run the function without dp-sips"
    )


def condition(error: Exception) -> str:
    """Name what happened in Spark's words; more of its text may show values."""
    if isinstance(error, PySparkException) and error.getCondition():
        return str(error.getCondition())
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName())
    return type(error).__name__
