"""Every engine keeps the rows whose parts were released, and no others."""

from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips import text

LONG = "a long value, longer than the fifteen bytes that a block has room for"


def pairs() -> Any:
    """200 users and 30 regions with 8 places each, some of them popular, some rows repeated."""
    random = np.random.default_rng(4)
    rows = random.integers(0, (200, 30, 8), size=(4_000, 3)) * random.integers(0, 2, (4_000, 3))
    regions = [f"{LONG} {n}" if n % 2 else str(n) for n in rows[:, 1]]
    return pa.table({"u": rows[:, 0], "region": regions, "place": rows[:, 2]})


def same(mine: Any, theirs: Any) -> None:
    """Both released the same, and something at every level."""
    assert [level.to_pylist() for level in mine.levels] == [
        level.to_pylist() for level in theirs.levels
    ]
    assert all(level.num_rows for level in mine.levels)


def test_a_hierarchy(engine: Any, reference: Any) -> None:
    options = {"user": "u", "item": ["region", "place"], "hierarchy": True, "mechanism": "sips"}
    same(*(e.release(pairs(), **options) for e in (engine, reference)))


def test_ngrams(engine: Any, reference: Any) -> None:
    random = np.random.default_rng(5)
    words = [f"w{n}" for n in range(4)]
    rows = [" ".join(random.choice(words, size=1 + n % 3)) for n in range(6_000)]
    data = pa.table({"u": random.integers(0, 300, size=6_000), "w": rows})
    item = text.ngrams("w", 3, levels=True, tokenized=True)
    options = {"user": "u", "item": item, "mechanism": "sips"}
    same(*(e.release(data, **options) for e in (engine, reference)))
