"""Mechanisms run several times: how many items came out, with an interval, and as tables."""

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.stats import t as student

import dp_sips
from dp_sips.mechanisms.single import SingleRule
from dp_sips.privacy.arrays import Floats, Integers
from dp_sips.privacy.weights import UNIT

_NEXT_TO_NOTHING: Final = 1e-15


@dataclass(frozen=True)
class Estimate:
    """One number from several runs, and the interval that goes with it."""

    value: float
    low: float
    high: float
    runs: int

    @classmethod
    def mean(cls, values: Sequence[float]) -> Self:
        """Return the mean with its 95 % confidence interval, by Student's t."""
        mean, half = statistics.fmean(values), 0.0
        if len(values) > 1:
            spread = statistics.stdev(values) / len(values) ** 0.5
            half = float(student.ppf(0.975, len(values) - 1)) * spread
        return cls(mean, mean - half, mean + half, len(values))

    @classmethod
    def median(cls, values: Sequence[float]) -> Self:
        """Return the median between the smallest and the largest: for times."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    @property
    def half(self) -> float:
        """Half of the interval's length."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.value:,.0f} ± {self.half:,.0f}"


@dataclass(frozen=True)
class Holders:
    """How many users hold each item of a data set: what no release may show, for experiments only.

    Attributes:
        items: The distinct items.
        users: The number of users of each.
    """

    items: pa.Array
    users: NDArray[np.int64]

    @classmethod
    def of(cls, path: Path) -> Self:
        """Count the users of each item in a Parquet file with the columns user and item."""
        pairs = (
            pq.read_table(path, columns=["user", "item"]).group_by(["user", "item"]).aggregate([])
        )
        counted = pairs.group_by("item").aggregate([([], "count_all")])
        return cls(counted["item"], counted["count_all"].to_numpy())

    def ceiling(self, epsilon: float, delta: float) -> float:
        """Return the sum of the optimal chances for one item a user: nobody can release more."""
        users = self.users.astype(np.uint64) * np.uint64(UNIT)
        return float(SingleRule(epsilon, delta).odds(users)[0].sum())

    def missing_mass(self, released: Any) -> float:
        """Return the share of pairs whose item was not released."""
        found = np.asarray(pc.is_in(self.items, value_set=released))
        return 1 - float(self.users[found].sum() / self.users.sum())


def room(path: Path, level: float = 10.0) -> int:
    """Return how many items a perfect allocation would lift to a level, found greedily.

    Users spread weights of L2 norm 1 and know who holds what. From the most popular item on, each
    holder gives in proportion to what it has left, relative to what its rarer items will ask for.
    It is no bound: coins need less than the level of Gaussian noise.
    """
    pairs = pq.read_table(path, columns=["user", "item"]).group_by(["user", "item"]).aggregate([])
    users, items = (_codes(pairs[name]) for name in ("user", "item"))
    order, holders = np.argsort(items, kind="stable"), np.bincount(items)
    ends, alike = np.cumsum(holders), np.where(holders < level, 0, 1 / holders**2)
    left, asked = np.ones(users.max() + 1), np.bincount(users, weights=alike[items])
    lifted = 0
    for item in np.argsort(-holders, kind="stable")[: np.count_nonzero(alike)]:
        mine = users[order[ends[item] - holders[item] : ends[item]]]
        given = _given(np.sqrt(left[mine]), left[mine] / asked[mine], level)
        asked[mine] = np.maximum(asked[mine] - alike[item], _NEXT_TO_NOTHING)
        left[mine] = np.maximum(left[mine] - given**2, 0)
        lifted += bool(given.any())
    return lifted


def _codes(column: pa.ChunkedArray) -> Integers:
    codes = pc.dictionary_encode(column).combine_chunks().indices
    return np.asarray(codes.to_numpy(), dtype=np.int64)


def _given(most: Floats, shares: Floats, level: float) -> Floats:
    """Return parts of a level in proportion to shares, up to `most`; zeros if all is too little."""
    order = np.argsort(most / np.maximum(shares, _NEXT_TO_NOTHING))
    before = np.cumsum(most[order]) - most[order]
    if before[-1] + most[order[-1]] < level:
        return np.zeros_like(most)
    rest = np.cumsum(shares[order][::-1])[::-1]
    scale = (level - before) / np.maximum(rest, _NEXT_TO_NOTHING)
    first = np.argmax(scale * shares[order] <= most[order])
    return np.asarray(np.minimum(most, scale[first] * shares))


def items_released(data: Any, how: Mapping[str, Any], seed: int | None = None) -> int:
    """Run a mechanism once; a seed makes it repeatable, for tables that can be made again."""
    test: dict[str, Any] = {} if seed is None else {"seed": seed, "insecure_test": True}
    fixed: dict[str, Any] = {"user": "user", "item": "item", "progress": False}
    return int(dp_sips.select_partitions(data, **fixed, **test, **how).items.num_rows)


def mean_items(data: Any, how: Mapping[str, Any], seeds: Iterable[int | None]) -> Estimate:
    """Run a mechanism once for each seed; None is fresh noise."""
    return Estimate.mean([items_released(data, how, seed) for seed in seeds])


Rows = Mapping[str, Mapping[str, Estimate]]
"""Estimates by data set and mechanism; a mechanism that did not run has none."""


def markdown(rows: Rows, caption: str) -> str:
    """Return a Markdown table: a line for each data set, a column for each mechanism."""
    columns = list(dict.fromkeys(who for row in rows.values() for who in row))
    lines = [
        f"{caption}\n",
        "| data | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
        *(
            f"| {name} | " + " | ".join(str(row.get(who, "–")) for who in columns) + " |"
            for name, row in rows.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def read_csv(path: Path) -> dict[str, dict[str, Estimate]]:
    """Undo `write_csv`; nothing, where there is no such file."""
    rows: dict[str, dict[str, Estimate]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                mean, half = float(row["mean"]), float(row["half_interval"])
                found = Estimate(mean, mean - half, mean + half, int(row["runs"]))
                rows.setdefault(row["data"], {})[row["mechanism"]] = found
    return rows


def write_csv(path: Path, rows: Rows) -> None:
    """Write one line for each data set and mechanism."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "mechanism", "mean", "half_interval", "runs"])
        for name, row in rows.items():
            writer.writerows([name, who, e.value, e.half, e.runs] for who, e in row.items())
