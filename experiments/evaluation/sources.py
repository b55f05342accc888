"""Which data sets are measured: the paper's where they are there, or what stands in for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
from datasets import Dataset

from evaluation.scale import Scale


@dataclass(frozen=True)
class Source:
    """A data set that is there, as a file."""

    name: str
    stands_for: str | None
    path: Path


def find(scale: Scale, folder: Path | None, cache: Path) -> list[Source]:
    """Return all data sets of a run; the generated one has as many users as the scale says."""
    found = []
    for dataset in datasets.available(folder) if scale.files and folder else []:
        if dataset.name != "synthetic":
            role = dataset.name if dataset.paper else dataset.stands_for
            found.append(Source(dataset.name, role, dataset.load(folder or cache, cache)))
    generated = datasets.synthetic(scale.generated, cache)
    return [*found, Source("synthetic", "synthetic", generated)]


def choose(sources: list[Source], *wanted: str) -> list[Source]:
    """Return the first source for each name, the paper's own first; or all there is."""
    chosen = [next((s for s in sources if name in {s.name, s.stands_for}), None) for name in wanted]
    return list(dict.fromkeys(source for source in chosen if source)) or sources


def without_repeats(source: Source, cache: Path) -> Path:
    """Return the same data with each item of a user once, made if need be."""
    path = cache / f"distinct-{source.path.stem}.parquet"
    if not path.exists() or path.stat().st_mtime < source.path.stat().st_mtime:
        path.parent.mkdir(parents=True, exist_ok=True)
        pairs = pq.read_table(source.path).group_by(["user", "item"]).aggregate([])
        pq.write_table(pairs, path, compression="zstd")
    return path


def statistics(sources: list[Source]) -> Iterator[dict[str, Any]]:
    """Yield a row for each data set: its counts, or how to get it."""
    there = {source.name: source.path for source in sources}
    for dataset in datasets.DATASETS:
        path = there.get(dataset.name)
        yield {
            "data": dataset.name,
            "what": dataset.what,
            "user": dataset.users,
            "role": _role(dataset),
            **_counts("paper", dataset.paper),
            **_counts("expected", dataset.expected),
            **_counts("counted", datasets.count(path) if path else None),
            "how_to_get": "" if path else dataset.how_to_get(Path("DIR")),
        }


def _role(dataset: Dataset) -> str:
    if dataset.paper:
        return "the paper's"
    return f"stands in for {dataset.stands_for}" if dataset.stands_for else "not in the paper"


def _counts(who: str, counts: datasets.Counts | None) -> dict[str, int | str]:
    names = ("users", "rows", "vocabulary")
    return {f"{who}_{name}": getattr(counts, name) if counts else "" for name in names}
