"""A real Spark cluster on loopback: a master and workers as processes of their own."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

import dp_sips

_SECONDS = 300


@dataclass
class Cluster:
    """A standalone cluster: its address, and its workers' processes."""

    url: str
    folder: Path
    page: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def session(self, **settings: str) -> SparkSession:
        """Start a session; its settings are named with _ for the dots."""
        ours: dict[str, Any] = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.driver.host": "127.0.0.1",
            "spark.executorEnv.PYTHONPATH": str(Path(dp_sips.__file__).parents[1]),
        }
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(self.url).appName("dp-sips")
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return builder.config(map=ours | given).getOrCreate()

    def add_worker(self, cores: int, memory: str, *, pin: bool = False) -> None:
        """Start one more worker, and wait until the master knows it.

        A worker that is pinned has `cores` of the machine's for all that it starts, as a container
        would have. One that is not takes more than it owns: its Java and its Python run at once.
        """
        name = f"worker-{len(list(self.folder.glob('worker-*.log')))}"
        arguments = ["--cores", str(cores), "--memory", memory, "--host", "127.0.0.1"]
        arguments += ["--work-dir", str(self.folder / name), "--webui-port", "0", self.url]
        first = len(self.workers) * cores
        held = ["taskset", "--cpu-list", f"{first}-{first + cores - 1}"] if pin else []
        log = self.folder / f"{name}.log"
        self.workers.append(_start("worker.Worker", arguments, log, held))
        _wait(lambda: self.alive() == len(self.workers), "a worker did not join the master")

    def alive(self) -> int:
        """Return how many workers the master counts as alive."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=60) as answer:  # noqa: S310
            return int(answer.read().count(b'"ALIVE"')) - 1  # the master is alive, too

    def kill(self, worker: int) -> None:
        """Kill a worker and its executors, without a warning."""
        killed = self.workers.pop(worker)
        for process in (*_children(killed.pid), killed.pid):
            _quietly_kill(process)
        killed.wait()


@contextmanager
def cluster(
    workers: int = 2, cores: int = 1, memory: str = "2g", *, pin: bool = False
) -> Iterator[Cluster]:
    """Run a cluster for as long as the block takes; it is stopped whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="dp-sips-cluster-"))
    log = folder / "master.log"
    arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    master = _start("master.Master", arguments, log)
    started = Cluster("", folder, "")
    try:
        _wait(lambda: "MasterWebUI" in log.read_text(), f"the master did not start: {log}")
        started.url = _said(log, r"Starting Spark master at (spark://\S+)")
        started.page = "http://127.0.0.1:" + _said(log, r"MasterUI' on port (\d+)")
        for _ in range(workers):
            started.add_worker(cores, memory, pin=pin)
        yield started
    finally:
        for process in (*started.workers, master):
            for child in _children(process.pid):
                _quietly_kill(child)
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _start(
    role: str, arguments: list[str], log: Path, held: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    light = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]  # they only start others
    command = [str(java), "-cp", f"{home}/jars/*", *light, f"org.apache.spark.deploy.{role}"]
    surroundings = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(log.parent),
    }
    with log.open("wb") as sink:
        return subprocess.Popen(
            [*held, *command, *arguments], env=surroundings, stdout=sink, stderr=subprocess.STDOUT
        )


def _wait(ready: Callable[[], bool], trouble: str) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        with suppress(OSError):
            if ready():
                return
        time.sleep(0.1)
    raise TimeoutError(f"{trouble}, in {_SECONDS} seconds")


def _said(log: Path, pattern: str) -> str:
    found = re.search(pattern, log.read_text())
    assert found is not None, log.read_text()
    return found[1]


def _children(process: int) -> list[int]:
    """Return the processes that a process started, and theirs."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    ).stdout
    direct = [int(line) for line in listed.split()]
    return [below for child in direct for below in _children(child)] + direct


def _quietly_kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
