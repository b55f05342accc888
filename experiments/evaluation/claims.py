"""The claims of the paper's text, each decided from the numbers of a run."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from measuring import Estimate
from scipy.stats import spearmanr

import dp_sips
from evaluation import scaling
from evaluation.points import Point
from evaluation.printed import MAIN
from evaluation.results import Results
from evaluation.verdicts import Status, Verdict, count, listed, unmeasured

BY_ROW: Final = ("npm_deps", "retail", "amazon_beauty")
"""Data whose rows are the paper's observations. Elsewhere those are texts, each of them a user."""

SHORT_TEXTS: Final = ("jeopardy",)
"""Not the paper's, but like its Finance: headlines are as short as a quiz's clues."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we take it to mean in numbers, and how that is decided."""

    text: str
    measure: str
    decide: Callable[[Results], Verdict]


def _of_paper(results: Results, *wanted: str) -> dict[str, dict[str, Estimate]]:
    """Return the accuracy on the paper's data sets and stand-ins; on some of them, where named.

    Small parts of the paper's data can tell nothing about the whole.
    """
    likeness, small = results.likeness(), results.small_parts()
    table = results.accuracy()
    return {
        data: row
        for data, row in table.items()
        if data in likeness and data not in small and (not wanted or likeness[data] in wanted)
    }


def _ratio(row: Mapping[str, Estimate], one: str, other: str) -> float:
    return row[one].value / max(row[other].value, 1)


def _accuracy_ratio(one: str, other: str, low: float, high: float) -> Callable[[Results], Verdict]:
    """Decide whether a ratio of items released lies between bounds on all of the paper's data."""

    def decide(results: Results) -> Verdict:
        paper = {d: _ratio(row, one, other) for d, row in _of_paper(results).items()}
        rest = {d: _ratio(r, one, other) for d, r in results.accuracy().items() if d not in paper}
        finding = f"{one} / {other}: {listed(paper)}"
        if rest:
            finding += f"; elsewhere: {listed(rest)}"
        return count({d: low <= ratio <= high for d, ratio in paper.items()}, finding)

    return decide


def _below_both(results: Results) -> Verdict:
    likeness = results.likeness()
    below = [
        data
        for data, row in _of_paper(results).items()
        if all(row["SIPS"].high < row[other].low for other in ("DPSU", "GW"))
    ]
    if "finance" not in {likeness[data] for data in _of_paper(results)}:
        return unmeasured("no Finance, and nothing of its size that stands in for it")
    right = all(likeness[data] == "finance" for data in below) and bool(below)
    rest = [
        data
        for data, row in results.accuracy().items()
        if data not in likeness
        and all(row["SIPS"].high < row[other].low for other in ("DPSU", "GW"))
    ]
    finding = (
        f"below both: {', '.join(below) or 'none'} (not in the paper: {', '.join(rest) or 'none'})"
    )
    return Verdict("confirmed" if right else "not confirmed", finding)


def _gw_against_gaussian(mechanism: str) -> Callable[[Results], Verdict]:
    def decide(results: Results) -> Verdict:
        table = _of_paper(results, "imdb", "wikipedia")
        ratios = {d: _ratio(row, mechanism, "Weighted Gaussian") for d, row in table.items()}
        finding = f"{mechanism} / Weighted Gaussian: {listed(ratios)}"
        return count({d: ratio < 1 for d, ratio in ratios.items()}, finding)

    return decide


def _gw_on_short_texts(results: Results) -> Verdict:
    short = {d: row for d, row in results.accuracy().items() if d in SHORT_TEXTS}
    table = _of_paper(results, "finance") | short
    found, notes = {}, {}
    for data, row in table.items():
        rivals = {name: row[name].value for name in ("Weighted Gaussian", "SIPS", "DPSU")}
        rival = max(rivals, key=rivals.__getitem__)
        for mechanism in ("GW", "GW, deduplicated"):
            name = f"{data} {mechanism}"
            found[name] = row[mechanism].low > row[rival].high
            notes[f"{name} / {rival}"] = _ratio(row, mechanism, rival)
    return count(found, listed(notes))


