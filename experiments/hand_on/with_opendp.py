"""OpenDP counts by the released keys: `with_keys` of its Polars API."""

import sys
from pathlib import Path

import opendp.prelude as dp
import polars as pl

folder = Path(sys.argv[1])
dp.enable_features("contrib")
context = dp.Context.compositor(
    data=pl.scan_csv(folder / "visits.csv"),
    privacy_unit=dp.unit_of(contributions=2),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
    margins=[dp.polars.Margin(max_length=10_000)],
)
keys = pl.scan_csv(folder / "cities.csv")
query = context.query().group_by("city").agg(dp.len(signed=True)).with_keys(keys)
counts = query.release().collect().sort("city")
print(counts)
assert counts["city"].to_list() == keys.collect()["city"].to_list()
