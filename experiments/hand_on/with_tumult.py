"""Tumult Analytics counts by the released keys: a `KeySet`."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

folder = Path(sys.argv[1])
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = spark.config("spark.sql.shuffle.partitions", "1").getOrCreate()
visits, cities = (
    spark.read.csv(str(folder / name), header=True) for name in ("visits.csv", "cities.csv")
)
budget = PureDPBudget(1)
session = Session.from_dataframe(budget, "visits", visits, protected_change=AddRowsWithID("user"))
query = QueryBuilder("visits").enforce(MaxRowsPerID(2))
counts = session.evaluate(query.groupby(KeySet.from_dataframe(cities)).count(), budget)
counts.show()
assert {row.city for row in counts.collect()} == {row.city for row in cities.collect()}