def _vocabulary(results: Results) -> Verdict:
    observed = {
        row["data"]: row["counted_rows" if row["data"] in BY_ROW else "counted_users"]
        for row in results.rows("datasets")
        if row["data"] in BY_ROW or row["user"] == "each text is a user"
    }
    sizes = {
        row["data"]: int(row["counted_vocabulary"]) / int(observed[row["data"]])
        for row in results.rows("datasets")
        if observed.get(row["data"]) and row["data"] not in results.small_parts()
    }
    table = {d: row for d, row in results.accuracy().items() if d in sizes}
    if len(table) < 5:
        return unmeasured("too few data sets for an order")
    gains = {d: _ratio(row, "GW", "Weighted Gaussian") for d, row in table.items()}
    order = float(spearmanr([sizes[d] for d in gains], list(gains.values())).statistic)
    ranked = sorted(gains, key=lambda d: sizes[d])
    pairs = ", ".join(f"{d} {sizes[d]:.2f} → {gains[d]:.2f}" for d in ranked)
    status: Status = (
        "confirmed" if order <= -0.7 else "in part" if order <= -0.3 else "not confirmed"
    )
    return Verdict(
        status,
        f"rank correlation {order:.2f} over {len(gains)} data sets; vocabulary / observations → "
        f"GW / Weighted Gaussian: {pairs}",
    )


def _worse_with_epsilon(results: Results) -> Verdict:
    for data, like in results.likeness().items():
        gw, plain = (results.points("epsilon", data, m) for m in ("GW", "Weighted Gaussian"))
        if like == "imdb" and gw:
            ratios = {
                f"ε {a.x:g}:": a.estimate.value / b.estimate.value
                for a, b in zip(gw, plain, strict=True)
                if b.estimate.value >= 1
            }
            *before, last = ratios.values()
            status: Status = "confirmed" if last < min(before) else "not confirmed"
            return Verdict(status, f"GW / Weighted Gaussian on {data}: {listed(ratios)}")
    return unmeasured("no IMDb")


def _same_order(*experiments: str) -> Callable[[Results], Verdict]:
    def decide(results: Results) -> Verdict:
        found, notes = {}, []
        for experiment in experiments:
            for data in dict.fromkeys(p.data for p in results.points(experiment)):
                swapped = _swaps(results.points(experiment, data))
                found[f"{data} along {experiment}"] = not swapped
                notes.append(f"{data} along {experiment}: {', '.join(swapped) or 'no pair'} swaps")
        return count(found, "; ".join(notes))

    return decide


def _swaps(points: Iterable[Point]) -> list[str]:
    """Return pairs of the paper's mechanisms of which now one, now the other is clearly ahead."""
    at: dict[float, dict[str, Estimate]] = {}
    for point in points:
        at.setdefault(point.x, {})[point.mechanism] = point.estimate
    swapped = []
    for one, other in itertools.combinations(("Weighted Gaussian", "SIPS", "DPSU", "GW"), 2):
        ahead = {
            row[one].value > row[other].value for row in at.values() if _differ(row, one, other)
        }
        if len(ahead) > 1:
            swapped.append(f"{one} and {other}")
    return swapped


def _differ(row: Mapping[str, Estimate], one: str, other: str) -> bool:
    return row[one].low > row[other].high or row[one].high < row[other].low


def _each_data(
    experiment: str, judge: Callable[[dict[float, float]], tuple[bool, str]]
) -> Callable[[Results], Verdict]:
    """Decide about the curve of each data set by itself."""

    def decide(results: Results) -> Verdict:
        found, notes = {}, []
        for data in dict.fromkeys(p.data for p in results.points(experiment)):
            curve = {p.x: p.estimate.value for p in results.points(experiment, data)}
            found[data], note = judge(curve)
            notes.append(f"{data} {note}")
        return count(found, ", ".join(notes))

    return decide


def _best_between(low: float, high: float) -> Callable[[dict[float, float]], tuple[bool, str]]:
    def judge(curve: dict[float, float]) -> tuple[bool, str]:
        best = max(curve, key=lambda x: curve[x])
        return low <= best <= high, f"best at {best:.3g}"

    return judge


def _even_split(curve: dict[float, float]) -> tuple[bool, str]:
    share = curve[1.0] / max(curve.values())
    return share < 0.99, f"{share - 1:+.1%}"


def _near_best(curve: dict[float, float]) -> tuple[bool, str]:
    worst = min(y for x, y in curve.items() if 0.2 <= x <= 0.4) / max(curve.values())
    return worst >= 0.95, f"{worst - 1:+.1%}"


