"""How many bytes a pair, a user and an item take: peak memory of runs that differ in one of them.

python benchmarks/memory_need.py
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from contenders import ours
from measure import measure

SHAPES = {
    "base": (20_000_000, 1_000_000, 1_000_000, "integers"),
    "five times the pairs": (100_000_000, 1_000_000, 1_000_000, "integers"),
    "five times the users": (20_000_000, 5_000_000, 1_000_000, "integers"),
    "five times the items": (20_000_000, 1_000_000, 5_000_000, "integers"),
    "items as text": (20_000_000, 1_000_000, 1_000_000, "texts"),
    "five times the texts": (20_000_000, 1_000_000, 5_000_000, "texts"),
}
"""Distinct pairs, users, items, and whether items are numbers or texts of 20 bytes."""


def write(path: Path, pairs: int, users: int, items: int, kind: str) -> None:
    """Write pairs that are nearly all distinct, a user's side by side, a million at a time."""
    rng = np.random.default_rng(0)
    item_type = pa.int64() if kind == "integers" else pa.string()
    schema = pa.schema([("user", pa.int64()), ("item", item_type)])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, pairs, 1_000_000):
            whose = np.arange(start, min(start + 1_000_000, pairs)) * users // pairs
            numbers = rng.integers(0, items, len(whose))
            what: Any = numbers if kind == "integers" else [f"item {n:>015}" for n in numbers]
            writer.write_table(pa.table({"user": whose, "item": what}, schema=schema))


def main() -> None:
    """Print a row for each shape, and what follows from them."""
    peaks = {}
    print("| data | pairs | users | items | peak MB |\n|---|---|---|---|---|", flush=True)
    for name, (pairs, users, items, kind) in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.parquet"
            write(path, pairs, users, items, kind)
            peaks[name] = measure(ours, str(path)).peak_mb * 1e6
        row = f"| {name} | {pairs:,} | {users:,} | {items:,} | {peaks[name] / 1e6:,.0f} |"
        print(row, flush=True)
    print(f"bytes a pair: {(peaks['five times the pairs'] - peaks['base']) / 80e6:.1f}")
    print(f"bytes a user: {(peaks['five times the users'] - peaks['base']) / 4e6:.1f}")
    print(f"bytes an item: {(peaks['five times the items'] - peaks['base']) / 4e6:.1f}")
    texts = peaks["five times the texts"] - peaks["items as text"]
    print(f"bytes an item of 20 bytes of text: {texts / 4e6:.1f}")


if __name__ == "__main__":
    main()
