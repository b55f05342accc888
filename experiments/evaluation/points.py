"""Measured points, kept as CSV: what the page is made of."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import Estimate


@dataclass(frozen=True)
class Point:
    """An estimate for a mechanism on a data set, at some value of what is varied."""

    data: str
    mechanism: str
    x: float
    estimate: Estimate


def save(path: Path, x: str, points: Iterable[Point]) -> None:
    """Write one line for each point; `x` names what is varied."""
    fields = ["data", "mechanism", x, "value", "low", "high", "runs"]
    lines = [
        [
            p.data,
            p.mechanism,
            p.x,
            p.estimate.value,
            p.estimate.low,
            p.estimate.high,
            p.estimate.runs,
        ]
        for p in points
    ]
    save_rows(path, [dict(zip(fields, line, strict=True)) for line in lines])


def load(path: Path) -> list[Point]:
    """Read what `save` wrote; nothing, if it did not."""
    return [_point(list(row.values())) for row in load_rows(path)]


def _point(cells: list[str]) -> Point:
    data, mechanism, x, value, low, high, runs = cells
    return Point(
        data, mechanism, float(x), Estimate(float(value), float(low), float(high), int(runs))
    )


def save_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows of any kind; floats with six digits, which is more than was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)


def load_rows(path: Path) -> list[dict[str, str]]:
    """Read rows of any kind; none, if the file is not there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
