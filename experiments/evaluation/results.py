"""The numbers of a run, read back from its folder: the page and the claims see nothing else."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largest_page import Run, read_runs
from measuring import Estimate

from evaluation.points import Point, load, load_rows


@dataclass(frozen=True)
class Results:
    """A folder of CSV files, and what they say."""

    folder: Path

    def points(self, experiment: str, data: str = "", mechanism: str = "") -> list[Point]:
        """Return an experiment's points, if it came to its end; some of them, where named."""
        if self.trouble(experiment):
            return []
        return [
            point
            for point in load(self.folder / f"{experiment}.csv")
            if data in {"", point.data} and mechanism in {"", point.mechanism}
        ]

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return a table that is not made of points, if it was finished."""
        return [] if self.trouble(name) else load_rows(self.folder / f"{name}.csv")

    def runs(self) -> list[Run]:
        """Return the runs on the largest data set: as many as there are."""
        return read_runs(self.folder)

    def trouble(self, experiment: str) -> str:
        """Return what is wrong with an experiment's numbers; nothing, if it came to its end."""
        note = self.run()["experiments"].get(experiment, {"trouble": "it never ran"})
        return str(note["trouble"])

    def run(self) -> dict[str, Any]:
        """Return what is known about the run itself."""
        found: dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        return found

    def accuracy(self) -> dict[str, dict[str, Estimate]]:
        """Return the accuracy table: by data set, then by mechanism."""
        table: dict[str, dict[str, Estimate]] = {}
        for point in self.points("accuracy"):
            table.setdefault(point.data, {})[point.mechanism] = point.estimate
        return table

    def likeness(self) -> dict[str, str]:
        """Return which of the paper's data sets each one is, or stands in for."""
        return {
            row["data"]: row["role"]
            .removeprefix("stands in for ")
            .replace("the paper's", row["data"])
            for row in self.rows("datasets")
            if row["role"] != "not in the paper"
        }

    def small_parts(self) -> list[str]:
        """Return data sets with less than 5 % of the users of the paper's that they are part of."""
        counted = {row["data"]: row["counted_users"] for row in self.rows("datasets")}
        paper = {row["data"]: row["paper_users"] for row in self.rows("datasets")}
        return [
            data
            for data, like in self.likeness().items()
            if counted[data] and int(counted[data]) < 0.05 * int(paper[like])
        ]
