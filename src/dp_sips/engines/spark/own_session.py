"""A session of one's own beside the caller's: the same cluster and cache, other settings."""

from typing import Any, Final

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_BYPASS: Final = 200
"""Up to so many partitions, a Spark task writes each to a file of its own, which takes longer."""

_SIZE: Final = "16m"
"""What a task is to get after an exchange: two million pairs, so that it merges none on disk."""


def in_own_session(frame: DataFrame) -> DataFrame:
    """Return the same table in a session whose settings are nobody else's to see.

    Spark Connect has no such thing: there, the caller's settings are used as they are.
    """
    spark: Any = frame.sparkSession
    if not hasattr(spark, "_jsparkSession"):
        return frame
    to_df = RDD.toDF  # a new session would take this over
    own: Any = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001
    RDD.toDF = to_df  # type: ignore[method-assign]
    # Let Spark fit the partitions of what is persisted to its size, as it does elsewhere.
    own.conf.set("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning", "true")
    own.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", _SIZE)
    if _BYPASS // 4 < partitions(spark) <= _BYPASS:
        own.conf.set(_PARTITIONS, str(_BYPASS + 1))
    plan = frame._jdf.queryExecution().logical()  # noqa: SLF001
    dataset = spark._jvm.org.apache.spark.sql.classic.Dataset  # noqa: SLF001
    return DataFrame(dataset.ofRows(own._jsparkSession, plan), own)  # noqa: SLF001


def partitions(spark: SparkSession) -> int:
    """Return how many partitions an exchange has, to begin with."""
    setting = spark.conf.get(_PARTITIONS, "200") or "200"
    return int(setting) if setting.isdigit() else 200


def without_past(frame: DataFrame, *, at_once: bool) -> DataFrame:
    """Return a held table as a plain scan, without the plan that made it.

    Spark prints that plan in every plan after it, twice: after twelve rounds, four thousand times.
    Lost blocks are computed again all the same. (Spark Connect has no way to do this.)

    What comes before the plan's last exchange runs now; what comes after it as well, if this is to
    be `at_once`, or else within the first job that reads the table, which saves a job.
    """
    spark: Any = frame.sparkSession
    if not hasattr(spark, "_jsparkSession"):
        return frame
    adaptive = spark.conf.get(_ADAPTIVE)
    if not at_once:
        spark.conf.set(_ADAPTIVE, "false")  # for this scan alone, which has no exchange
    java: Any = frame.select("*")._jdf  # noqa: SLF001 (a new query, which finds the table held)
    rows, schema = java.queryExecution().toRdd(), java.schema()
    spark.conf.set(_ADAPTIVE, adaptive)
    plain = spark._jsparkSession.internalCreateDataFrame(rows, schema, False)  # noqa: FBT003, SLF001
    return DataFrame(plain, spark)
