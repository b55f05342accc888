"""The page's sections on the largest data set and on clusters."""

from collections.abc import Iterator
from typing import Final

from largest_page import GENERATE, PAPER, PAPER_USERS, Run, plot

from evaluation import style
from evaluation.largest import NAMES
from evaluation.markup import cell, figure, heading, number, paragraph, table
from evaluation.results import Results

_HEAD: Final = ("users", "", "seconds", "CPU seconds", "ns a row", "memory", "disk", "items")


def largest(results: Results) -> Iterator[str]:
    """Show time, memory, disk and items as users multiply."""
    yield heading(3, "The largest data set")
    runs = sorted(results.runs(), key=lambda run: run.users)
    if not runs:
        yield _unmeasured(results, "largest")
        return
    yield paragraph(
        "The paper's generated data, Synthetic_80M, and smaller ones made alike, from files to "
        "released list in the memory engine; each run has a process of its own, once. Memory is "
        "the peak of all that is resident, pages of files included; disk is what the engine "
        "spilled, beside its input."
    )
    drawn = style.save(plot(runs, NAMES), results.folder / "figures", "largest")
    yield figure(drawn, "Time, memory and items against users; both axes grow by factors.")
    yield table(_HEAD, [_run(run) for run in runs])


def _run(run: Run) -> list[str]:
    paper = PAPER.get(run.mechanism) if run.users == PAPER_USERS else None
    return [
        number(f"{run.users:,}", f"{run.rows:,} rows"),
        cell(NAMES.get(run.mechanism, run.mechanism)),
        number(f"{run.seconds:,.1f}"),
        number(f"{run.cpu_seconds:,.1f}"),
        number(f"{run.seconds / run.rows * 1e9:.0f}"),
        number(f"{run.peak_memory / 1e9:.2f} GB"),
        number(f"{run.spilled / 1e9:.2f} GB"),
        number(
            "" if run.mechanism == GENERATE else f"{run.released:,}",
            f"paper {paper:,}" if paper else "",
        ),
    ]


def exchanges(results: Results) -> Iterator[str]:
    """Show exchanges of data against rounds of SIPS."""
    yield heading(3, "Exchanges")
    rows = results.rows("exchanges")
    if not rows:
        yield _unmeasured(results, "exchanges")
        return
    yield paragraph(
        "How often SIPS exchanges data between the workers of a Spark cluster, as the event log "
        "has it: once by user, and once a round by item, where the paper's has 3(I − 1) + 2. Items "
        "are integers; text of more than 15 bytes takes one more. I = 1 is Weighted Gaussian."
    )
    yield table(
        ["I", "exchanges", "paper", "MB"],
        [
            [
                *(number(row[name]) for name in ("rounds", "exchanges", "paper")),
                number(f"{int(row['bytes']) / 1e6:.1f}"),
            ]
            for row in rows
        ],
    )


def communication(results: Results) -> Iterator[str]:
    """Show times and bytes of workers apart, and of one with their cores."""
    yield heading(3, "Communication")
    rows = results.rows("communication")
    if not rows:
        yield _unmeasured(results, "communication")
        return
    yield paragraph(
        f"SIPS on {int(rows[0]['rows']):,} generated rows, on two Spark clusters of this machine "
        f"in turns, medians of {rows[0]['runs']}. Each core is held by one worker alone, and what "
        "workers fetch from each other goes through sockets. A real network is slower: the bytes "
        "that cross are what to look at."
    )
    yield table(
        ["", "seconds", "MB shuffled", "MB from one worker to another", "MB of Parquet read"],
        [
            [
                cell(f"workers: {row['workers']}, cores of each: {row['cores']}"),
                number(
                    f"{float(row['seconds']):.2f}",
                    f"{float(row['low']):.2f} to {float(row['high']):.2f}",
                ),
                *(
                    number(f"{int(row[f'{name}_bytes']) / 1e6:.1f}")
                    for name in ("shuffled", "crossing", "input")
                ),
            ]
            for row in rows
        ],
    )


def _unmeasured(results: Results, name: str) -> str:
    return paragraph(f"Not measured in this run: {results.trouble(name)}.", "note")
