"""What Spark's own event log says about the data that a session moved."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

_SHUFFLE: Final = "internal.metrics.shuffle."
_A_COUNT: Final = 100
"""Bytes of a task that only counts its rows, at most."""


@dataclass(frozen=True)
class Stage:
    """What a stage wrote to its exchange, in how many tasks, and the bytes it read from others."""

    records: int
    size: int
    tasks: int
    from_others: int

    @property
    def is_exchange(self) -> bool:
        """Whether it ends in an exchange that moves more than counts of rows."""
        return self.size > _A_COUNT * self.tasks


@dataclass(frozen=True)
class EventLog:
    """The log of one session, in a folder that has nothing else."""

    folder: Path

    def settings(self) -> dict[str, str]:
        """Return what makes a session write it, named as `Cluster.session` takes it."""
        return {
            "spark_eventLog_enabled": "true",
            "spark_eventLog_dir": self.folder.absolute().as_uri(),
            "spark_eventLog_compress": "false",
            "spark_eventLog_rolling_enabled": "false",
        }

    def during(self, spark: SparkSession, call: Callable[[], object]) -> list[Stage]:
        """Return the stages that a call completes, in order."""
        before = len(self._stages(spark))
        call()
        return self._stages(spark)[before:]

    def _stages(self, spark: SparkSession) -> list[Stage]:
        context: Any = spark.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001 (all is written then)
        lines = [line for file in self.folder.iterdir() for line in file.read_text().splitlines()]
        events = [json.loads(line) for line in lines]
        return [
            _stage(event["Stage Info"])
            for event in events
            if event["Event"] == "SparkListenerStageCompleted"
        ]


def _stage(info: dict[str, Any]) -> Stage:
    values = {value["Name"]: value["Value"] for value in info["Accumulables"]}
    records, size, from_others = (
        int(values.get(_SHUFFLE + name, 0))
        for name in ("write.recordsWritten", "write.bytesWritten", "read.remoteBytesRead")
    )
    return Stage(records, size, info["Number of Tasks"], from_others)
