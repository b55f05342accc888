"""The Spark session to run in: the one that is there, or a new one, once that can work."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dp_sips.errors import UsageError

_JAVA: Final = 17
_SECONDS: Final = 5


def find_session(master: str | None) -> SparkSession:
    """Return the active session, or start one at `master`."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    _check_java()
    master = master or "local[*]"
    _check_master(master)
    if master.startswith("local"):
        # Spark would take the first python3 of the path, which need not be this one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("dp-sips").master(master)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    with _java_speaks_when_asked():
        return builder.config("spark.log.level", "OFF").getOrCreate()


@contextmanager
def _java_speaks_when_asked() -> Iterator[None]:
    """Start Java with a file for its stderr: what it says there matters only if it fails."""
    with tempfile.TemporaryFile() as said:
        stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        except PySparkException as error:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-1:]
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
    said = subprocess.run(  # noqa: S603 (the program that Spark is about to run)
        [java, "-version"], capture_output=True, text=True, check=False
    ).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < _JAVA:
        found = said.splitlines()[0] if said else "no version"
        raise UsageError(f"Spark needs Java {_JAVA} or later, and {java} says {found}: {fix}")


def _check_master(master: str) -> None:
    """Knock at each address of a standalone cluster: Spark itself would wait for minutes."""
    if not master.startswith("spark://"):
        return
    addresses = master.removeprefix("spark://").split(",")
    if not any(map(_answers, addresses)):
        raise UsageError(f"no Spark cluster answers at {master}: start one, or check the address")


def _answers(address: str) -> bool:
    try:
        place = urlsplit(f"//{address}")
        with socket.create_connection((place.hostname or "", place.port or 7077), _SECONDS):
            return True
    except (OSError, ValueError):
        return False
