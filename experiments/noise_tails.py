"""The noise as it is drawn, held against what it should be: tails, and independence.

    python experiments/noise_tails.py --out docs [--samples 1100000000] [--counts 400000]

Tails: how often Gaussian and Laplace numbers, from fresh keys, are beyond each level on each side,
by exact binomial tests; and the same for OpenDP's discrete Gaussian, the noise of counts.
Independence: of noise that belongs together by chance alone (neighbouring items, two rounds, two
runs, two workers), products of the numbers, of their squares and of their signs.

A test fails with a probability of at most `ALPHA` where nothing is wrong. There are fewer than 200,
so a false alarm in the whole report has a probability below 2e-7.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dp_sips.mechanisms.discrete import with_noise
from dp_sips.privacy.noise import Key, Scrambler, gaussian, laplace

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

ALPHA: Final = 1e-9
BATCH: Final = 1 << 20
WORKERS: Final = 2
STEP: Final = 0.5
"""Tails are counted at multiples of this many deviations, or scales."""

SIGMA: Final = 20.0
"""σ of the discrete Gaussian that is drawn."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test: what was looked at, and the probability of something as odd.

    Attributes:
        what: What was tested.
        samples: How many numbers it looked at.
        seen: The statistic.
        expected: What it should be about.
        p_value: How likely a sound generator is at least as far off.
    """

    what: str
    samples: int
    seen: float
    expected: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether this is no alarm."""
        return self.p_value >= ALPHA


@dataclass(frozen=True)
class Law:
    """A kind of noise: how it is drawn from random bits, and its upper tail.

    Attributes:
        name: What it is called.
        draw: From bits to numbers.
        tail: P[X ≥ t].
        reach: Up to which t tails are counted.
    """

    name: str
    draw: Callable[[Any], Floats]
    tail: Callable[[Any], Any]
    reach: float


def laplace_tail(level: Any) -> Any:
    """Return P[X ≥ t] of a Laplace number of scale 1, for t ≥ 0."""
    return np.exp(-np.asarray(level)) / 2


GAUSSIAN: Final = Law("Gaussian", gaussian, stats.norm.sf, 6.0)
LAPLACE: Final = Law("Laplace", laplace, laplace_tail, 20.0)


def blocks(count: int) -> Any:
    """Return the blocks of 0, 1, 2, …: items as alike as can be."""
    columns = np.arange(count, dtype=np.uint64), np.full(count, 0xF0 << 56, dtype=np.uint64)
    return np.stack(columns, axis=1)


def cells(law: Law, values: Floats) -> Counts:
    """Return how many values are in each cell of width STEP; the outermost hold all beyond."""
    far = round(law.reach / STEP)
    places = np.clip(np.floor(values / STEP), -far - 1, far).astype(np.int64) + far + 1
    return np.bincount(places, minlength=2 * far + 2)


def draw_cells(law: Law, batches: int) -> Counts:
    """Draw batches of numbers, each under a fresh key, and count cells."""
    names = blocks(BATCH)
    total = np.zeros(2 * round(law.reach / STEP) + 2, dtype=np.int64)
    for _ in range(batches):
        total += cells(law, law.draw(Key.fresh().noise_of_round(0)(names)))
    return total


def tail_tests(law: Law, counted: Counts) -> list[Outcome]:
    """Test the number beyond each level, on either side."""
    far, samples = round(law.reach / STEP), int(counted.sum())
    above, below = np.cumsum(counted[::-1])[::-1], np.cumsum(counted)
    found = []
    for step in range(far + 1):
        level, chance = step * STEP, float(law.tail(step * STEP))
        for side, seen in (("≥ ", above[far + 1 + step]), ("< −", below[far - step])):
            p_value = float(stats.binomtest(int(seen), samples, chance).pvalue)
            name = f"{law.name} {side}{level:g}"
            found.append(Outcome(name, samples, int(seen), samples * chance, p_value))
    return found


