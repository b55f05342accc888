"""PipelineDP counts users by the released keys: `public_partitions`."""

import csv
import sys
from pathlib import Path

import pipeline_dp

folder = Path(sys.argv[1])
visits, cities = (
    list(csv.DictReader((folder / name).open())) for name in ("visits.csv", "cities.csv")
)
budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
counts = engine.aggregate(
    visits,
    pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN,
        metrics=[pipeline_dp.Metrics.PRIVACY_ID_COUNT],
        max_partitions_contributed=2,
        max_contributions_per_partition=1,
    ),
    pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row["user"],
        partition_extractor=lambda row: row["city"],
        value_extractor=lambda _: 0,
    ),
    public_partitions=[row["city"] for row in cities],
)
budget.compute_budgets()
found = sorted(counts)
print(found)
assert [city for city, _ in found] == sorted(row["city"] for row in cities)
