"""The report: one HTML file with every table, figure and claim, made from the numbers of a run."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from matplotlib.figure import Figure

from evaluation import drawings, figures, printed, scaling_page, style
from evaluation.claims import CLAIMS
from evaluation.markup import cell, document, figure, folded, heading, number, paragraph, table
from evaluation.points import Point
from evaluation.results import Results

TITLE: Final = "DP-SIPS: the paper's evaluation, reproduced"


class Shown(NamedTuple):
    """A figure: its title, how it is drawn, and what it shows."""

    title: str
    draw: Callable[[list[Point]], Figure]
    caption: str


FIGURES: Final = {
    "epsilon": Shown(
        "Yield against ε",
        figures.epsilon,
        caption="Items released as ε grows, with δ as in the first conversion table; bars are 95 % "
        "confidence intervals, dashes mark mechanisms in which users take turns.",
    ),
    "delta": Shown(
        "Yield against δ",
        figures.delta,
        caption="Items released as δ grows, along the second conversion table. Its ε is 0.62; the "
        "paper's caption of this figure says 1.7, which no row of its tables has.",
    ),
    "ratio": Shown(
        "SIPS against r",
        figures.ratio,
        caption="How much of its best yield SIPS has at each ratio of budgets; shaded: where the "
        "paper finds the best.",
    ),
    "max_items": Shown(
        "SIPS against Δ0",
        figures.max_items,
        caption="How much of its best yield SIPS has at each bound on a user's items; shaded: "
        "where the paper finds almost no more change.",
    ),
    "users": Shown(
        "Runtime against users",
        figures.users,
        caption="Median time from file to released list in the memory engine, on generated data: "
        "in all, and for each user.",
    ),
    "cores": Shown(
        "Runtime against cores",
        figures.cores,
        caption="Median time from file to released list with one core and with two; whiskers are "
        "the fastest and the slowest run.",
    ),
    "workers": Shown(
        "Runtime against workers",
        figures.workers,
        caption="Median time on a standalone Spark cluster with one worker and with two, of one "
        "core each; DPSU and GW cannot run there.",
    ),
}


def write_page(folder: Path) -> Path:
    """Write index.html, and the figures as files, from the CSV files in the folder."""
    results = Results(folder)
    path = folder / "index.html"
    with style.styled():
        path.write_text(document(TITLE, _body(results)), encoding="utf-8")
    return path


def _body(results: Results) -> Iterator[str]:
    yield heading(1, TITLE)
    yield from _about(results)
    yield from _claims(results)
    yield from _data(results)
    yield from _accuracy(results)
    yield from _figures(results, "epsilon", "delta", "ratio", "max_items")
    yield from _rounds(results)
    yield from _iterated(results)
    yield from _figures(results, "users", "cores", "workers")
    yield from scaling_page.largest(results)
    yield from scaling_page.exchanges(results)
    yield from scaling_page.communication(results)
    yield from _drawings(results)
    yield from _conversions(results)
    yield from _appendix(results)


def _about(results: Results) -> Iterator[str]:
    run = results.run()
    last = list(run["experiments"].values())[-1]
    dates = [note["date"] for note in run["experiments"].values()]
    yield paragraph(
        "Every table and figure of the evaluation in “DP-SIPS: A simpler, more scalable mechanism "
        "for differentially private partition selection” (Swanberg, Desfontaines and Haney, PoPETs "
        "2023), measured again with the dp-sips library, and each claim of its text held against "
        "what came out."
    )
    if not run["files"]:
        yield paragraph("A quick run: generated data alone. It tests this page, not the paper.")
    facts = {
        "Date": f"{min(dates)} to {max(dates)}",
        "Machine": f"{last['machine']}{run['remark'] and '; ' + run['remark']}",
        "System": last["system"],
        "Versions": last["versions"],
        "Seeds": f"{', '.join(map(str, run['seeds']))}: one run each, wherever items are counted; "
        "± is a 95 % confidence interval of the mean (Student's t)",
        "Times": f"medians of {run['repeats']} runs in turns; "
        f"against cores, of {2 * run['repeats'] + 1}",
        "To repeat": "make paper DATA=DIR (QUICK=1: generated data alone)",
    }
    yield table(["", ""], [[cell(name), cell(text)] for name, text in facts.items()])
    sections = ("claims", "data", "accuracy", "figures", "conversions", "appendix")
    yield "<nav>" + "".join(f'<a href="#{name}">{name}</a>' for name in sections) + "</nav>"


def _claims(results: Results) -> Iterator[str]:
    verdicts = [(claim, claim.decide(results)) for claim in CLAIMS]
    counts: dict[str, int] = {}
    for _, verdict in verdicts:
        counts[verdict.status] = counts.get(verdict.status, 0) + 1
    yield heading(2, "Claims", "claims")
    yield paragraph(
        "What the paper says, what we take it to mean in numbers, and what we found; decided by "
        "code, from the tables below: "
        + ", ".join(f"{count} {status}" for status, count in counts.items())
        + ". Data sets that stand in for the paper's are named as themselves."
    )
    if small := results.small_parts():
        yield paragraph(
            f"Less than 5 % of the paper's users are in {', '.join(small)}: so few that most items "
            "are out of any mechanism's reach. No claim is decided by them.",
            "note",
        )
    yield table(
        ["the paper's claim", "found", ""],
        [
            [
                cell(claim.text, kind="claim"),
                f'<td class="status {v.status.replace(" ", "-")}">{v.status}</td>',
                cell(f"{v.finding}.", claim.measure and f"criterion: {claim.measure}"),
            ]
            for claim, v in verdicts
        ],
    )


def _data(results: Results) -> Iterator[str]:
    yield heading(2, "Data sets", "data")
    yield paragraph(
        "Users, rows and vocabulary as counted here, and below as the paper prints them. The "
        "paper's rows are documents, ours words. Files that were prepared for this project have "
        "the counts that the registry expects, unless noted."
    )
    rows = [row for row in results.rows("datasets") if row["counted_users"]]
    yield table(
        ["data set", "role", *("users", "rows", "vocabulary")],
        [
            [
                cell(row["data"], row["what"]),
                cell(row["role"], f"user: {row['user']}"),
                *(_counted(row, name) for name in ("users", "rows", "vocabulary")),
            ]
            for row in rows
        ],
    )


def _counted(row: dict[str, str], name: str) -> str:
    paper, expected, counted = (row[f"{who}_{name}"] for who in ("paper", "expected", "counted"))
    notes = [f"paper {int(paper):,}"] if paper else []
    if expected and counted and expected != counted:
        notes.append(f"expected {int(expected):,}")
    return number(f"{int(counted):,}", "; ".join(notes))


def _accuracy(results: Results) -> Iterator[str]:
    accuracy, likeness = results.accuracy(), results.likeness()
    columns = list(dict.fromkeys(name for row in accuracy.values() for name in row))
    yield heading(2, "Accuracy", "accuracy")
    yield paragraph(
        "Items released at the paper's main setting, with the paper's number below ours: of the "
        "same data set, or of the one that ours stands in for. Weighted Gaussian, SIPS and DPSU: "
        "1e-5-approximate 0.1-zCDP, Δ0 = 100, SIPS with I = 3 and r = 1/3; GW: ε = 1.7, "
        "δ = 8.1142e-5; exact accounting and ours: (ε, δ) = (1.765, 4.96e-5), which that zCDP "
        "implies. DPSU and GW have a buffer of 5 deviations (scales) of their noise: the paper "
        "does not print its own."
    )
    small = results.small_parts()
    lines: list[list[str]] = []
    for data, row in accuracy.items():
        like = likeness.get(data, "")
        theirs = {} if data in small else printed.ACCURACY.get(like, {})
        role = {"": "not in the paper", data: ""}.get(like, f"stands in for {like}")
        lines.append([cell(data, role), *_beside({n: str(e) for n, e in row.items()}, theirs)])
    yield table(["data set", *columns], lines)
    yield heading(2, "Figures", "figures")


def _beside(ours: dict[str, str], theirs: dict[str, int]) -> list[str]:
    """Return our numbers with the paper's below."""
    return [
        number(text, f"paper {theirs[name]:,}" if name in theirs else "")
        for name, text in ours.items()
    ]


