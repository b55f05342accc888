"""The Spark engine: users spread over a cluster, and rounds that move only sums per item."""

from dp_sips.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
