"""dpmm synthesises rows whose cities are the released ones: the domain of a column."""

import sys
from pathlib import Path

import pandas as pd
from dpmm.pipelines import MSTPipeline

folder = Path(sys.argv[1])
visits, cities = (pd.read_csv(folder / name) for name in ("visits.csv", "cities.csv"))
known = sorted(cities["city"])
rows = visits[visits["city"].isin(known)].reset_index(drop=True)  # by a public list: each by itself
rows = pd.DataFrame(
    {
        "city": pd.Categorical(rows["city"], categories=known),
        "again": pd.Categorical(rows["user"] % 2 == 0, categories=[False, True]),
    }
)
model = MSTPipeline(epsilon=1.0, delta=1e-6, proc_epsilon=0.1)
model.fit(rows, {"city": {"categories": known}, "again": {"categories": [False, True]}})
made = model.generate(n_records=200)
print(made["city"].value_counts())
assert set(made["city"]) <= set(known)
