"""Draws the figures of docs/mechanisms.md: what mechanisms do, by the numbers of their own plans.

    python experiments/mechanism_figures.py --out docs/figures

All are for (ε, δ) = (1, 1e-5). Users and noise come from fixed seeds, and no date is written, so
that the same versions draw the same files. Seeds are chosen so that something happens in each
round. Users are made up, and the noise is not the one that releases use: nothing here is private.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

from dp_sips.mechanisms import (
    Cumulative,
    Dpsu,
    FlatRule,
    Gw,
    Mad,
    Mad2R,
    Mechanism,
    PolicyLaplace,
    Single,
    Sips,
    SipsRule,
    WeightedGaussian,
)
from dp_sips.mechanisms.adaptive import WIDE_BITS, Spread
from dp_sips.mechanisms.auto import _LEAN, _LONG_LISTS, _SHORT_LISTS
from dp_sips.mechanisms.base import EpsilonDelta
from dp_sips.mechanisms.claims import CLAIMS
from dp_sips.mechanisms.turns import Proportional
from dp_sips.privacy.arrays import Bools, Floats
from dp_sips.privacy.weights import UNIT, WHOLE_CLAIM

ASKED: Final = EpsilonDelta(1.0, 1e-5)
SEED: Final = 7
MAX_ITEMS: Final = 20
WIDTH: Final = 7.2
"""Inches: at 700 pixels, letters are 12 pixels high."""

BLUE, ORANGE, GREEN, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#767676", "#DDDDDD"
NAMES: Final = ("tea", "bread", "milk", "jam", "salt", "rice", "figs", "saffron")
POPULAR: Final = (0.55, 0.4, 0.24, 0.17, 0.13, 0.1, 0.05, 0.02)
"""How many of the users have each of `NAMES`."""


def rounds_of(mechanism: Mechanism, max_items: int = MAX_ITEMS) -> Any:
    """Return the rounds of a mechanism's plan."""
    return mechanism.design(ASKED, max_items).rounds


def crowd(users: int, popular: tuple[float, ...] = POPULAR) -> Bools:
    """Return who has what, a row for each user; nobody has nothing."""
    held = np.random.default_rng(SEED).random((users, len(popular))) < popular
    return held[held.any(axis=1)]


