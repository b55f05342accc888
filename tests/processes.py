"""Which tests share a process: all of Spark's, and those of a file that share a fixture.

Each process would start a Java machine of its own, and build the same wheel again. Other tests go
wherever there is room, one at a time. (`--dist=loadgroup` would do this by marks, but finds none in
pytest 9.2: pytest-xdist's issue 1386.)

Java machines compile quickly rather than well: none of them runs for so long that it would pay.
"""

import os
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def group(nodeid: str, root: Path) -> str:
    """Return what the test shares with others, or the test itself."""
    file, _, test = nodeid.partition("::")
    if "spark" in test:
        return "spark"
    return file if _shares(root / file) else nodeid


@cache
def _shares(file: Path) -> bool:
    return 'scope="module"' in file.read_text("utf-8")


def pytest_configure() -> None:
    """Tell Spark's drivers, also those in processes that tests start."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a group go to one process, in their order; the largest groups go first."""
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = partial(group, root=config.rootpath)
    return scheduler