def _flat_above_100(curve: dict[float, float]) -> tuple[bool, str]:
    changes = [y / curve[100] - 1 for x, y in curve.items() if x > 100]
    most = max(changes, key=abs)
    return abs(most) <= 0.05, f"{most:+.1%}"


def _more_rounds(curve: dict[float, float]) -> tuple[bool, str]:
    gain = curve[10] / curve[3] - 1
    note = f"I = 10 against 3: {gain:+.1%}; I = 3 against 1: {curve[3] / curve[1] - 1:+.1%}"
    return 0 <= gain <= 0.15, note


def _no_boost(curve: dict[float, float]) -> tuple[bool, str]:
    gains = {runs: items / curve[1] - 1 for runs, items in curve.items() if runs > 1}
    return max(gains.values()) <= 0.01, ", ".join(f"{gain:+.1%}" for gain in gains.values())


def _conversions(results: Results) -> Verdict:
    rows = results.rows("conversions")
    if not rows:
        return unmeasured("no conversions")
    delta = max(abs(float(r["delta"]) / float(r["delta_paper"]) - 1) for r in rows)
    alpha = [r for r in rows if abs(float(r["alpha"]) - float(r["alpha_paper"])) > 1e-3]
    apart = ", ".join(
        f"ρ = {r['rho']}, ε = {r['epsilon']}: {r['alpha_paper']} printed, {float(r['alpha']):.3f}"
        for r in alpha
    )
    status: Status = "confirmed" if delta <= 0.005 else "not confirmed"
    if alpha and status == "confirmed":
        status = "in part"
    finding = f"δ within {delta:.2%}, of three printed digits; α differs in {len(alpha)} rows"
    return Verdict(status, f"{finding} ({apart})" if apart else finding)


def _thresholds(_: Results) -> Verdict:
    plans = [
        dp_sips.plan(m, rho=MAIN.rho, delta=MAIN.delta_cdp, max_items=100)
        for m in ("weighted-gaussian", "sips")
    ]
    (plain,), rounds = ([step.threshold for step in plan.rounds] for plan in plans)
    falling = list(rounds) == sorted(rounds, reverse=True)
    status: Status = "confirmed" if falling and plain < min(rounds) else "not confirmed"
    listed = ", ".join(f"{threshold:.1f}" for threshold in rounds)
    return Verdict(status, f"Weighted Gaussian {plain:.1f}; SIPS {listed}")


