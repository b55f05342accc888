"""Errors of Java and of workers, in our own words on the driver."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from dp_sips.errors import DpSipsError, InputError, UsageError

JAVA_ERRORS: Final = (PySparkException, Py4JError)
"""PySpark translates some of Java's errors, and passes others on."""

_OURS = re.compile(r"dp_sips\.errors\.(InputError|UsageError): ([^\n]*)")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)'")
_HEADERS = "CSV header does not conform to the schema"


@contextmanager
def explained() -> Iterator[None]:
    """Raise a worker's own error in place of Spark's long one."""
    try:
        yield
    except JAVA_ERRORS as error:
        raise _in_our_words(error) from error


def first_line(error: Exception) -> str:
    """Return what Spark itself says first."""
    said = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return str(said).partition("\n")[0]


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
    return DpSipsError(f"Spark failed: {first_line(error)}")
