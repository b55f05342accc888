"""The accounting of cumulative evidence: what a user with items of its own can change, jointly.

The mechanism (`cumulative.py`). Each user's set is cut once to Δ0 items. Round l of I has a share
f_l of the budget (Σ f_l = 1) and noise σ_l = 1/√(2ρ f_l). An item has a claim a² on the square of
its holders' weight, a multiple of 1/16 in [0, 1]; it is 1 at first. A user gives a_u/√(Σ a²) to
each of its items, rounded down to a lattice. Evidence is
X_i = Σ_{l≤i} c_l (weight_l + noise_l) / C_i with C_i = c_1 + … + c_i: later rounds, whose weights
are larger, may be trusted more than their share. Its noise has the deviation s_i = √(V_i/2ρ)/C_i,
V_i = Σ_{l≤i} c_l²/f_l. An item is released if X_i ≥ T_i. Else its next claim is a step function of
X_i/s_i that nowhere falls, and is 0 below z_i: the item is dropped, for good.

Theorem. Let t of a user's items be held, after cutting, by nobody else, and let ξ be the noise of
these. Let A_l be the sum of their claims in round l if evidence was ξ alone, and B_l the same
without one of them. Then the release is (ε, δ)-DP for δ = max_{0≤t≤Δ0} D(t) + G(t), where

    D(t) = t · Σ_i E Q((T_i − m_i) / s_i),       m_i = Σ_{l≤i} c_l / √(1 + B_l) / C_i,
    G(t) = E δ_G(ε, √(2ρ y)),                    y = Σ_l f_l (Δ0 − t) / (Δ0 − t + A_l).

Proof. Weights are not negative, and claims do not fall with evidence: until one of the t items is
released, each has at least the claim that ξ alone would give it. As a_u ≤ 1, such an item u weighs
a_u/√(a_u² + …) ≤ 1/√(1 + B_l), and B_l depends on the others' noise only. The first of them to be
released, u in round i, has Σ_{l≤i} c_l (1/√(1 + B_l) + noise_l(u)) / C_i ≥ T_i, and u's noise is
independent of B: the event E that this holds for no u and i depends on ξ alone, and fails with
probability at most D(t). Now fix ξ in E. None of the t items is released, and the release is a
function of the noisy weights of the items that others hold too, the same with and without the user.
Let S ≤ Δ0 − t be the sum of the claims of the user's items among these, and A ≥ A_l that of its
own: it moves them by a squared norm of at most S/(S + A) ≤ (Δ0 − t)/(Δ0 − t + A_l), a bound that ξ
fixes beforehand. So these are an adaptive composition of Gaussian mechanisms, and P[M(x') ∈ Y | ξ]
and P[M(x) ∈ Y] are within (ε, δ_G(ε, √(2ρ y))) of each other, both ways. Average over ξ in E, and
add P[Eᶜ] ≤ D(t). ∎

The same fixed-ξ argument with y ≤ 1 gives max_t D(t)-approximate ρ-zCDP.

Items of several users. With `min_users=m` above 1, weights are reduced (`min_users.py`), and the t
items are those that at most m − 1 others hold, after cutting. Others hold them too, so what
the user adds to their evidence may change their claims, and with these what others give elsewhere:
to fix ξ is not enough. But the release is (ε, δ)-DP for δ = max_t D(t) + δ_G(ε, √(2ρ)), the same
with y = 1. Let h be the history of noisy reduced weights of all items. Given h so far, one user
moves the next of it by a norm of at most 1 (the lemma there), so h is an adaptive composition of
Gaussian mechanisms. Sets and claims are functions of h and of what was released; whether R > 0
decides about releases only. Let E be the event that none of the t items reaches its threshold in h.
With the user, D(t) bounds P[Eᶜ] as above: R is not negative, and at most what the user gives.
Without the user, the t items have R = 0, and their evidence is noise: D(t) bounds P[Eᶜ], too. On E,
both releases are the same function of h, what h releases among the items with R > 0 without the
user. The rest is as in privacy/README.md, "Together". (How many users give to an item is the same
in all rounds until it leaves the sets: sets are cut once, and no contribution is rounded to 0.) For
ρ-zCDP this says nothing, as E depends on all of h.

What the theorem is worth: a user whose own items use up δ in D has little norm left to use up δ in
G, and the other way round, so D and G need not share δ between them.

The lattice. Noise is rounded to the lattice of step 2^-STEP_BITS on which the weights lie. A weight
on the lattice plus rounded noise is the rounded sum: a function of the Gaussian mechanism's output.
What follows may then round as it likes. Of a user's own items, evidence may be half a step above or
below what noise had before it was rounded: D counts with thresholds that are half a step lower, and
`claim_edges` are half a step lower than z_i and the like, so that rounding never lowers a claim.
The sampler's values are off by at most 2⁻⁴⁹ (1 + |z|), for |z| ≤ 10.5, and a cell is 2^-STEP_BITS/σ
wide: the odds of a cell are off by a factor within 1 ± 23·2⁻⁴⁹·σ·2^STEP_BITS, which `lattice_cost`
charges to ε for each item that a user touches. Beyond, up to |z| = 13.2 where the sampler ends, a
cell's chance is off by up to 2⁻¹²⁷, a step of its uniform numbers at either border. SAMPLER_TAIL
pays for an error of 2⁻¹²³ (README.md), so for 16 cells; `lattice_cost` charges to δ as many of it
as there are such cells.

Numbers. All expectations are bounded from above:
 - the claim of noise alone is bounded from below (`claims.py`); only the first `_TRACKED` of a
   user's items are counted. Lower claims mean larger D and G;
 - rounds depend on each other, and what is used of B_1 … B_i is the law of each: a sum of t − 1
   independent claims. Of all ways to couple them, the one in which all are the same quantile U of
   their laws has the largest E g(Σ p_l b(B_l)), for every convex g and monotone b: the comonotone
   sum is the largest in convex order (Meilijson and Nádas 1979). Q is convex on the positive
   half-line; below zero its tangent takes its place. δ_G(ε, √(2ρ y)) is convex in y where
   ρ y ≤ √(1 + ε²) − 1; where that fails for y = 1, y = 1 takes its place. So one integral over U is
   left, a sum over cells with each quantile at the left end, where B is least;
 - blocks of t have their largest t as a factor, and the quantiles of their smallest t;
 - δ_G is taken from chords over y, which lie above a convex function;
 - `UPWARDS` pays for the rounding of floats, in evidence too: 10⁻¹³ of a deviation moves no tail
   by more than a factor 1 + 10⁻¹¹.

Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Final, Self

import numpy as np

from dp_sips.mechanisms.claims import UPWARDS, Schedule, cdf, claim_quantiles
from dp_sips.privacy.arrays import Floats, Integers
from dp_sips.privacy.budget import gaussian_delta
from dp_sips.privacy.guarantee import SamplerCost
from dp_sips.privacy.noise import SAMPLER_TAIL
from dp_sips.privacy.search import boundary

STEP_BITS: Final = 12
"""Weights and noise are multiples of 2^-STEP_BITS."""

_HALF_STEP = 2.0 ** -(STEP_BITS + 1)
_TRACKED = 192
_CHORDS = 256
# Calibration stops where the largest D(t) is this near to what may be spent on it, relatively.
_SPARE = 1e-3
_MOST_STEPS = 60
# Estimates of D(t) treat this number of cells as one; blocks with less than this part of the
# largest estimate are taken to be better than the worst block.
_CELLS_AT_ONCE = 20
_NEARLY = 0.95
# Cells of the quantile U, dense where few of a user's own items survive.
_QUANTILES = np.unique(np.concatenate(([0.0], np.logspace(-9, -1, 40), np.linspace(0.1, 1.0, 40))))
_ALL: Final = slice(None)


def joint_bound(schedule: Schedule, max_items: int, *, shared: bool = False) -> "JointBound":
    """Return the bound for a schedule and a Δ0; what ε and ρ do not change is computed once."""
    return _joint_bound(schedule, max_items, shared)  # a cache takes f(x, y=1) and f(x) for two


@cache
def _joint_bound(schedule: Schedule, max_items: int, shared: bool) -> "JointBound":  # noqa: FBT001
    return JointBound(schedule, max_items, shared=shared)


class JointBound:
    """D(t) and G(t) of the theorem, from above, for blocks of t; the first block is t = 0 alone.

    Where the t items are `shared` with others ("Items of several users"), G is that of y = 1.
    """

    def __init__(self, schedule: Schedule, max_items: int, *, shared: bool = False) -> None:
        self.schedule = schedule
        self.max_items = max_items
        self.starts = _starts(max_items)
        self._ends = np.append(self.starts[1:] - 1, max_items)
        self._cells = np.diff(_QUANTILES) * UPWARDS
        others, self._place = np.unique(_tracked(self.starts - 1), return_inverse=True)
        own = _tracked(self.starts)
        needed = np.union1d(others, own)
        sums = claim_quantiles(schedule, needed, _QUANTILES[:-1] * (1 - 1e-9))
        self._shared = self._weights(sums[needed.searchsorted(others)])
        self._norms = self._left(sums[needed.searchsorted(own)])
        if shared:
            self._norms = np.ones_like(self._norms)
        firsts = np.arange(0, len(self._cells), _CELLS_AT_ONCE)
        self._few_cells = np.add.reduceat(self._cells, firsts)
        weighted = np.add.reduceat(self._shared * self._cells, firsts, axis=2)
        self._few_shared = weighted / self._few_cells

    def _weights(self, others: Floats) -> Floats:
        """Return m_i for each number of others (× rounds × cells)."""
        parts = self.schedule.counts[:, None] / np.sqrt(1 + others)
        for index in range(1, len(self.schedule.counts)):  # faster than NumPy's cumsum
            parts[:, index] += parts[:, index - 1]
        return np.asarray(parts / self.schedule.counted[:, None])

    def _left(self, own: Floats) -> Floats:
        """Return y for each block of t (× cells)."""
        rest = (self.max_items - self.starts)[:, None, None]
        left = rest / np.maximum(1.0, rest + own)  # where rest is 0, so is what is left
        return np.asarray(np.minimum(1.0, self.schedule.fractions @ left))

    def release(self, rho: float, thresholds: Floats) -> Floats:
        """Return the largest D(t) of each block of t."""
        return np.asarray(_release_by_round(self, rho, tuple(thresholds.tolist())).sum(axis=1))

    def release_by_round(self, rho: float, thresholds: Floats) -> list[float]:
        """Return what each round adds to D(t), at the t where D is largest."""
        parts = _release_by_round(self, rho, tuple(thresholds.tolist()))
        return [float(part) for part in parts[int(parts.sum(axis=1).argmax())]]

    def release_of(self, blocks: Integers, rho: float, thresholds: Floats) -> Floats:
        """Return the largest D(t) of some blocks of t."""
        tails = self._mean_tails(rho, thresholds, self._place[blocks])
        return np.asarray(self._releases(tails, blocks).sum(axis=1))

    def estimate(self, rho: float, thresholds: Floats) -> Floats:
        """Return about the largest D(t) of each block of t, from few cells: not a bound."""
        tails = self._tails(rho, thresholds, self._few_shared) @ self._few_cells
        return np.asarray(tails.sum(axis=1)[self._place] * self._ends)

    def all_releases(self, rho: float, thresholds: Floats) -> Floats:
        """Return the parts of D(t) for all blocks of t (rows) and each round (columns)."""
        return self._releases(self._mean_tails(rho, thresholds, _ALL)[self._place], _ALL)

    def _releases(self, tails: Floats, blocks: Integers | slice) -> Floats:
        """Return the parts of D(t) for blocks of t (rows) with these tails."""
        return np.asarray(tails * self._ends[blocks, None] * UPWARDS)

    def _mean_tails(self, rho: float, thresholds: Floats, places: Integers | slice) -> Floats:
        """Return E Q((T_i − m_i)/s_i) for numbers of others (rows) and each round (columns)."""
        return np.asarray(self._tails(rho, thresholds, self._shared[places]) @ self._cells)

    def _tails(self, rho: float, thresholds: Floats, shared: Floats) -> Floats:
        """Return Q((T_i − m_i)/s_i), from above, where m_i is `shared` (… × rounds × cells)."""
        # An average of rounded noise may be half a step too high.
        quantiles = (thresholds - _HALF_STEP)[:, None] - shared
        quantiles /= self.schedule.deviations(rho)[:, None]
        return _convex_tail(quantiles)

    def noise(self, epsilon: float, rho: float, more: float = 0.0) -> Floats:
        """Return G(t) at the start of each block of t: the most in the block, as G decreases.

        `more` is ρ of a Gaussian mechanism on the release, of which `joint.py` speaks.
        """
        if (rho + more) * UPWARDS > math.sqrt(1 + epsilon**2) - 1:
            whole = gaussian_delta(epsilon, math.sqrt(2 * (rho + more)) * UPWARDS)
            return np.full(len(self.starts), whole)
        points = np.linspace(0.0, 1.0, _CHORDS + 1)
        norms = np.sqrt(2 * (rho * points + more)) * UPWARDS
        deltas = [gaussian_delta(epsilon, norm) if norm else 0.0 for norm in norms.tolist()]
        return np.asarray(np.interp(self._norms, points, deltas) @ self._cells * UPWARDS)

    def delta(self, epsilon: float, rho: float, thresholds: Floats) -> float:
        """Return max_t D(t) + G(t)."""
        both = self.release(rho, thresholds) + self.noise(epsilon, rho)
        return min(1.0, float(both.max()))

    def threshold_delta(self, rho: float, thresholds: Floats) -> float:
        """Return max_t D(t), the δ of the zCDP statement."""
        return min(1.0, float(self.release(rho, thresholds).max()))


@lru_cache(maxsize=16)
def _release_by_round(bound: JointBound, rho: float, thresholds: tuple[float, ...]) -> Floats:
    """Return the parts of D(t): the last check of a calibration needs them, and what follows."""
    return bound.all_releases(rho, np.array(thresholds))


def lattice_cost(rho: float, schedule: Schedule, max_items: int) -> SamplerCost:
    """Return what the sampler's rounding can cost: "The lattice", above.

    Three times the error of a cell covers (1 + κ)/(1 − κ), on both neighbours.
    """
    cells = 2.0**STEP_BITS / np.sqrt(2 * rho * schedule.fractions)  # in one deviation
    loss = 3 * max_items * 23 * 2.0**-49 * (cells + 11).sum()  # 11 where a cell is wider than it
    tail = max_items * SAMPLER_TAIL * (1 + 2 * 2.7 * cells / 16).sum()
    return SamplerCost(float(loss), float(tail))


def claim_edges(rho: float, schedule: Schedule) -> Floats:
    """Return the evidence from which an item has each claim except 0 (rounds × claims).

    Rounded noise can be half a step too low. As much lower are the edges, so that a claim is never
    below what noise would have had before it was rounded.
    """
    deviations = schedule.deviations(rho)
    rows = [schedule.edges(index) * deviation for index, deviation in enumerate(deviations)]
    return np.stack(rows) - _HALF_STEP


def calibrate_evidence(
    epsilon: float, delta: float, schedule: Schedule, max_items: int, *, shared: bool = False
) -> tuple[float, Floats]:
    """Return the ρ and the thresholds that are (ε, δ)-DP, with the last threshold lowest.

    Guarantee: `joint_bound(schedule, max_items, shared=shared).delta(epsilon, rho, thresholds)` is
    at most δ.
    """
    bound = joint_bound(schedule, max_items, shared=shared)
    best: tuple[float, Floats] | None = None
    for part in reversed(SHARED_PARTS if shared else NOISE_PARTS):  # mostly, the last is the best
        rho = largest_rho(epsilon, part * delta)
        # Thresholds as low as the best so far would spend too much: no need to search.
        if best is not None and _Excess.of_release(rho, delta, bound).above(best[1]):
            continue
        noise = bound.noise(epsilon, rho)
        if float(noise.max()) >= delta:
            continue
        excess = _Excess(rho, (delta - noise) / UPWARDS, bound)
        if best is not None and excess.above(best[1]):
            continue
        thresholds = schedule.thresholds(rho, excess.least_quantile())
        if best is None or thresholds[-1] <= best[1][-1]:
            best = rho, thresholds
    assert best is not None
    return best


NOISE_PARTS: Final = (0.75, 0.85, 0.92, 0.96, 0.985)
"""The parts of δ that calibration tries for a user without items of its own."""

SHARED_PARTS: Final = (0.4, 0.5, 0.6, 0.7, 0.8)
"""The same where all users have that part of δ."""


def calibrate_evidence_rho(rho: float, delta: float, schedule: Schedule, max_items: int) -> Floats:
    """Return the lowest thresholds that are δ-approximate ρ-zCDP."""
    bound = joint_bound(schedule, max_items)
    excess = _Excess.of_release(rho, delta, bound)
    return schedule.thresholds(rho, excess.least_quantile())


@dataclass(frozen=True)
class _Excess:
    """By how much D(t) is above what G(t) leaves for it, for a last quantile: in logarithms.

    Guarantee: where it is not above 0, D(t) + G(t) ≤ δ for all t of the block. It falls with the
    quantile.

    Attributes:
        rho: ρ of all noise.
        left: (δ − G(t)) / UPWARDS of each block of t.
        bound: What knows D(t).
    """

    rho: float
    left: Floats
    bound: JointBound

    @classmethod
    def of_release(cls, rho: float, delta: float, bound: JointBound) -> Self:
        """Return the excess of D(t) alone, without G(t)."""
        return cls(rho, np.full(len(bound.starts), delta / UPWARDS), bound)

    def everywhere(self, quantile: float) -> Floats:
        """Return the excess of each block of t."""
        return _logs(self.bound.release(self.rho, self._thresholds(quantile)) / self.left)

    def of(self, blocks: Integers, quantile: float) -> Floats:
        """Return the excess of some blocks of t."""
        released = self.bound.release_of(blocks, self.rho, self._thresholds(quantile))
        return _logs(released / self.left[blocks])

    def worst(self, quantile: float) -> int:
        """Return the block with the largest excess, if the estimate of D(t) is a good one."""
        estimate = self._estimate(quantile)
        near = np.flatnonzero(estimate >= _NEARLY * estimate.max())
        return int(near[self.of(near, quantile).argmax()])

    def above(self, thresholds: Floats) -> bool:
        """Return whether a block is known to have an excess, with the last of these thresholds."""
        quantile = self.bound.schedule.quantile(self.rho, float(thresholds[-1]))
        likely = np.array([self._estimate(quantile).argmax()])
        return bool(self.of(likely, quantile)[0] > 0)

    def least_quantile(self) -> float:
        """Return about the least quantile at which no block of t has an excess above 0.

        The search looks at the blocks alone that are worst somewhere, as they are very few. Where
        another turns out to be worse at what was found, it is added to them.
        """
        worst = sorted({self.worst(quantile) for quantile in _ANYWHERE})
        while True:
            found = _least(partial(self._most, np.array(worst)))
            whole = self.everywhere(found)
            most = int(whole.argmax())
            if whole[most] <= 0:
                return found
            if most in worst:  # above 0 by no more than the rounding of another order of summation
                return _least(lambda quantile: float(self.everywhere(quantile).max()))
            worst.append(most)

    def _most(self, blocks: Integers, quantile: float) -> float:
        return float(self.of(blocks, quantile).max())

    def _estimate(self, quantile: float) -> Floats:
        return self.bound.estimate(self.rho, self._thresholds(quantile)) / self.left

    def _thresholds(self, quantile: float) -> Floats:
        return self.bound.schedule.thresholds(self.rho, quantile)


def _logs(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, 1e-300)))


_ANYWHERE: Final = (0.0, 4.0, 6.0)
"""Quantiles from one end to the other of where the least one lies, for all but odd budgets."""


def _least(excess: Callable[[float], float]) -> float:
    """Return about the least quantile with an excess of at most 0; excess falls with quantiles.

    Regula falsi, with halving where one end does not move (the Illinois method): the excess is the
    logarithm of a Gaussian tail, nearly a parabola.
    """
    low, high = 0.0, 4.0
    above, below = excess(low), excess(high)
    if above <= 0:
        return low
    while below > 0:
        low, above, high = high, below, 1.5 * high
        below = excess(high)
    settled = below
    for _ in range(_MOST_STEPS):
        if settled > -_SPARE:
            break
        middle = low + (high - low) * above / (above - below)
        found = excess(middle)
        if found > 0:
            low, above, below = middle, found, below / 2
        else:
            high, above, below, settled = middle, above / 2, found, found
    return high


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ at which the Gaussian mechanism is (ε, δ)-DP."""

    def holds(rho: float) -> bool:
        return gaussian_delta(epsilon, math.sqrt(2 * rho) * UPWARDS) <= delta

    return boundary(holds, epsilon * epsilon / 100, factor=2.0)


def _tracked(items: Integers) -> Integers:
    """Return how many of a user's own items are counted."""
    return np.clip(items, 0, _TRACKED)


def _starts(max_items: int) -> Integers:
    """Return where blocks of t start: 0, then every t at first, then wider, up to Δ0."""
    starts = [0, 1]
    while starts[-1] < max_items:
        starts.append(min(max_items, max(starts[-1] + 1, int(starts[-1] * 1.05))))
    return np.array(starts)


def _convex_tail(x: Floats) -> Floats:
    """Return Q(x) for x ≥ 0 and its tangent at 0 below: a convex function that is nowhere less."""
    tail = cdf(-x)
    below = x < 0
    if below.any():
        tail[below] = 0.5 - x[below] / math.sqrt(2 * math.pi)
    tail *= UPWARDS
    return tail
