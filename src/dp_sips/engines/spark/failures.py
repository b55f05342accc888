"""Errors of Java and of workers, in our own words on the driver."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from dp_sips.errors import DpSipsError, InputError, UsageError

JAVA_ERRORS: Final = (PySparkException, Py4JError)
"""PySpark translates some of Java's errors, and passes others on."""

_OURS = re.compile(r"dp_sips\.errors\.(InputError|UsageError): ([^\n]*)")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)'")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_RAISED = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception))\b", re.MULTILINE)
_HEADERS = "CSV header does not conform to the schema"


@contextmanager
def explained() -> Iterator[None]:
    """Raise a worker's own error in place of Spark's long one."""
    try:
        yield
    except JAVA_ERRORS as error:
        # Without its cause: a page of Java, which may show values.
        raise _in_our_words(error) from None


def condition(error: Exception) -> str:
    """Name what happened in Spark's words; more of its text may show values."""
    if isinstance(error, PySparkException) and error.getCondition():
        return str(error.getCondition())
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName())
    return type(error).__name__


def _in_our_words(error: Exception) -> Exception:
    text = str(error)
    if ours := _OURS.search(text):
        kind = InputError if ours[1] == "InputError" else UsageError
        return kind(ours[2])
    if missing := _MISSING.search(text):
        return UsageError(
            f"Spark's workers have no Python package {missing[1]!r}: install dp-sips[spark] on "
            "every node, or ship an environment with spark.archives"
        )
    if _HEADERS in text:
        return InputError(
            "the CSV files have different headers: Spark needs the same columns in the same order"
        )
    if frames := _FRAME.findall(text):
        file, line, function = frames[-1]
        kind = (_RAISED.findall(text) or ["an error"])[-1]
        return _failed_function(file, f"{kind} in {function}, line {line} of {file}")
    return DpSipsError(f"Spark failed: {condition(error)}")


def _failed_function(file: str, place: str) -> Exception:
    """Say where a worker's Python failed; what it said may show values."""
    if "dp_sips" in Path(file).parts:
        return DpSipsError(f"Spark failed: {place}")
    return InputError(
        f"a Python function of the data failed: {place}; its message may show values: to read it, "
        "run the function without dp-sips"
    )