CLAIMS: Final = (
    Claim(
        "The accuracy of SIPS is consistently approximately double that of Weighted Gaussian.",
        "between 1.5 and 2.5 times as many items (the paper's own table: 1.6 to 2.1)",
        _accuracy_ratio("SIPS", "Weighted Gaussian", 1.5, 2.5),
    ),
    Claim(
        "In general, SIPS's performance is on par with DPSU's.",
        "at least 0.9 times as many items (the paper's own table: 0.95 to 1.33)",
        _accuracy_ratio("SIPS", "DPSU", 0.9, float("inf")),
    ),
    Claim(
        "SIPS performs worse than both GW and DPSU on one data set only, Finance.",
        "intervals apart from both, on Finance or its stand-ins and nowhere else",
        _below_both,
    ),
    Claim(
        "GW's accuracy on IMDb and Wikipedia is below even that of Weighted Gaussian.",
        "fewer items on each",
        _gw_against_gaussian("GW"),
    ),
    Claim(
        "Without duplicates, GW on IMDb and Wikipedia is again worse than Weighted Gaussian.",
        "fewer items on each",
        _gw_against_gaussian("GW, deduplicated"),
    ),
    Claim(
        "GW is significantly better than the others on Finance, with and without duplicates.",
        "above the paper's other three, intervals apart; jeopardy, with texts as short, stands in",
        _gw_on_short_texts,
    ),
    Claim(
        "GW's accuracy depends on vocabulary size relative to observations: good where the ratio "
        "is small, poor where it is large.",
        "rank correlation of that ratio with GW / Weighted Gaussian at most −0.7, in part −0.3; "
        "no small parts, and no authors with an unknown number of texts",
        _vocabulary,
    ),
    Claim(
        "GW's poor relative accuracy on IMDb worsens at higher levels of ε.",
        "GW / Weighted Gaussian lowest at the highest ε",
        _worse_with_epsilon,
    ),
    Claim(
        "The relative accuracy of each algorithm remains consistent across privacy parameters.",
        "no two of the paper's four swap places, with intervals apart",
        _same_order("epsilon", "delta"),
    ),
    Claim(
        "The accuracy is maximised for r in [0.1, 0.4].",
        "the best of those tried is in there, on each data set",
        _each_data("ratio", _best_between(0.1, 0.4)),
    ),
    Claim(
        "An even split of the budget (r = 1) yields lower accuracy than geometric growth.",
        "at least 1 % below the best r",
        _each_data("ratio", _even_split),
    ),
    Claim(
        "The accuracy is largely invariant to r within what is recommended, 0.2 to 0.4.",
        "nowhere in there more than 5 % below the best of all",
        _each_data("ratio", _near_best),
    ),
    Claim(
        "Increasing Δ0 past 100 has almost no effect.",
        "at most 5 % more or less than at Δ0 = 100",
        _each_data("max_items", _flat_above_100),
    ),
    Claim(
        "The accuracy is largest for some Δ0 in [5, 150].",
        "the best of those tried is in there, on each data set",
        _each_data("max_items", _best_between(5, 150)),
    ),
    Claim(
        "The accuracy only slightly increases with the number of iterations.",
        "I = 10 gives 0 to 15 % more than I = 3 (the paper's own table: 5 %)",
        _each_data("rounds", _more_rounds),
    ),
    Claim(
        "Tighter accounting by numerical methods would not be meaningfully different.",
        "SIPS with exact accounting gives at most 3 % more items at the same (ε, δ)",
        _accuracy_ratio("SIPS, exact accounting", "SIPS", 0.97, 1.03),
    ),
    Claim(
        "Weighted Gaussian's threshold is lower than each of SIPS's, which fall round by round.",
        "at the main setting",
        _thresholds,
    ),
    Claim(
        "The conversions between zCDP and DP (tables of the appendix).",
        "δ within 0.5 %, α within 0.001",
        _conversions,
    ),
    Claim(
        "SIPS and Weighted Gaussian scale well to large data sets.",
        "time for each user grows at most by half over the sizes tried",
        scaling.linear,
    ),
    Claim(
        "DPSU and GW time out on subsets with 2 and 10 million users.",
        "whether DPSU ends at 2 million",
        scaling.time_out,
    ),
    Claim(
        "The runtimes of Weighted Gaussian and SIPS decrease as nodes are added.",
        "two workers of a Spark cluster at least 1.2 times as fast as one",
        scaling.speed_up("workers", "Weighted Gaussian", "SIPS", low=1.2),
    ),
    Claim(
        "Weighted Gaussian and SIPS get faster on larger machines.",
        "two cores at least 1.2 times as fast as one",
        scaling.speed_up("cores", "Weighted Gaussian", "SIPS", low=1.2),
    ),
    Claim(
        "The sizes of machines make little difference to the runtimes of DPSU and GW.",
        "two cores at most 1.2 times as fast as one; the part that is parallel here is reading",
        scaling.speed_up("cores", "DPSU", "GW", high=1.2),
    ),
    Claim(
        "The runtimes of DPSU and GW remain approximately the same as nodes are added.",
        "",
        lambda _: unmeasured(
            "users take turns in them, and the Spark engine refuses them: there is no run on a "
            "cluster to which nodes could be added"
        ),
    ),
    Claim(
        "From Synthetic_80M, Weighted Gaussian releases 711,601 items and SIPS 1,137,467.",
        "within 10 % of each, on generated data with 80 million users",
        scaling.yields_of_largest,
    ),
    Claim(
        "DPSU and GW run out of memory on Synthetic_80M.",
        "whether they end with 80 million users, on the machine of this page",
        scaling.out_of_memory,
    ),
    Claim(
        "The communication overhead of SIPS between machines is small.",
        "two workers of one core take at most 1.2 times as long as one worker of two cores",
        scaling.communication,
    ),
    Claim(
        "SIPS needs 3(I − 1) + 2 rounds of MapReduce.",
        "at most as many exchanges of data on a cluster, as Spark's event log has them",
        scaling.exchanges,
    ),
    Claim(
        "Iterating DPSU does not boost its accuracy.",
        "two and three runs that share the budget, with r = 1/3: at most 1 % above one run",
        _each_data("iterated", _no_boost),
    ),
)
"""In the order of the paper."""