@contextmanager
def panels(count: int, height: float = 2.7, **options: Any) -> Iterator[tuple[Figure, Any]]:
    """Give a figure with panels side by side, in the style of all."""
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with rc_context({"svg.hashsalt": "dp-sips", "svg.fonttype": "path", **style}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, figure.subplots(1, count, squeeze=False, **options)[0]


def gaussian_weights(held: Bools) -> Floats:
    """Return the sums of 1/√k over each item's holders."""
    sizes = np.maximum(held.sum(axis=1), 1)
    return np.asarray((held / np.sqrt(sizes)[:, None]).sum(axis=0))


def draw_round(axes: Any, weights: Floats, noisy: Floats, threshold: float) -> None:
    """Draw weights as bars, noise as whiskers that end in a dot, and the threshold."""
    there, found = weights > 0, (weights > 0) & (noisy >= threshold)
    places = np.arange(len(weights))
    axes.bar(places, weights, color=np.where(found, BLUE, PALE), edgecolor=GREY, linewidth=0.6)
    axes.vlines(places[there], weights[there], noisy[there], color="black", linewidth=1)
    axes.plot(places[there], noisy[there], "o", color="black", markersize=4)
    axes.axhline(threshold, color=ORANGE, linestyle="--", linewidth=1.4)
    axes.set_xticks(places, NAMES, rotation=90)


def draw_weighted_gaussian(path: Path) -> None:
    """Draw what a user gives, and a round of noise and a threshold."""
    step = rounds_of(WeightedGaussian())[0]
    weights = gaussian_weights(crowd(140))
    noisy = weights + step.sigma * np.random.default_rng(2).normal(size=len(weights))
    with panels(2, width_ratios=(2, 3)) as (figure, (left, right)):
        sizes = np.arange(1, MAX_ITEMS + 1)
        left.plot(sizes, 1 / np.sqrt(sizes), "o", color=BLUE, markersize=4)
        left.set(xlabel="items a user has", ylabel="weight for each of them", ylim=(0, 1.05))
        draw_round(right, weights, noisy, step.threshold)
        _name_line(right, step.threshold, "threshold")
        right.set(ylabel="weight (dot: with noise)", title="blue: released")
        figure.savefig(path, metadata=PLAIN)


def draw_sips(path: Path) -> None:
    """Draw three rounds; what one finds leaves the sets, and the rest weighs more."""
    held, rng = crowd(260), np.random.default_rng(0)
    with panels(3, 2.9, sharey=True) as (figure, all_axes):
        for number, (axes, step) in enumerate(zip(all_axes, rounds_of(Sips()), strict=True), 1):
            weights = gaussian_weights(held)
            noisy = weights + step.sigma * rng.normal(size=len(weights))
            draw_round(axes, weights, noisy, step.threshold)
            axes.set_title(f"round {number}: σ = {step.sigma:.1f}")
            _name_line(axes, step.threshold, "threshold")
            held = held & ~(noisy >= step.threshold)
        all_axes[0].set_ylabel("weight (dot: with noise)")
        figure.savefig(path, metadata=PLAIN)


def _name_line(axes: Any, level: float, name: str) -> None:
    """Write a level's name above its line, at the right end."""
    axes.annotate(
        name, (1, level), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", ha="right", color=ORANGE,
    )  # fmt: skip


def follow_evidence(held: Bools, rounds: Any) -> tuple[Floats, list[int], list[int]]:
    """Run cumulative evidence; return its course, and the rounds of release and of dropping.

    The course has a row for each round, and stops (nan) where an item has left.
    """
    rng, items = np.random.default_rng(SEED), held.shape[1]
    total, claims = np.zeros(items), np.full(items, float(WHOLE_CLAIM))
    course = np.full((len(rounds), items), np.nan)
    released, dropped = [-1] * items, [-1] * items
    for number, step in enumerate(rounds):
        squares = held * claims
        weights = np.sqrt(squares / np.maximum(squares.sum(axis=1), 1)[:, None]).sum(axis=0)
        noisy = weights + step.sigma * rng.normal(size=items)
        there = claims > 0
        total += np.where(there, step.count * noisy, 0)
        average = total / step.counted
        course[number, there] = average[there]
        for item in np.flatnonzero(there):
            if average[item] >= step.threshold:
                released[item] = number
            elif average[item] < step.edges[0]:
                dropped[item] = number
        kept = np.array(CLAIMS, dtype=float)[np.searchsorted(step.edges, average, side="right")]
        claims = np.where(there & (average < step.threshold), kept, 0)
    return course, released, dropped


def draw_cumulative(path: Path) -> None:
    """Draw some items' evidence between thresholds that fall and drop levels that rise."""
    rounds = rounds_of(Cumulative(), 100)
    popular = tuple(np.geomspace(0.35, 0.005, 40).tolist())
    course, released, dropped = follow_evidence(crowd(400, popular), rounds)
    numbers = np.arange(1, len(rounds) + 1)
    with panels(1, 3.4) as (figure, (axes,)):
        for ends, colour in ((released, BLUE), (dropped, GREY)):
            for item in _spread_out(ends):
                axes.plot(numbers, course[:, item], "-", color=colour, linewidth=1.2)
                last = ends[item]
                mark = "o" if ends is released else "x"
                axes.plot(numbers[last], course[last, item], mark, color=colour, markersize=6)
        axes.plot(numbers, [r.threshold for r in rounds], "--", color=ORANGE, linewidth=1.6)
        axes.plot(numbers, [r.edges[0] for r in rounds], ":", color="black", linewidth=1.6)
        axes.text(5.2, 45, "released above", color=ORANGE)
        axes.text(5.2, -9, "given up below", color="black")
        axes.set(xlabel="round", xlim=(2, len(rounds) + 0.3), ylim=(-30, 85), xticks=numbers[1::3])
        axes.set_ylabel("evidence (average noisy weight)")
        axes.set_title("● released   × given up", fontsize=9)
        figure.savefig(path, metadata=PLAIN)


def _spread_out(ends: list[int], most: int = 6) -> list[int]:
    """Return items that end in different rounds, up to a given number."""
    by_round = {end: item for item, end in enumerate(ends) if end > 0}
    ordered = [by_round[end] for end in sorted(by_round)]
    return ordered[:: max(1, -(-len(ordered) // most))]


def gaussian_chance(weights: Floats, step: Any) -> Floats:
    """Return the chance that a weight with a round's noise reaches its threshold."""
    from scipy.special import ndtr

    return np.asarray(ndtr((weights - step.threshold) / step.sigma))


def draw_coins(path: Path) -> None:
    """Draw chances by weight in the last round, and by holders in all of them."""
    shown = ((SipsRule(), BLUE, "-"), (FlatRule(), GREEN, "-"), (Sips(), ORANGE, "--"))
    weights, holders = np.arange(0, 45, 0.125), np.arange(1.0, 161.0)
    with panels(2, 2.9, sharey=True) as (figure, (left, right)):
        for mechanism, colour, line in shown:
            steps, name = rounds_of(mechanism, 50), mechanism.name
            right.plot(holders, mechanism.chances(steps, holders, 50), line, color=colour)
            if isinstance(mechanism, Sips):
                chance, name = gaussian_chance(weights, steps[-1]), "sips (noise, threshold)"
            else:
                chance = steps[-1].coin.odds((weights * UNIT).astype(np.uint64))[0]
            left.plot(weights, chance, line, color=colour, label=name)
        left.set(
            xlabel="weight (for flat-rule, by its own weights)",
            ylabel="chance of release",
            title="last round",
        )
        right.set(xlabel="users who hold the item", title="all rounds; users have 50 items each")
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, metadata=PLAIN)


def draw_single(path: Path) -> None:
    """Draw the optimal rule for one item per user, beside Laplace and Gaussian noise."""
    users = np.arange(0.0, 31.0)
    others = (
        (Gw(), GREEN, "v", "gw: Laplace noise"),
        (WeightedGaussian(), ORANGE, "s", "weighted-gaussian"),
    )
    with panels(1) as (figure, (axes,)):
        chance = Single().chances(rounds_of(Single(), 1), users, 1)
        axes.plot(users, chance, "o-", color=BLUE, markersize=4, label="single: the optimal coin")
        for mechanism, colour, mark, name in others:
            chance = np.where(users > 0, mechanism.chances(rounds_of(mechanism, 1), users, 1), 0)
            axes.plot(users, chance, mark, color=colour, markersize=4, label=name)
        axes.set(xlabel="users who hold the item", ylabel="chance of release")
        axes.legend(frameon=False)
        figure.savefig(path, metadata=PLAIN)


def paid_by_shares(held: Bools, policy: Proportional) -> Floats:
    """Return what items have been paid after each turn of DPSU or Policy Laplace."""
    paid, course = [0] * held.shape[1], []
    for has in held:
        items = np.flatnonzero(has).tolist()
        given = policy.payments([policy.target - paid[item] for item in items])
        for item, part in zip(items, given, strict=True):
            paid[item] += part
        course.append([part / 2**policy.unit_bits for part in paid])
    return np.array(course)


def paid_to_favourites(held: Bools, target: int) -> Floats:
    """Return what items have been paid after each turn of GW, where all like the same order."""
    paid, course = np.zeros(held.shape[1]), []
    for has in held:
        open_items = np.flatnonzero(has & (paid < target))
        paid[open_items[:1]] += 1
        course.append(paid.copy())
    return np.array(course)


def draw_turns(path: Path) -> None:
    """Draw how items fill up, one user after the other."""
    held, shades = crowd(200), colormaps["viridis"](np.linspace(0, 0.85, 6))
    mechanisms: tuple[Mechanism, ...] = Dpsu(), PolicyLaplace(), Gw()
    with panels(3, 3.0, sharey=True) as (figure, all_axes):
        for axes, mechanism in zip(all_axes, mechanisms, strict=True):
            step = rounds_of(mechanism)[0]
            if isinstance(mechanism, Gw):
                course = paid_to_favourites(held, step.policy.target)
            else:
                course = paid_by_shares(held, step.policy)
            for line, colour in zip(course.T, shades, strict=False):
                axes.plot(line, color=colour, linewidth=1.4)
            axes.axhline(step.threshold, color=ORANGE, linestyle="--", linewidth=1.4)
            axes.set(title=mechanism.name, xlabel="users who have paid")
        all_axes[0].set_ylabel("weight paid so far")
        names = (*NAMES[: len(shades)], "threshold")
        figure.legend(all_axes[0].lines, names, loc="outside lower center", ncols=7, frameon=False)
        figure.savefig(path, metadata=PLAIN)


def spread_weights(held: Bools, spread: Spread) -> Floats:
    """Return the weights of a round of MAD, by its own two passes."""
    sizes = held.sum(axis=1)
    items = np.nonzero(held)[1]
    initial = np.zeros(held.shape[1], dtype=np.uint64)
    np.add.at(initial, items, spread.first(sizes, items))
    signals = spread.signal(initial, np.zeros(len(initial)))
    given = spread.second(sizes, signals[items]) / 2.0**WIDE_BITS
    return np.asarray(np.bincount(items, given, len(initial)), dtype=np.float64)


def draw_mad(path: Path) -> None:
    """Draw what popular items return in MAD, and what MAD2R's first round tells its second."""
    held = crowd(300)
    step = rounds_of(Mad(largest=6))[0]
    equal, moved = gaussian_weights(held), spread_weights(held, step.spread)
    first, second = rounds_of(Mad2R())
    places = np.arange(len(NAMES))
    with panels(2, 2.9) as (figure, (left, right)):
        left.bar(places, np.minimum(equal, moved), color=BLUE)
        lost = np.maximum(equal - moved, 0)
        left.bar(places, lost, bottom=moved, color="white", edgecolor=GREY, hatch="////", lw=0.6)
        left.bar(places, np.maximum(moved - equal, 0), bottom=equal, color=GREEN)
        left.axhline(step.threshold, color=ORANGE, linestyle="--", linewidth=1.4)
        left.set_xticks(places, NAMES, rotation=90)
        _name_line(left, step.threshold, "threshold")
        left.set(ylabel="weight", title="mad: hatched returns, green arrives", ylim=(0, 120))
        noisy = [-60, *np.repeat([first.drop, *second.spread.edges], 2), first.threshold]
        levels = np.repeat([0, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8], 2)
        right.plot(noisy, levels, color=BLUE)
        right.axvline(first.threshold, color=ORANGE, linestyle="--", linewidth=1.4)
        right.set(xlabel="noisy weight in round 1", ylabel="claim on weight in round 2")
        right.set(title="mad2r: round 1 tells round 2", xlim=(-60, 95), ylim=(-0.05, 1.15))
        right.text(first.threshold + 2, 0.8, "released", color=ORANGE)
        right.text(-57, 0.04, "given up")
        figure.savefig(path, metadata=PLAIN)


def draw_auto(path: Path) -> None:
    """Draw which of its two branches the look chooses, by the numbers that it sees."""
    longest, far = 7.0, 14.0
    with panels(1, 3.0) as (figure, (axes,)):
        axes.axvspan(0, _SHORT_LISTS, color="#CFE3F1")
        axes.axvspan(_LONG_LISTS, longest, color="#D3EADF")
        middle = [_SHORT_LISTS, _LONG_LISTS]
        axes.fill_between(middle, _LEAN, far, color="#CFE3F1")
        axes.fill_between(middle, -far, _LEAN, color="#D3EADF")
        axes.vlines(middle, -far, far, color=GREY, linewidth=1)
        axes.hlines(_LEAN, *middle, color=ORANGE, linestyle="--", linewidth=1.6)
        words = {"ha": "center", "va": "center"}
        axes.text(_SHORT_LISTS / 2, 0, "matching\n(two numbers\nsuffice)", **words)
        axes.text(5.75, 0, "cumulative\n(two numbers suffice)", **words)
        axes.text(2.95, 8.5, "matching", **words)
        axes.text(2.95, -6, "cumulative", **words)
        axes.set(xlim=(0, longest), ylim=(-far, far))
        axes.set_xticks(range(8), [str(2**n) for n in range(8)])
        axes.set_xlabel("items a user has, as the look sees it (geometric mean)")
        axes.set_ylabel("lead of matching,\nin scales of noise")
        figure.savefig(path, metadata=PLAIN)


PLAIN: Final = {"Date": None, "Creator": None}
"""No date and no version in the files."""

FIGURES: Final[dict[str, Callable[[Path], None]]] = {
    "weighted-gaussian": draw_weighted_gaussian,
    "sips": draw_sips,
    "cumulative": draw_cumulative,
    "coins": draw_coins,
    "single": draw_single,
    "turns": draw_turns,
    "mad": draw_mad,
    "auto": draw_auto,
}
"""Every figure by the name of its file."""


def main() -> None:
    """Draw all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        draw(out / f"{name}.svg")


if __name__ == "__main__":
    main()
