"""How often data is exchanged between the workers of a cluster, against rounds of SIPS."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from spark_cluster import cluster
from spark_events import EventLog

from evaluation.clusters import cached_table, select_on_cluster
from evaluation.contenders import sips

ROUNDS: Final = (1, 2, 3, 5)
_JAVA: Final = {
    f"spark_{who}_extraJavaOptions": "-XX:TieredStopAtLevel=1" for who in ("driver", "executor")
}
"""Nothing is timed: Java need not compile for long."""


def exchanges(path: Path) -> Iterator[dict[str, int]]:
    """Yield what Spark's event log says of each number of rounds, beside the paper's formula."""
    with tempfile.TemporaryDirectory() as folder, cluster(memory="1g") as running:
        log = EventLog(Path(folder))
        spark = running.session(spark_executor_memory="1g", **_JAVA, **log.settings())
        try:
            table = cached_table(spark, path)
            for rounds in ROUNDS:
                stages = log.during(spark, partial(select_on_cluster, table, sips(rounds)))
                yield {
                    "rounds": rounds,
                    "exchanges": sum(stage.is_exchange for stage in stages),
                    "paper": 3 * (rounds - 1) + 2,
                    "bytes": sum(stage.size for stage in stages if stage.is_exchange),
                }
        finally:
            spark.stop()
