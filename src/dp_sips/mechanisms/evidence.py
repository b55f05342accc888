"""The accounting of cumulative evidence: what a user with items of its own can change, jointly.

The mechanism (`cumulative.py`). Each user's set is cut once to Δ0 items. Round l of I
has a share f_l of the budget (Σ f_l = 1) and noise σ_l = 1/√(2ρ f_l); a user spreads 1/√k over
its k items that are still active. With F_i = f_1 + … + f_i, an item's evidence after round i is the
average X_i = Σ_{l≤i} f_l (weight_l + noise_l) / F_i, whose noise has the deviation
σ(F_i) = 1/√(2ρ F_i). An active item is released if X_i ≥ T_i, and dropped if X_i < z_i σ(F_i).

Theorem. Let t of a user's items be held, after cutting, by nobody else, and let ξ be the noise of
these. Let A_l be the number of them whose noise alone would not have been dropped before round l,
and B_l the same without one of them. Then the release is (ε, δ)-DP for
δ = max_{0≤t≤Δ0} D(t) + G(t), where

    D(t) = t · Σ_i E Q((T_i − m_i) / σ(F_i)),   m_i = Σ_{l≤i} f_l / √(1 + B_l) / F_i,
    G(t) = E δ_G(ε, √(2ρ y)),                   y = Σ_l f_l (Δ0 − t) / (Δ0 − t + A_l).

Proof. Weights are not negative, so an item that its noise alone would keep is kept, until one of
the t items is released. So before that, at least A_l of them are active in round l, and an active
one weighs at most 1/√(1 + B_l) there, where B_l depends on the others' noise only. The first of
them to be released, item u in round i, has Σ_{l≤i} f_l (1/√(1 + B_l) + noise_l(u)) / F_i ≥ T_i, and
u's noise is independent of B: the event E that this holds for no u and i depends on ξ alone, and
fails with probability at most D(t). Now fix ξ in E. None of the t items is released, and the
release is a function of the noisy weights of the items that others hold too, the same with and
without the user. In round l the user gives 1/√(s + A) to each of s ≤ Δ0 − t of these, with A ≥ A_l:
a squared norm of s/(s + A) ≤ (Δ0 − t)/(Δ0 − t + A_l), a bound that ξ fixes beforehand. So these are
an adaptive composition of Gaussian mechanisms, and P[M(x') ∈ Y | ξ] and P[M(x) ∈ Y] are within
(ε, δ_G(ε, √(2ρ y))) of each other, both ways. Average over ξ in E, and add P[Eᶜ] ≤ D(t). ∎

The same fixed-ξ argument with y ≤ 1 gives max_t D(t)-approximate ρ-zCDP.

What the theorem is worth: a user whose own items use up δ in D has little norm left to use up δ in
G, and the other way round, so D and G need not share δ between them.

The lattice. Noise is rounded to the lattice of step 2^-STEP_BITS on which the weights lie. A weight
on the lattice plus rounded noise is the rounded sum: a function of the Gaussian mechanism's output.
What follows may then round as it likes. The sampler's values are off by at most 2⁻⁴⁹ (1 + |z|), for
|z| ≤ 10.5, and a cell is 2^-STEP_BITS/σ wide: the odds of a cell are off by a factor within
1 ± 23·2⁻⁴⁹·σ·2^STEP_BITS, which `lattice_cost` charges to ε for each item that a user touches.
Beyond, up to |z| = 13.2 where the sampler ends, a cell's chance is off by up to 2⁻¹²⁷, a step of
its uniform numbers at either border. SAMPLER_TAIL pays for an error of 2⁻¹²³ (README.md), so for 16
cells; `lattice_cost` charges to δ as many of it as there are such cells.

Numbers. All expectations are bounded from above:
 - the chance that noise alone survives is bounded from below, on a lattice, always rounding down;
   fewer survivors mean larger D and G, and only the first `_TRACKED` of the t items are counted;
 - A_l is a chain: each survivor survives the next round with the same conditional chance;
 - for every h ≥ 0, E g(v) ≤ max_v [g(v) e^{−hv}] · E e^{hv}; the maximum is taken over cells, with
   g (which increases) at the right end and e^{−hv} at the left; E e^{hv} is one backward pass along
   the chain.
Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from dp_sips.privacy.arrays import Floats, Integers
from dp_sips.privacy.budget import gaussian_delta
from dp_sips.privacy.guarantee import SamplerCost
from dp_sips.privacy.noise import SAMPLER_TAIL
from dp_sips.privacy.search import boundary

STEP_BITS: Final = 12
"""Weights and noise are multiples of 2^-STEP_BITS."""

_HALF_STEP = 2.0 ** -(STEP_BITS + 1)
_TRACKED = 192
_CELLS = 400
_SLOPES_RELEASE = np.array([0.0, 0.15, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10, 16, 25])
_SLOPES_NOISE = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 13.0, 17.0, 25.0, 40.0])
_WIDTH = 1e-4
# Far above all the rounding in sums of a few hundred positive floats.
_UPWARDS = 1 + 1e-9


@dataclass(frozen=True)
class Schedule:
    """The public constants of the mechanism.

    Attributes:
        shares: f_l, how much of the budget each round gets; they need not add up to one.
        drops: z_l, below how many deviations of its noise evidence is hopeless after round l.
        margin: The thresholds are T_i = margin + q_i σ(F_i).
        patience: How much less likely than in the last round, by a factor, noise alone may release
            an item in each earlier round.
    """

    shares: tuple[float, ...]
    drops: tuple[float, ...]
    margin: float
    patience: float

    @cached_property
    def fractions(self) -> Floats:
        """f_l, adding up to one."""
        shares = np.array(self.shares)
        return np.asarray(shares / shares.sum())

    @cached_property
    def spent(self) -> Floats:
        """F_l; the last is exactly one."""
        sums = np.cumsum(self.fractions)
        return np.asarray(sums / sums[-1])

    def thresholds(self, rho: float, quantile: float) -> Floats:
        """Return T_i where the last quantile is given: Q(q_i) ≈ Q(q_I) / patience before."""
        early = math.sqrt(quantile**2 + 2 * math.log(self.patience))
        quantiles = np.full(len(self.shares), early)
        quantiles[-1] = quantile
        return self.margin + quantiles / np.sqrt(2 * rho * self.spent)


@lru_cache
def survival(schedule: Schedule) -> tuple[float, ...]:
    """Return, for each round, a lower bound on the chance that noise alone is active in it.

    Evidence that is noise alone is a Brownian motion at times F_l, over F_l: it survives round l
    where B(F_l) ≥ z_l √F_l. B lives on a lattice here, rounded down after each step.
    """
    step, reach = 0.002, 7.0
    size = int(reach / step)
    lattice = np.arange(-size, size + 1) * step
    chances = np.zeros(len(lattice))
    chances[size] = 1.0
    survived = [1.0]
    for share, spent, drop in zip(schedule.fractions, schedule.spent, schedule.drops, strict=True):
        deviation = math.sqrt(share)
        far = min(
            size, math.ceil(8 * deviation / step)
        )  # what moves further is lost: less survives
        moves = np.diff(_cdf(np.arange(-far, far + 2.0) * (step / deviation)))
        chances = np.convolve(chances, moves)[far : far + len(lattice)]
        chances[lattice < drop * math.sqrt(spent)] = 0.0
        survived.append(max(0.0, float(chances.sum()) / _UPWARDS - 1e-9))
    return tuple(survived[:-1])


@cache
def joint_bound(schedule: Schedule, max_items: int) -> "JointBound":
    """Return the bound for a schedule and a Δ0; what ε and ρ do not change is computed once."""
    return JointBound(schedule, max_items)


class JointBound:
    """D(t) and G(t) of the theorem, from above."""

    def __init__(self, schedule: Schedule, max_items: int) -> None:
        self.schedule = schedule
        self.max_items = max_items
        survive = np.array(survival(schedule))
        self._chain = [_thinning(min(1.0, b / a) if a > 0 else 0.0) for a, b in pairwise(survive)]
        self._starts = _starts(max_items)

    @cached_property
    def _growth_release(self) -> list[Floats]:
        """E e^{h m_i} for each round i, number of other items and slope h."""
        weights = 1 / np.sqrt(1 + np.arange(_TRACKED + 1.0))
        return [
            self._backwards(
                [f / spent * weights for f in self.schedule.fractions[: i + 1]], _SLOPES_RELEASE
            )
            for i, spent in enumerate(self.schedule.spent)
        ]

    @cached_property
    def _growth_noise(self) -> Floats:
        """E e^{h y} for each start t of a block and slope h."""
        alive = np.arange(_TRACKED + 1.0)
        rows = []
        for t in self._starts:
            rest = self.max_items - t
            left = np.divide(rest, rest + alive, out=np.zeros_like(alive), where=rest + alive > 0)
            grown = self._backwards([f * left for f in self.schedule.fractions], _SLOPES_NOISE)
            rows.append(grown[min(t, _TRACKED)])
        return np.array(rows)

    def _backwards(self, terms: list[Floats], slopes: Floats) -> Floats:
        """Return E exp(h Σ_l terms_l[A_l]) for each A_1 (rows) and h (columns)."""
        grown = np.exp(np.outer(terms[-1], slopes))
        for term, thin in zip(
            reversed(terms[:-1]), reversed(self._chain[: len(terms) - 1]), strict=True
        ):
            grown = np.exp(np.outer(term, slopes)) * (thin @ grown)
        return grown * _UPWARDS

    def release(self, rho: float, thresholds: Floats) -> Floats:
        """Return the largest D(t) of each block of t."""
        return np.asarray(self._releases(rho, thresholds).sum(axis=0) * _UPWARDS)

    def release_by_round(self, rho: float, thresholds: Floats) -> list[float]:
        """Return what each round adds to D(t), at the t where D is largest."""
        parts = self._releases(rho, thresholds)
        return [float(part) for part in parts[:, int(parts.sum(axis=0).argmax())]]

    def _releases(self, rho: float, thresholds: Floats) -> Floats:
        """Return max t · E Q((T_i − m_i)/σ(F_i)) for each round (rows) and block of t (columns).

        More items share less weight each, so this may fall with t while survivors are counted;
        beyond `_TRACKED` it is proportional to t, and the end of a block has the most.
        """
        edges = np.linspace(0.0, 1.0, _CELLS + 1)
        ends = np.append(self._starts[1:] - 1, self.max_items)
        counted = np.arange(1, min(self.max_items, _TRACKED + 1) + 1)
        points = np.union1d(counted, ends)
        blocks = np.searchsorted(points, self._starts)
        others = np.minimum(points - 1, _TRACKED)
        rows = []
        for grown, threshold, spent in zip(
            self._growth_release, thresholds, self.schedule.spent, strict=True
        ):
            exact = threshold - _HALF_STEP  # an average of rounded noise may be so much too high
            logs = _log_tail((exact - edges[1:]) * math.sqrt(2 * rho * spent))
            peaks = np.exp((logs[:, None] - np.outer(edges[:-1], _SLOPES_RELEASE)).max(axis=0))
            chances = (peaks * grown).min(axis=1)[others]
            rows.append(np.maximum.reduceat(points * chances, blocks))
        return np.array(rows)

    def noise(self, epsilon: float, rho: float) -> Floats:
        """Return G(t) at the start of each block of t: the most in the block, as G decreases."""
        edges = np.linspace(0.0, 1.0, _CELLS + 1)
        deltas = [gaussian_delta(epsilon, math.sqrt(2 * rho * y) * _UPWARDS) for y in edges[1:]]
        logs = np.log(np.maximum(deltas, 1e-300))
        peaks = np.exp((logs[:, None] - np.outer(edges[:-1], _SLOPES_NOISE)).max(axis=0))
        return np.asarray((peaks * self._growth_noise).min(axis=1) * _UPWARDS)

    def delta(self, epsilon: float, rho: float, thresholds: Floats) -> float:
        """Return max_t D(t) + G(t); t = 0 has no D and the whole of δ_G."""
        whole = gaussian_delta(epsilon, math.sqrt(2 * rho) * _UPWARDS)
        both = self.release(rho, thresholds) + self.noise(epsilon, rho)
        return min(1.0, max(whole, float(both.max())))

    def threshold_delta(self, rho: float, thresholds: Floats) -> float:
        """Return max_t D(t), the δ of the zCDP statement."""
        return min(1.0, float(self.release(rho, thresholds).max()))


def lattice_cost(rho: float, schedule: Schedule, max_items: int) -> SamplerCost:
    """Return what the sampler's rounding can cost: "The lattice", above.

    Three times the error of a cell covers (1 + κ)/(1 − κ), on both neighbours.
    """
    cells = 2.0**STEP_BITS / np.sqrt(2 * rho * schedule.fractions)  # in one deviation
    loss = 3 * max_items * 23 * 2.0**-49 * (cells + 11).sum()  # 11 where a cell is wider than it
    tail = max_items * SAMPLER_TAIL * (1 + 2 * 2.7 * cells / 16).sum()
    return SamplerCost(float(loss), float(tail))


def drop_levels(rho: float, schedule: Schedule) -> list[float]:
    """Return the evidence below which an item is dropped after each round: z_l σ(F_l).

    Rounded noise can be half a step too low. As much lower is the level, so that noise that would
    have survived before it was rounded survives.
    """
    levels = np.array(schedule.drops) / np.sqrt(2 * rho * schedule.spent)
    return [float(level) for level in levels - 2.0 ** -(STEP_BITS + 1)]


def calibrate_evidence(
    epsilon: float, delta: float, schedule: Schedule, max_items: int
) -> tuple[float, Floats]:
    """Return the ρ and the thresholds that are (ε, δ)-DP, with the last threshold lowest.

    Guarantee: `joint_bound(schedule, max_items).delta(epsilon, rho, thresholds) <= delta`.
    """
    bound = joint_bound(schedule, max_items)
    best: tuple[float, Floats] | None = None
    for part in (0.75, 0.85, 0.92, 0.96, 0.985):
        rho = _largest_rho(epsilon, part * delta)
        noise = bound.noise(epsilon, rho)
        if float(noise.max()) >= delta:
            continue

        def holds(quantile: float, rho: float = rho, noise: Floats = noise) -> bool:
            both = bound.release(rho, schedule.thresholds(rho, quantile)) + noise
            return float(both.max()) <= delta

        thresholds = schedule.thresholds(rho, _least(holds))
        if best is None or thresholds[-1] < best[1][-1]:
            best = rho, thresholds
    assert best is not None
    return best


def calibrate_evidence_rho(rho: float, delta: float, schedule: Schedule, max_items: int) -> Floats:
    """Return the lowest thresholds that are δ-approximate ρ-zCDP."""
    bound = joint_bound(schedule, max_items)

    def holds(quantile: float) -> bool:
        return bound.threshold_delta(rho, schedule.thresholds(rho, quantile)) <= delta

    return schedule.thresholds(rho, _least(holds))


def _least(holds: Callable[[float], bool]) -> float:
    """Return about the least quantile for which a condition holds that higher ones satisfy too."""
    low, high = 0.0, 40.0
    while not holds(high):  # where noise is so small that 40 deviations are less than a weight
        low, high = high, 2 * high
    while high - low > _WIDTH:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _largest_rho(epsilon: float, delta: float) -> float:
    def holds(rho: float) -> bool:
        return gaussian_delta(epsilon, math.sqrt(2 * rho) * _UPWARDS) <= delta

    return boundary(holds, epsilon * epsilon / 100, factor=2.0)


def _starts(max_items: int) -> Integers:
    """Return where blocks of t start: every t at first, then wider, up to Δ0."""
    starts = [1]
    while starts[-1] < max_items:
        starts.append(min(max_items, max(starts[-1] + 1, int(starts[-1] * 1.12))))
    return np.array(starts)


def _thinning(chance: float) -> Floats:
    """Return P[Binomial(a, chance) = b] for a (rows) and b (columns) up to `_TRACKED`."""
    from scipy.special import gammaln, xlog1py, xlogy

    a, b = np.arange(_TRACKED + 1.0)[:, None], np.arange(_TRACKED + 1.0)[None, :]
    missed = np.maximum(a - b, 0.0)
    logs = gammaln(a + 1) - gammaln(b + 1) - gammaln(missed + 1)
    return np.where(b <= a, np.exp(logs + xlogy(b, chance) + xlog1py(missed, -chance)), 0.0)


def _cdf(x: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def _log_tail(x: Floats) -> Floats:
    """Return log Q(x), rounded up."""
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(-x)) + 1e-9
