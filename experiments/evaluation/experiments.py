"""All experiments by name: each is run, and its numbers are written, before the next begins."""

import json
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from datasets import synthetic

from evaluation import largest, runtimes, yields
from evaluation.conversions import conversions
from evaluation.points import Point, save, save_rows
from evaluation.scale import Scale
from evaluation.sources import Source, find, statistics
from evaluation.surroundings import surroundings


@dataclass
class Evaluation:
    """A run: its size, where its data is, where its numbers go, and a remark on the machine."""

    scale: Scale
    folder: Path | None
    cache: Path
    out: Path
    remark: str = ""
    sources: list[Source] = field(default_factory=list)

    def run(self, names: list[str]) -> list[str]:
        """Run these experiments, or all of this scale; return the names of those that failed."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.sources = find(self.scale, self.folder, self.cache)
        left_out = () if self.scale.workers else ON_CLUSTERS
        usual = [name for name in EXPERIMENTS if name not in left_out]
        return [name for name in names or usual if not self._run_one(name)]

    def _run_one(self, name: str) -> bool:
        start = time.perf_counter()
        self._note(name, 0.0, "not finished")
        trouble = ""
        try:
            EXPERIMENTS[name](self)
        except Exception as error:  # noqa: BLE001 (the others' numbers are not lost for this one)
            traceback.print_exc()
            trouble = f"{type(error).__name__}: {error}".splitlines()[0]
        seconds = time.perf_counter() - start
        print(f"{name}: {trouble or 'done'}, {seconds:.0f} s", flush=True)
        self._note(name, round(seconds, 1), trouble)
        return not trouble

    def _note(self, name: str, seconds: float, trouble: str) -> None:
        """Keep what the page says about this run beside its numbers."""
        path = self.out / "run.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        experiments = before.get("experiments", {})
        experiments[name] = {"seconds": seconds, "trouble": trouble, **surroundings()}
        remark = {"remark": self.remark or before.get("remark", "")}
        seeds = {"seeds": self.scale.seeds, "repeats": self.scale.repeats}
        whole = {"files": self.scale.files, **remark, **seeds, "experiments": experiments}
        path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _saved(
    name: str, x: str, measure: Callable[[Evaluation], Iterator[Point]]
) -> Callable[[Evaluation], None]:
    """Return an experiment whose points are on disk, and on the screen, as they come."""

    def run(evaluation: Evaluation) -> None:
        points: list[Point] = []
        for point in measure(evaluation):
            e = point.estimate
            print(
                f"  {name} {point.data} {point.mechanism} {point.x:g}: {e.value:,.2f}", flush=True
            )
            points.append(point)
            save(evaluation.out / f"{name}.csv", x, points)

    return run


def _datasets(evaluation: Evaluation) -> None:
    save_rows(evaluation.out / "datasets.csv", list(statistics(evaluation.sources)))


def _conversions(evaluation: Evaluation) -> None:
    save_rows(evaluation.out / "conversions.csv", list(conversions()))


def _exchanges(evaluation: Evaluation) -> None:
    from evaluation.exchanges import exchanges

    data = synthetic(evaluation.scale.spark_users, evaluation.cache)
    save_rows(evaluation.out / "exchanges.csv", list(exchanges(data)))


def _communication(evaluation: Evaluation) -> None:
    from evaluation.communication import communication

    data = synthetic(evaluation.scale.spark_users, evaluation.cache)
    rows = list(communication(data, evaluation.scale.repeats))
    save_rows(evaluation.out / "communication.csv", rows)


EXPERIMENTS: dict[str, Callable[[Evaluation], None]] = {
    "datasets": _datasets,
    "conversions": _conversions,
    "accuracy": _saved(
        "accuracy", "epsilon", lambda e: yields.accuracy(e.sources, e.scale, e.cache)
    ),
    "epsilon": _saved("epsilon", "epsilon", lambda e: yields.against_epsilon(e.sources, e.scale)),
    "delta": _saved("delta", "delta", lambda e: yields.against_delta(e.sources, e.scale)),
    "ratio": _saved("ratio", "ratio", lambda e: yields.against_ratio(e.sources, e.scale)),
    "max_items": _saved(
        "max_items", "max_items", lambda e: yields.against_max_items(e.sources, e.scale)
    ),
    "rounds": _saved("rounds", "rounds", lambda e: yields.against_rounds(e.sources, e.scale)),
    "iterated": _saved(
        "iterated", "iterations", lambda e: yields.against_iterations(e.sources, e.scale)
    ),
    "users": _saved("users", "users", lambda e: runtimes.against_users(e.scale, e.cache)),
    "cores": _saved("cores", "cores", lambda e: runtimes.against_cores(e.sources, e.scale)),
    "workers": _saved("workers", "workers", lambda e: runtimes.against_workers(e.scale, e.cache)),
    "exchanges": _exchanges,
    "communication": _communication,
    "largest": lambda e: largest.measure(e.scale.largest, e.out),
}
"""Every experiment by its name, in the order in which they run."""

ON_CLUSTERS: Final = ("exchanges", "communication")
"""Those that start Spark clusters: a quick run does so only where it is told to."""
