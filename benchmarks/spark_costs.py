"""What a run moves, by Spark's own metrics, against the cost model of docs/scale.md.

    python benchmarks/spark_costs.py --rows 300000 1000000 3000000

Bytes of a pair and of a sum are fitted to all sizes but the last, and then predict that one.
"""

import argparse
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as all of Spark's users call it)
from spark_cluster import cluster
from spark_events import EventLog, Stage

from dp_sips.engines.spark import SparkEngine
from dp_sips.engines.spark.wire import payloads_of, unpack
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source
from dp_sips.synthetic import write_synthetic


@dataclass(frozen=True)
class Run:
    """What a run has, and what its first two exchanges moved."""

    rows: int
    pairs: int
    items: int
    sums: int
    by_user: Stage
    by_item: Stage


def main() -> None:
    """Print a row for each size, with what the other sizes predict for the last."""
    warnings.simplefilter("ignore", FutureWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000, 1_000_000, 3_000_000])
    options = parser.parse_args()
    runs = []
    print("| rows | pairs | items | tasks | by user, MB | a pair | tasks | sums | MB | a sum |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            runs.append(_measure(Path(folder), rows))
            _show(runs[-1])
    *fitted, last = runs
    pair = sum(run.by_user.size for run in fitted) / sum(run.pairs for run in fitted)
    one = sum(run.by_item.size for run in fitted) / sum(run.sums for run in fitted)
    print(
        f"\nFitted to the others: {pair:.1f} bytes a pair, {one:.1f} a sum. For the last: "
        f"{pair * last.pairs / 1e6:.2f} MB by user, {one * last.sums / 1e6:.2f} MB a round."
    )


def _measure(folder: Path, rows: int) -> Run:
    path = folder / "synthetic.parquet"
    with path.open("wb") as sink:
        write_synthetic(sink, users=round(rows / 57.7), seed=0, progress=Progress(show=False))
    events = folder / "events"
    events.mkdir()
    log = EventLog(events)
    with cluster() as running:
        spark = running.session(**log.settings())
        try:
            frame = spark.read.parquet(str(path)).repartition(8).persist()
            sizes = _sizes(frame)
            sums: list[int] = []
            stages = log.during(spark, lambda: sums.append(_first_round(frame)))
        finally:
            spark.stop()
    by_user, by_item = [stage for stage in stages if stage.is_exchange]
    return Run(*sizes, sums[0], by_user, by_item)


def _first_round(frame: DataFrame) -> int:
    """Load and weigh as a run does, and count the partial sums that are shuffled by item."""
    source = open_source(frame, user="user", item="item", nulls="error")
    loaded = SparkEngine(driver_bytes=0).load(
        source, Bounds(100), Key.fresh(), Progress(show=False)
    )
    batches = loaded.weigh(100).toArrow().to_batches()
    loaded.close()
    return sum(len(unpack(payload)[0]) for payload in payloads_of(batches))


def _sizes(frame: DataFrame) -> tuple[int, int, int]:
    row = frame.agg(
        F.count("*"), F.countDistinct("user", "item"), F.countDistinct("item")
    ).collect()[0]
    return row[0], row[1], row[2]


def _show(run: Run) -> None:
    user, item = run.by_user, run.by_item
    print(
        f"| {run.rows:,} | {run.pairs:,} | {run.items:,} | {user.tasks} | {user.size / 1e6:.2f} "
        f"| {user.size / run.pairs:.1f} | {item.tasks} | {run.sums:,} | {item.size / 1e6:.2f} "
        f"| {item.size / run.sums:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
