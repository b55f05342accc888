"""Errors of workers, in our own words on the driver."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from dp_sips.errors import DpSipsError, InputError, UsageError

_OURS = re.compile(r"dp_sips\.errors\.(InputError|UsageError): ([^\n]*)")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)'")


@contextmanager
def explained() -> Iterator[None]:
    """Raise a worker's own error in place of Spark's long one."""
    try:
        yield
    except PySparkException as error:
        raise _in_our_words(error) from error


def _in_our_words(error: PySparkException) -> Exception:
    text = str(error)
    if ours := _OURS.search(text):
        kind = InputError if ours[1] == "InputError" else UsageError
        return kind(ours[2])
    if missing := _MISSING.search(text):
        return UsageError(
            f"Spark's workers have no Python package {missing[1]!r}: install dp-sips[spark] on "
            "every node, or ship an environment with spark.archives"
        )
    return DpSipsError(f"Spark failed: {text.splitlines()[0]}")
