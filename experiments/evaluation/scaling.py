"""The paper's claims on size and on clusters, decided from the numbers of a run."""

from collections.abc import Callable, Sequence
from typing import Final

import datasets
from largest_page import PAPER, PAPER_USERS, Run

from evaluation.largest import NAMES
from evaluation.results import Results
from evaluation.verdicts import Verdict, count, listed, unmeasured

_PARALLEL: Final = ("weighted-gaussian", "sips")
_GREEDY: Final = ("dpsu", "gw")

_Line = list[tuple[float, float]]
"""Users and seconds."""


def linear(results: Results) -> Verdict:
    """Decide whether the time for each user stays, in both experiments on generated data."""
    found, notes = {}, []
    for lines in (_timed(results), _largest(results)):
        growth = {name: _growth(line) for name, line in lines.items() if len(line) > 1}
        for name, factor in growth.items():
            span = f"from {lines[name][0][0]:,.0f} to {lines[name][-1][0]:,.0f} users"
            found[f"{name} {span}"] = factor <= 1.5
            notes.append(f"{name} × {factor:.2f} {span}")
    if not found:
        return unmeasured("no times")
    return count(found, f"time for each user: {', '.join(notes)}")


def _timed(results: Results) -> dict[str, _Line]:
    return {
        NAMES[name]: [(p.x, p.estimate.value) for p in results.points("users", "", NAMES[name])]
        for name in _PARALLEL
    }


def _largest(results: Results) -> dict[str, _Line]:
    return {
        NAMES[name]: sorted((r.users, r.seconds) for r in results.runs() if r.mechanism == name)
        for name in _PARALLEL
    }


def _growth(line: _Line) -> float:
    (first, before), *_, (last, after) = line
    return (after / last) / (before / first)


def time_out(results: Results) -> Verdict:
    """Decide whether DPSU ends on two million users."""
    large = [p for p in results.points("users") if p.x >= 2e6]
    if not large:
        return unmeasured("fewer than 2 million users were timed")
    seconds = {p.mechanism: p.estimate.value for p in large}
    greedy = [r for r in results.runs() if r.mechanism == "gw" and r.users >= 1e7]
    return Verdict(
        "not confirmed",
        f"for DPSU: compiled, on one machine, it ends; 2 million users take "
        f"{listed(seconds, '.1f')} seconds. (The paper's text says “on subsets with”, the caption "
        f"“after”.) {_resources(greedy) or 'GW with 10 million users was not tried'}",
    )


def yields_of_largest(results: Results) -> Verdict:
    """Decide whether the paper's yields on Synthetic_80M are ours."""
    runs = [r for r in results.runs() if r.users == PAPER_USERS and r.mechanism in PAPER]
    if not runs:
        return unmeasured("nothing ran with 80 million users")
    ratios = {NAMES[r.mechanism]: r.released / PAPER[r.mechanism] for r in runs}
    items = ", ".join(
        f"{NAMES[r.mechanism]} {r.released:,} (× {ratios[NAMES[r.mechanism]]:.2f})" for r in runs
    )
    paper = datasets.by_name("synthetic").paper
    printed = f"; the paper's table says {paper.rows / 1e9:.2f}" if paper else ""
    return count(
        {name: abs(ratio - 1) <= 0.1 for name, ratio in ratios.items()},
        f"{items}. The data differs: as we read the paper's text, 80 million users have "
        f"{runs[0].rows / 1e9:.2f} billion rows{printed}",
    )


def out_of_memory(results: Results) -> Verdict:
    """Decide whether DPSU and GW end on Synthetic_80M, where they were tried."""
    greedy = [r for r in results.runs() if r.mechanism in _GREEDY]
    ended = [r for r in greedy if r.users == PAPER_USERS]
    rest = [NAMES[name] for name in _GREEDY if name not in {r.mechanism for r in ended}]
    sizes = {
        name: max(
            [p.x for p in results.points("users", "", name)]
            + [r.users for r in greedy if NAMES[r.mechanism] == name],
            default=0,
        )
        for name in rest
    }
    untried = f"not tried; most users with which they ran: {listed(sizes, ',.0f')}"
    if not ended:
        return unmeasured(untried)
    return Verdict("not confirmed", f"{_resources(ended)}{'; ' + untried if rest else ''}")


def _resources(runs: Sequence[Run]) -> str:
    return ", ".join(
        f"{NAMES[r.mechanism]} with {r.users:,} users takes {r.seconds:,.0f} s, "
        f"{r.peak_memory / 1e9:.1f} GB of memory and {r.spilled / 1e9:.1f} GB of disk"
        for r in runs
    )


def speed_up(
    experiment: str, *names: str, low: float = 0, high: float = float("inf")
) -> Callable[[Results], Verdict]:
    """Decide by medians whether two cores, or workers, are `low` to `high` times as fast as one."""

    def decide(results: Results) -> Verdict:
        lines = {name: results.points(experiment, "", name) for name in names}
        gains = {
            name: line[0].estimate.value / line[-1].estimate.value
            for name, line in lines.items()
            if len(line) > 1
        }
        if not gains:
            return unmeasured(f"this run has no times against {experiment}")
        found = {name: low <= gain <= high for name, gain in gains.items()}
        return count(found, f"two {experiment} against one, medians: × {listed(gains)}")

    return decide


def exchanges(results: Results) -> Verdict:
    """Decide whether a cluster exchanges data no more often than the paper's formula says."""
    rows = results.rows("exchanges")
    found = {row["rounds"]: int(row["exchanges"]) <= int(row["paper"]) for row in rows}
    ours = ", ".join(f"I = {r['rounds']}: {r['exchanges']} ({r['paper']})" for r in rows)
    if not rows:
        return unmeasured("this run has no cluster")
    return count(found, f"exchanges on a cluster, the paper's number in brackets: {ours}")


def communication(results: Results) -> Verdict:
    """Decide whether two workers are about as fast as one with the cores of both."""
    rows = {row["workers"]: row for row in results.rows("communication")}
    if not rows:
        return unmeasured("this run has no clusters")
    apart, together = (float(rows[workers]["seconds"]) for workers in ("2", "1"))
    shuffled, crossing, size = (
        int(rows["2"][f"{name}_bytes"]) / 1e6 for name in ("shuffled", "crossing", "input")
    )
    return Verdict(
        "confirmed" if apart <= 1.2 * together else "not confirmed",
        f"{apart:.2f} s with two workers of one core, {together:.2f} s with one of two: "
        f"{apart / together:.2f} times; {shuffled:.1f} MB are shuffled, and {crossing:.1f} of them "
        f"go from one worker to the other, of {size:.1f} MB of Parquet. All on one machine: "
        "through sockets, not over a cable",
    )
