"""One library's partition selection on local Spark: time and yield, to put side by side.

Libraries ask for different versions of Spark: run this once in an environment of each.

    dp-sips generate --users 5199 --seed 0 -o data.parquet
    python benchmarks/spark_others.py dp-sips data.parquet
    python benchmarks/spark_others.py pipeline-dp data.parquet  # pipeline-dp, pyspark==3.5.*
    python benchmarks/spark_others.py tumult data.parquet       # tmlt.analytics

The same (ε, δ), the same Δ0, two cores, the same cached input. The second of two runs is shown.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

EPSILON, DELTA, MAX_ITEMS = 1.0, 1e-5, 100


def main() -> None:
    """Print one row for each way of a library."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("path")
    options = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("others")
    builder = builder.config("spark.driver.memory", "6g").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.read.parquet(options.path).repartition(8).persist()
    print(f"| {frame.count():,} rows | Spark {spark.version} | seconds | items |", flush=True)
    for name, run in LIBRARIES[options.library].items():
        run(frame)
        start = time.perf_counter()
        items = run(frame)
        seconds = time.perf_counter() - start
        print(f"| {options.library} | {name} | {seconds:.1f} | {items:,} |", flush=True)


def _dp_sips(mechanism: str) -> Callable[[DataFrame], int]:
    def run(frame: DataFrame) -> int:
        from dp_sips import select_partitions

        privacy: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "max_items": MAX_ITEMS}
        columns: dict[str, Any] = {"user": "user", "item": "item"}
        selection = select_partitions(
            frame, mechanism=mechanism, progress=False, **columns, **privacy
        )
        return int(selection.items.count())

    return run


def _pipeline_dp(strategy: str) -> Callable[[DataFrame], int]:
    def run(frame: DataFrame) -> int:
        import pipeline_dp  # type: ignore[import-not-found]

        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        backend = pipeline_dp.SparkRDDBackend(frame.sparkSession.sparkContext)
        engine = pipeline_dp.DPEngine(accountant, backend)
        params = pipeline_dp.SelectPartitionsParams(
            max_partitions_contributed=MAX_ITEMS,
            partition_selection_strategy=pipeline_dp.PartitionSelectionStrategy[strategy],
        )
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1]
        )
        chosen = engine.select_partitions(frame.rdd, params, extractors)
        accountant.compute_budgets()
        return int(chosen.count())

    return run


def _tumult(frame: DataFrame) -> int:
    from tmlt.analytics import (  # type: ignore[import-not-found]
        AddRowsWithID,
        ApproxDPBudget,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        QueryBuilder,
        Session,
    )

    budget = ApproxDPBudget(EPSILON, DELTA)
    session = Session.from_dataframe(budget, "data", frame, protected_change=AddRowsWithID("user"))
    query = QueryBuilder("data").enforce(MaxGroupsPerID("item", MAX_ITEMS))
    query = query.enforce(MaxRowsPerGroupPerID("item", 1)).get_groups(["item"])
    return int(session.evaluate(query, budget).count())


LIBRARIES: dict[str, dict[str, Callable[[DataFrame], int]]] = {
    "dp-sips": {name: _dp_sips(name) for name in ("weighted-gaussian", "sips", "auto")},
    "pipeline-dp": {
        name: _pipeline_dp(name) for name in ("TRUNCATED_GEOMETRIC", "GAUSSIAN_THRESHOLDING")
    },
    "tumult": {"get_groups": _tumult},
}

if __name__ == "__main__":
    main()