def _figures(results: Results, *names: str) -> Iterator[str]:
    for name in names:
        title, draw, caption = FIGURES[name]
        yield heading(3, title)
        if points := results.points(name):
            yield figure(style.save(draw(points), results.folder / "figures", name), caption)
        else:
            trouble = results.run()["experiments"].get(name, {}).get("trouble")
            yield paragraph(f"Not measured in this run{': ' + trouble if trouble else ''}.", "note")


def _rounds(results: Results) -> Iterator[str]:
    points = results.points("rounds")
    yield heading(3, "Iterations")
    if points:
        yield paragraph(
            f"SIPS's yield on {points[0].data} against I, with ρ = 0.1, δ = 1e-5, r = 1/3 and "
            "Δ0 = 50; the paper's numbers are of its Reddit."
        )
        yield table(
            ["I", "items", "paper"],
            [
                [number(f"{p.x:.0f}"), number(str(p.estimate)), number(f"{theirs:,}")]
                for p, theirs in zip(points, printed.ROUNDS.values(), strict=False)
            ],
        )


def _iterated(results: Results) -> Iterator[str]:
    points = results.points("iterated")
    yield heading(3, "Iterating DPSU")
    if points:
        yield paragraph(
            "DPSU's yield where it runs once, or two or three times on what is not released yet, "
            "with ρ = 0.1 and δ = 1e-5 in all, shared out as in SIPS (r = 1/3), and Δ0 = 100."
        )
        runs = sorted({p.x for p in points})
        yield table(
            ["data", *(f"{n:.0f}" for n in runs)],
            [
                [data, *(number(str(p.estimate)) for p in results.points("iterated", data))]
                for data in dict.fromkeys(p.data for p in points)
            ],
        )


