"""Runs on growing data: as CSV, as a table beside the paper's numbers, and as a figure."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.figure import Figure

PAPER: Final = {"weighted-gaussian": 711_601, "sips": 1_137_467}
"""Items that the paper releases from Synthetic_80M (tab:accuracy_benchmarks)."""
PAPER_USERS: Final = 80_000_000
GENERATE: Final = "generate"
"""In place of a mechanism: the making of the data."""

_LINES: Final = {
    "weighted-gaussian": ("#767676", "v"),
    "sips": ("#0072B2", "^"),
    "dpsu": ("#E69F00", "s"),
    "gw": ("#CC79A7", "D"),
    "auto": ("#D55E00", "o"),
    GENERATE: ("#009E73", "P"),
}
_OTHER: Final = ("#000000", "x")
_STYLE: Final = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "svg.hashsalt": "dp-sips",
}


@dataclass(frozen=True)
class Run:
    """One run in its own process; sizes are in bytes.

    Attributes:
        users: How many users the data has.
        rows: How many rows.
        input_bytes: The size of its files.
        mechanism: What ran, or `GENERATE`.
        seconds: By the clock.
        cpu_seconds: Of all cores.
        peak_memory: All resident memory, pages of files included.
        anonymous_memory: Of this, what is not a window on a file.
        spilled: Files beyond memory, when they took most.
        released: Items.
    """

    users: int
    rows: int
    input_bytes: int
    mechanism: str
    seconds: float
    cpu_seconds: float
    peak_memory: int
    anonymous_memory: int
    spilled: int
    released: int

    def __str__(self) -> str:
        return _line(self)


def read_runs(folder: Path) -> list[Run]:
    """Read what `write_runs` wrote; nothing, if it did not."""
    path = folder / "largest.csv"
    if not path.exists():
        return []
    kinds: dict[str, Any] = {field.name: field.type for field in fields(Run)}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [Run(**{name: kinds[name](cell) for name, cell in row.items()}) for row in rows]


def write_runs(folder: Path, runs: Sequence[Run]) -> None:
    """Write the runs as CSV, as a table and as a figure."""
    with (folder / "largest.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Run)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(run) for run in runs)
    (folder / "largest.md").write_text(table(runs), encoding="utf-8")
    draw(folder / "largest.svg", runs)


def table(runs: Sequence[Run]) -> str:
    """Return the runs as a table in Markdown."""
    head = (
        "| users | rows | mechanism | seconds | CPU seconds | ns a row | peak GB "
        "| of it not files | spilled GB | items | the paper's |\n" + "|---" * 11 + "|\n"
    )
    return head + "".join(f"{_line(run)}\n" for run in runs)


def _line(run: Run) -> str:
    paper = PAPER.get(run.mechanism) if run.users == PAPER_USERS else None
    sizes = (run.peak_memory, run.anonymous_memory, run.spilled)
    cells = (
        f"{run.users:,}",
        f"{run.rows:,}",
        f"`{run.mechanism}`",
        f"{run.seconds:,.1f}",
        f"{run.cpu_seconds:,.1f}",
        f"{run.seconds / run.rows * 1e9:.0f}",
        *(f"{size / 1e9:.2f}" for size in sizes),
        "" if run.mechanism == GENERATE else f"{run.released:,}",
        f"{paper:,}" if paper else "",
    )
    return f"| {' | '.join(cells)} |"


def draw(path: Path, runs: Sequence[Run]) -> None:
    """Draw the figure as a file."""
    with rc_context(_STYLE):
        plot(runs).savefig(path, metadata={"Date": None, "Creator": None})


def plot(runs: Sequence[Run], names: Mapping[str, str] = MappingProxyType({})) -> Figure:
    """Plot time, memory and items against users, all on logarithmic axes; `names` are labels."""
    panels: dict[str, Callable[[Run], float]] = {
        "seconds": lambda run: run.seconds,
        "GB of memory (open, dashed: of disk)": lambda run: run.peak_memory / 1e9,
        "items released": lambda run: run.released,
    }
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    all_axes = figure.subplots(1, len(panels), sharex=True)
    for axes, (title, value) in zip(all_axes, panels.items(), strict=True):
        _panel(axes, runs, value)
        axes.set(title=title, xlabel="users", xscale="log", yscale="log")
    _panel(all_axes[1], runs, lambda run: run.spilled / 1e9, linestyle="--", fillstyle="none")
    for name, items in PAPER.items():
        colour, marker = _LINES[name]
        all_axes[-1].plot(PAPER_USERS, items, marker, color=colour, fillstyle="none", markersize=10)
    lines, labels = all_axes[0].get_legend_handles_labels()
    named = [names.get(label, label) for label in labels]
    figure.legend(lines, named, loc="outside lower center", ncols=len(named))
    place = {"xycoords": "axes fraction", "ha": "right"}
    all_axes[-1].annotate("open: the paper's", (0.98, 0.04), **place)
    return figure


def _panel(axes: Any, runs: Sequence[Run], value: Callable[[Run], float], **style: str) -> None:
    for name in dict.fromkeys(run.mechanism for run in runs):
        points = sorted((run.users, value(run)) for run in runs if run.mechanism == name)
        shown = [point for point in points if point[1] > 0]
        colour, marker = _LINES.get(name, _OTHER)
        users, values = zip(*shown, strict=True) if shown else ((), ())
        axes.plot(users, values, marker=marker, color=colour, label=name, **style)
