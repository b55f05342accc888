"""One cluster for the tests of a process: a master and two workers, as processes of their own."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import JAVA

from dp_sips.engines.spark import SparkEngine

_ROOT = Path(__file__).parents[2]


def _helper() -> Any:
    """Load the cluster that benchmarks use, too."""
    path = _ROOT / "benchmarks" / "spark_cluster.py"
    spec = importlib.util.spec_from_file_location("spark_cluster", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["spark_cluster"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with _helper().cluster(workers=2, memory="1g") as running:
        yield running


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(cluster: Any, event_log: Path) -> Iterator[Any]:
    """A session with all that makes life hard: speculation, little patience, an event log, a UI."""
    session = cluster.session(
        spark_ui_enabled="true",
        spark_ui_port="0",
        spark_executor_memory="768m",
        spark_executor_extraJavaOptions=JAVA,
        spark_sql_shuffle_partitions="4",
        spark_speculation="true",
        spark_speculation_interval="50ms",
        spark_speculation_quantile="0.1",
        spark_speculation_multiplier="1.1",
        spark_eventLog_enabled="true",
        spark_eventLog_dir=event_log.as_uri(),
        spark_eventLog_compress="false",
        spark_eventLog_rolling_enabled="false",
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def on_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave small input to the cluster, too, where a test does not name `driver_bytes`."""
    make: Any = SparkEngine.__init__
    *others, driver_bytes, explain = make.__defaults__
    assert driver_bytes == SparkEngine().driver_bytes > 0
    monkeypatch.setattr(make, "__defaults__", (*others, 0, explain))