def _drawings(results: Results) -> Iterator[str]:
    folder = results.folder / "figures"
    yield heading(3, "What SIPS does")
    yield figure(
        style.save(drawings.histograms(), folder, "histograms"),
        "Noisy weights of 24 items of made-up data, and the threshold (dashed): Weighted Gaussian, "
        "then the rounds of SIPS. Blue is released, with the number of such items above; an orange "
        "outline is the weight in the round before.",
    )
    yield heading(3, "What can run in parallel")
    yield figure(
        style.save(drawings.parallelism(), folder, "parallelism"),
        "Light boxes are parts of the data, dark ones histograms, arrows steps: Weighted Gaussian "
        "meets once, SIPS once a round, and greedy mechanisms after every user.",
    )


def _conversions(results: Results) -> Iterator[str]:
    yield heading(2, "Conversions", "conversions")
    yield paragraph(
        "What δ_CDP-approximate ρ-zCDP means as (ε, δ)-DP by the paper's corollary, and the α of "
        "its infimum: as printed, and as the library computes them."
    )
    for name in ("vary_eps", "vary_delta"):
        yield heading(3, name)
        yield table(
            ["ρ", "δ_CDP", "ε", "δ", "δ, paper", "α", "α, paper"],
            [_conversion(row) for row in results.rows("conversions") if row["table"] == name],
        )


def _conversion(row: dict[str, str]) -> list[str]:
    delta, theirs = float(row["delta"]), float(row["delta_paper"])
    texts = [row["rho"], f"{float(row['delta_cdp']):.0e}", row["epsilon"], f"{delta:.3e}"]
    texts += [f"{theirs:.2e}", f"{float(row['alpha']):.3f}", row["alpha_paper"]]
    return [number(text) for text in texts]


def _appendix(results: Results) -> Iterator[str]:
    run: dict[str, Any] = results.run()["experiments"]
    if runs := results.runs():  # made by a script of its own, at its own time
        trouble = run.get("largest", {}).get("trouble", "")
        run["largest"] = {"seconds": sum(r.seconds for r in runs), "trouble": trouble}
    yield heading(2, "Appendix", "appendix")
    yield paragraph("The numbers, as CSV beside this page, and how long it took to measure them.")
    yield table(
        ["file", "seconds", ""],
        [
            [cell(f"{name}.csv"), number(f"{note['seconds']:,.0f}"), cell(note["trouble"])]
            for name, note in run.items()
        ],
    )
    absent = [row for row in results.rows("datasets") if row["how_to_get"]]
    if absent:
        yield folded(
            "Data sets of the paper that were not at hand",
            paragraph("To have them in the next run, with DATA=DIR:"),
            table(
                ["data set", "how to get it"],
                [
                    [cell(row["data"]), cell(row["how_to_get"].removeprefix(f"{row['data']}: "))]
                    for row in absent
                ],
            ),
        )