def pair_tests(
    what: str, pairs: Iterator[tuple[Floats, Floats]], positive: float = 0.5
) -> list[Outcome]:
    """Test that two columns of standard numbers have nothing to do with each other.

    Sums of millions of products of the numbers, and of their squares less 1, are normal for all
    that matters here. Agreeing signs are counted exactly; `positive` is the chance of a number > 0.
    """
    samples, products, squares, agreeing = 0, 0.0, 0.0, 0
    for one, other in pairs:
        samples += len(one)
        products += float(one @ other)
        squares += float((one * one - 1) @ (other * other - 1)) / 2
        agreeing += int(((one > 0) == (other > 0)).sum())
    scores = {"products": products, "squares": squares}
    found = [
        Outcome(
            f"{what}: {name}", samples, total / math.sqrt(samples), 0.0, _two_sided(total, samples)
        )
        for name, total in scores.items()
    ]
    chance = positive**2 + (1 - positive) ** 2
    p_value = float(stats.binomtest(agreeing, samples, chance).pvalue)
    return [*found, Outcome(f"{what}: signs", samples, agreeing, samples * chance, p_value)]


def _two_sided(total: float, samples: int) -> float:
    return float(2 * stats.norm.sf(abs(total) / math.sqrt(samples)))


def neighbouring_items(batches: int) -> Iterator[tuple[Floats, Floats]]:
    """Items whose names differ in one bit."""
    for _ in range(batches):
        noise = gaussian(Key.fresh().noise_of_round(0)(blocks(BATCH)))
        yield noise[::2], noise[1::2]


def two_rounds(batches: int) -> Iterator[tuple[Floats, Floats]]:
    """The same items in two rounds of a run."""
    for _ in range(batches):
        key, names = Key.fresh(), blocks(BATCH)
        yield gaussian(key.noise_of_round(0)(names)), gaussian(key.noise_of_round(1)(names))


def two_runs(batches: int) -> Iterator[tuple[Floats, Floats]]:
    """The same items in the same round of two runs."""
    for _ in range(batches):
        one, other = (Key.fresh().noise_of_round(0)(blocks(BATCH)) for _ in range(2))
        yield gaussian(one), gaussian(other)


def two_workers(batches: int) -> Iterator[tuple[Floats, Floats]]:
    """Different items of one round, each half drawn by a process of its own."""
    halves = np.split(blocks(BATCH), 2)
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for _ in range(batches):
            scrambler = Key.fresh().noise_of_round(0)
            one, other = pool.map(partial(_drawn_by_worker, scrambler), halves)
            yield one, other


def _drawn_by_worker(scrambler: Scrambler, names: Any) -> Floats:
    return gaussian(scrambler(names))


PAIRS: Final = {
    "neighbouring items": neighbouring_items,
    "two rounds": two_rounds,
    "two runs": two_runs,
    "two workers": two_workers,
}


def draw_counts(samples: int, sigma: float = SIGMA) -> Counts:
    """Draw discrete Gaussians as `count_users` does."""
    return with_noise(np.zeros(samples, dtype=np.int64), sigma, Key.fresh())


def discrete_tests(drawn: Counts, again: Counts) -> list[Outcome]:
    """Test the tails of discrete Gaussians, and the independence of neighbours and of two draws."""
    reach = math.ceil(8 * SIGMA)
    odds = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * SIGMA**2))
    odds /= odds.sum()
    found = []
    for deviations in np.arange(0.0, 4.5, STEP):
        level = round(deviations * SIGMA)
        chance = float(odds[reach + level :].sum())
        for side, seen in (("≥ ", (drawn >= level).sum()), ("≤ −", (drawn <= -level).sum())):
            p_value = float(stats.binomtest(int(seen), len(drawn), chance).pvalue)
            name = f"discrete Gaussian {side}{deviations:g} σ"
            found.append(Outcome(name, len(drawn), int(seen), len(drawn) * chance, p_value))
    deviation = math.sqrt(float(odds @ np.arange(-reach, reach + 1.0) ** 2))
    one, other, positive = drawn / deviation, again / deviation, float(odds[reach + 1 :].sum())
    found += pair_tests("discrete, neighbouring counts", iter([(one[::2], one[1::2])]), positive)
    return found + pair_tests("discrete, two runs", iter([(one, other)]), positive)


