"""A table and a run on a Spark cluster, for the experiments that need one."""

import warnings
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import dp_sips
from dp_sips.engines.spark import SparkEngine
from evaluation.contenders import How

warnings.simplefilter("ignore", FutureWarning)  # pandas' and Spark's, of each other


def cached_table(spark: SparkSession, path: Path) -> DataFrame:
    """Return a file as a table in the workers' memory, in eight parts."""
    table = spark.read.parquet(str(path)).repartition(8).persist()
    table.count()
    return table


def select_on_cluster(table: DataFrame, how: How) -> None:
    """Select with the workers alone: the driver would take data of this size to itself."""
    engine = SparkEngine(driver_bytes=0)
    found = dp_sips.select_partitions(
        table, user="user", item="item", engine=engine, progress=False, **how
    )
    found.items.count()
