"""Levels of a Spark table: workers leave out the rows whose parts were not released."""

from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips import select_partitions, text

TEST: dict[str, Any] = {
    "user": "u", "epsilon": 3, "delta": 1e-3, "mechanism": "sips", "seed": 1, "insecure_test": True,
}  # fmt: skip


def test_a_hierarchy(spark: Any) -> None:
    random = np.random.default_rng(2)
    rows = random.integers(0, (300, 20, 9), (3000, 3)) * random.integers(0, 2, (3000, 3))
    data = pa.table(dict(zip("uab", map(pa.array, rows.T), strict=True)))
    options = {"item": ["a", "b"], "hierarchy": True, **TEST}
    there, here = (select_partitions(d, **options) for d in (spark.createDataFrame(data), data))
    assert there.levels[0].columns == ["a"]
    for one, other in zip(there.levels, here.levels, strict=True):
        assert [row.asDict() for row in one.collect()] == other.to_pylist()
        assert other.num_rows > 0


def test_ngrams(spark: Any) -> None:
    random = np.random.default_rng(3)
    words = [" ".join(random.choice(list("abcdef"), 1 + n % 2)) for n in range(3000)]
    data = pa.table({"u": random.integers(0, 300, 3000), "w": words})
    options = {"item": text.ngrams("w", 2, levels=True, tokenized=True), **TEST}
    there, here = (select_partitions(d, **options) for d in (spark.createDataFrame(data), data))
    assert [row.w for row in there.items.collect()] == here.items["w"].to_pylist()
    assert 6 < len(here.items) <= 42