def report(samples: int, counts: int) -> list[Outcome]:
    """Run everything, tails on all cores."""
    found: list[Outcome] = []
    batches = -(-samples // BATCH)
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for law, part in ((GAUSSIAN, batches), (LAPLACE, -(-batches // 4))):
            shares = np.full(4 * WORKERS, part // (4 * WORKERS))
            shares[: part - int(shares.sum())] += 1
            drawn = pool.map(partial(draw_cells, law), shares.tolist())
            found += tail_tests(law, np.sum(list(drawn), axis=0))
            print(f"{law.name}: {part * BATCH:,} numbers", file=sys.stderr)
    for what, pairs in PAIRS.items():
        found += pair_tests(what, pairs(-(-batches // 32)))
        print(what, file=sys.stderr)
    return found + discrete_tests(draw_counts(counts), draw_counts(counts))


def draw_figure(tests: list[Outcome], path: Path) -> None:
    """Draw the tails that were seen, over the exact ones and relative to them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "dp-sips", "font.size": 9}):
        figure = Figure(figsize=(9, 5.2), layout="constrained")
        panels = figure.subplots(2, 3, height_ratios=(3, 2), sharex="col")
        for (top, bottom), law in zip(panels.T, DRAWN, strict=True):
            mine = [t for t in tests if t.what.startswith(tuple(f"{law} {s}" for s in "≥≤<"))]
            _draw_tails(top, bottom, mine)
            top.set(title=f"{law}\n{mine[0].samples:,} numbers", yscale="log")
            bottom.set(xlabel=f"level, in {DRAWN[law]}", ylim=(0.8, 1.2))
        panels[0][0].set_ylabel("part beyond the level")
        panels[1][0].set_ylabel("seen / expected")
        panels[0][0].legend(fontsize=8)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


DRAWN: Final = {"Gaussian": "deviations", "Laplace": "scales", "discrete Gaussian": "deviations"}
"""The kinds of noise in the figure, and what their levels are counted in."""


def _draw_tails(top: Any, bottom: Any, tests: list[Outcome]) -> None:
    """Draw one kind of noise: parts on top, ratios below, with an interval that holds them all."""
    levels = [float(t.what.removesuffix(" σ").split()[-1]) for t in tests[::2]]
    exact = [t.expected / t.samples for t in tests[::2]]
    top.plot(levels, exact, "-", color="#767676", linewidth=1, label="exact")
    for side, (marker, colour) in enumerate((("^", "#0072B2"), ("v", "#D55E00"))):
        mine, name = tests[side::2], ("above", "below")[side]
        style: dict[str, Any] = {"color": colour, "markersize": 4, "label": name}
        shown = [(x, t) for x, t in zip(levels, mine, strict=True) if t.seen]
        top.plot([x for x, _ in shown], [t.seen / t.samples for _, t in shown], marker, **style)
        bottom.plot(levels, [t.seen / t.expected for t in mine], marker, **style)
    widths = [_relative_width(t.expected) for t in tests[::2]]
    low, high = [1 - w for w in widths], [1 + w for w in widths]
    bottom.fill_between(levels, low, high, color="#DDDDDD")
    for axes in (top, bottom):
        axes.grid(alpha=0.3)


def _relative_width(expected: float) -> float:
    """Return how far off a count may be, relatively, before it is an alarm; about."""
    return float(stats.norm.isf(ALPHA / 2)) / math.sqrt(expected)


def main() -> int:
    """Draw, test, write the report and the figure; exit code 1 on an alarm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=1_100_000_000)
    parser.add_argument("--counts", type=int, default=400_000)
    options = parser.parse_args()
    tests = report(options.samples, options.counts)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(test), "passed": test.passed} for test in tests]
    text = json.dumps({"alpha": ALPHA, "tests": rows}, indent=1, ensure_ascii=False)
    (options.out / "noise_tails.json").write_text(text + "\n", encoding="utf-8")
    draw_figure(tests, options.out / "noise_tails.svg")
    alarms = [test for test in tests if not test.passed]
    for test in alarms:
        print(f"alarm: {test}")
    least = min(test.p_value for test in tests)
    print(f"{len(tests)} tests, {len(alarms)} alarms; smallest p {least:.2g}")
    return int(bool(alarms))


if __name__ == "__main__":
    raise SystemExit(main())
