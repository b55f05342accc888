"""What a run moves, by Spark's own metrics, against the cost model of docs/scale.md.

python benchmarks/spark_costs.py --rows 300000 1000000 3000000
"""

import argparse
import json
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as all of Spark's users call it)
from spark_cluster import cluster

from dp_sips import select_partitions
from dp_sips.progress import Progress
from dp_sips.synthetic import write_synthetic

PAIR, SUM = 8.3, 12.6
"""Bytes of a pair of integers in the exchange by user, and of a sum in one by item, compressed."""


@dataclass(frozen=True)
class Exchange:
    """One exchange: what its stage wrote, and in how many tasks."""

    records: int
    size: int
    tasks: int


def main() -> None:
    """Print a row for each exchange of each size."""
    warnings.simplefilter("ignore", FutureWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000, 1_000_000, 3_000_000])
    options = parser.parse_args()
    print("| rows | pairs | items | exchange | tasks | records | MB | model, MB |")
    print("|---|---|---|---|---|---|---|---|")
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            _measure(Path(folder), rows)


def _measure(folder: Path, rows: int) -> None:
    path = folder / "synthetic.parquet"
    with path.open("wb") as sink:
        write_synthetic(sink, users=round(rows / 57.7), seed=0, progress=Progress(show=False))
    events = folder / "events"
    events.mkdir()
    logging = {
        "spark_eventLog_enabled": "true",
        "spark_eventLog_dir": events.as_uri(),
        "spark_eventLog_compress": "false",
        "spark_eventLog_rolling_enabled": "false",
    }
    with cluster() as running:
        spark = running.session(**logging)
        try:
            frame = spark.read.parquet(str(path)).repartition(8).persist()
            sizes = _sizes(frame)
            before = len(list(_exchanges(events)))
            settings: dict[str, Any] = {
                "rho": 0.1,
                "delta": 1e-5,
                "mechanism": "sips",
                "progress": False,
            }
            select_partitions(frame, user="user", item="item", **settings)
            found = list(_exchanges(events))[before:]
        finally:
            spark.stop()
    _show(sizes, [exchange for exchange in found if exchange.size > 1000])  # noqa: PLR2004


def _sizes(frame: DataFrame) -> tuple[int, int, int]:
    row = frame.agg(
        F.count("*"), F.countDistinct("user", "item"), F.countDistinct("item")
    ).collect()[0]
    return row[0], row[1], row[2]


def _show(sizes: tuple[int, int, int], found: list[Exchange]) -> None:
    rows, pairs, items = sizes
    for number, exchange in enumerate(found):
        name = f"round {number}" if number else "by user"
        model = exchange.records * SUM if number else pairs * PAIR
        print(
            f"| {rows:,} | {pairs:,} | {items:,} | {name} | {exchange.tasks} "
            f"| {exchange.records:,} | {exchange.size / 1e6:.2f} | {model / 1e6:.2f} |",
            flush=True,
        )


def _exchanges(folder: Path) -> Iterator[Exchange]:
    """Read the stages that wrote to an exchange, in order."""
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerStageCompleted":
                stage = event["Stage Info"]
                counted = {a["Name"]: a["Value"] for a in stage["Accumulables"]}
                prefix = "internal.metrics.shuffle.write."
                if counted.get(prefix + "bytesWritten"):
                    yield Exchange(
                        int(counted[prefix + "recordsWritten"]),
                        int(counted[prefix + "bytesWritten"]),
                        stage["Number of Tasks"],
                    )


if __name__ == "__main__":
    main()
