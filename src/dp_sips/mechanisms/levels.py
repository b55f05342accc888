"""Releases one after the other, each among what the earlier ones left, under one guarantee.

    for level = 1 … L:
        keep the rows whose parts were released at the level before
        release_level ← a mechanism of this package, with noise and bounding bits of its own

Guarantee: the list of all L releases has the curve of `LevelsGuarantee`, and is (ε, δ)-DP, or
δ-approximate ρ-zCDP, where that was asked for.

Proof. Which rows of a user count at a level is a rule for each row by itself, given the releases
before, which are public. So on neighbouring data sets the rows that count differ by one user, and
given the releases before, level i has the guarantee of its mechanism. The whole is an adaptive
composition. Let H_i(α) = sup P[Y] − αP'[Y] ≤ δ_i(log α) be the curve of level i.

- H_i is convex and falls, H_i(0) = 1, and as the guarantee holds for both orders of neighbours,
  H_i(e^−x) ≤ 1 − e^−x (1 − δ_i(x)). So H_i is at most the convex hull from below of any points
  above it, and at most the last of them beyond. We take `_DOTS` points on either side, and the
  corner of a curve that has one.
- A convex piecewise linear curve h is that of a pair of distributions whose privacy losses are its
  corners x_k: under P, x_k has the probability e^{x_k} times the change of slope there, and the
  loss is infinite with probability h(∞). To move losses up makes the curve larger; all of them
  are moved to a grid.
- If pair i is above level i's curve for every i and every history, then the product of the pairs
  is above the composition's (Dong, Roth and Su, Theorem 3.2; Zhu, Dong and Wang, Theorem 10). Its
  losses add up: δ(ε) = E[(1 − e^{ε − Σx_i})⁺]. (Doroshenko and others 2022 connect the dots.)

ρ adds up, and δ = 1 − Π(1 − δ_i) (Bun and Steinke's Lemma 8.2): the paper's statement.

A look. Where a level's mechanism is chosen by a look at the data, which path is taken may depend on
what earlier levels released. A product of curves bounds no such choice, so levels with looks spend
their parts (ε_i, δ_i) and no more: level i, with its look, is (ε_i, δ_i)-DP whatever came before
(`auto.py`), and these add up to at most the point (ε, δ), which is all that is stated. ∎

Floats: masses are sums and products of positive numbers, except for slopes, whose errors are some
2⁻⁴⁶ of the tail that they begin; `_UPWARDS` covers that.

Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Final, Self

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.mechanisms.auto import LookGuarantee, PathGuarantee
from dp_sips.mechanisms.base import Asked, Design, EpsilonDelta, Mechanism, RhoDelta
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.budget import LEAST_EPSILON, Accounting, Budget, compose, rounded_up
from dp_sips.privacy.guarantee import LARGEST_EPSILON, Guarantee, PointGuarantee, SamplerCost
from dp_sips.privacy.search import boundary
from dp_sips.validation import check_positive

MOST_LEVELS: Final = 16
"""More levels than this would outgrow the room for rounding in `parts_of`."""

# Points of each curve, and how far beyond the ε of interest they go.
_DOTS: Final = 60
_BEYOND: Final = 1.25
_GRID: Final = 1 << 13
# What every level leaves of its part: in all 16 steps of the grid, one for each level's rounding.
_ROOM: Final = _BEYOND * MOST_LEVELS / _GRID
# What the last level leaves of its δ, for the tails of the composition.
_LAST_DELTA: Final = 0.9
# How often the last level's ε is halved towards the largest that is left.
_TRIALS: Final = 6
_UPWARDS: Final = 1 + 1e-9


def check_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """Return the levels' parts of the budget, as numbers that add up to one."""
    if not 1 < len(shares) <= MOST_LEVELS:
        raise UsageError(f"levels are 2 to {MOST_LEVELS}, got {len(shares)}")
    parts = [check_positive("a level's share", share) for share in shares]
    return tuple(part / math.fsum(parts) for part in parts)


def parts_of(asked: Asked, shares: Sequence[float]) -> list[Asked]:
    """Return what each level may spend, so that all levels stay within what was asked."""
    if isinstance(asked, RhoDelta):
        whole = Budget.from_rho(asked.rho, asked.delta)
        return [RhoDelta(part.rho, part.delta) for part in whole.split(shares)]
    epsilon = min(asked.epsilon, LARGEST_EPSILON) * (1 - _ROOM)
    deltas = [asked.delta * (1 - _ROOM) * share for share in shares]
    deltas[-1] *= _LAST_DELTA
    return [EpsilonDelta(epsilon * s, d) for s, d in zip(shares, deltas, strict=True)]


@dataclass(frozen=True)
class LevelsGuarantee(Guarantee):
    """The guarantee of releases that follow each other: the composition of their curves.

    Attributes:
        parts: The guarantee of each.
        reach: The largest privacy loss of a part that is told from infinity.
    """

    parts: tuple[Guarantee, ...]
    reach: float

    @classmethod
    def of(cls, parts: Sequence[Guarantee], reach: float) -> Self:
        """Return the guarantee of these releases, tight for ε up to about `reach`."""
        whole = compose(Budget(part.rho, part.threshold_delta) for part in parts)
        cost = SamplerCost(
            rounded_up(math.fsum(part.sampler.loss for part in parts)),
            rounded_up(math.fsum(part.sampler.tail for part in parts)),
        )
        return cls(
            whole.rho, whole.delta, cost, tuple(parts), min(_BEYOND * reach, LARGEST_EPSILON)
        )

    @classmethod
    def of_budgets(cls, parts: Sequence[Guarantee]) -> Self:
        """Return the guarantee of releases that were asked for in ρ."""
        whole = compose(Budget(part.rho, part.threshold_delta) for part in parts)
        return cls.of(parts, whole.epsilon(min(2 * whole.delta, (1 + whole.delta) / 2)))

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the releases are (ε, δ)-DP, rounded up."""
        if accounting == "zcdp":
            return super().epsilon(delta=delta, accounting=accounting)
        if self.delta(epsilon=LARGEST_EPSILON) > delta:
            return math.inf
        if self.delta(epsilon=LEAST_EPSILON) <= delta:
            return LEAST_EPSILON
        return boundary(lambda e: self.delta(epsilon=e) <= delta, LARGEST_EPSILON, factor=0.5)

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return a δ for which the releases are (ε, δ)-DP, rounded up."""
        if accounting == "zcdp":
            return super().delta(epsilon=epsilon, accounting=accounting)
        losses, masses, infinite = _composed(self.parts, self.reach)
        above = losses > epsilon
        finite = masses[above] @ -np.expm1(epsilon - losses[above])
        return min(1.0, (infinite + float(finite)) * _UPWARDS)


def _point_of(asked: EpsilonDelta) -> PointGuarantee:
    """Return what is stated of levels whose mechanisms were chosen by looks: what was asked."""
    epsilon = min(asked.epsilon, LARGEST_EPSILON)
    return PointGuarantee.of(epsilon, asked.delta, SamplerCost(0.0, 0.0))


@lru_cache(maxsize=64)
def _composed(parts: tuple[Guarantee, ...], reach: float) -> tuple[Floats, Floats, float]:
    """Return the losses, their probabilities, and that of an infinite loss."""
    pairs = [_pair(part, reach) for part in parts]
    masses = reduce(_convolved, (masses for masses, _ in pairs))
    losses = (np.arange(len(masses), dtype=np.float64) - len(masses) // 2) * (reach / _GRID)
    infinite = -math.expm1(math.fsum(math.log1p(-mass) for _, mass in pairs))
    return losses, masses, infinite


def _convolved(one: Floats, other: Floats) -> Floats:
    """Return the probabilities of sums; `other` is zero in most places."""
    sums = np.zeros(len(one) + len(other) - 1)
    for place in np.flatnonzero(other):
        sums[place : place + len(one)] += other[place] * one
    return sums


@lru_cache(maxsize=64)
def _pair(part: Guarantee, reach: float) -> tuple[Floats, float]:
    """Return the probabilities of losses on the grid, and of an infinite one."""
    dots = _dots(part, reach)
    deltas = np.array([_delta_at(part, dot) for dot in dots])
    losses = np.concatenate((-dots[::-1], dots))
    curve = np.concatenate((1 - np.exp(-dots[::-1]) * (1 - deltas[::-1]), deltas))
    ratios, curve = _hull(np.concatenate(([0.0], np.exp(losses))), np.concatenate(([1.0], curve)))
    slopes = np.append(-np.diff(curve) / np.diff(ratios), 0.0)
    found = ratios[1:] * np.maximum(-np.diff(slopes), 0.0)
    cells = np.ceil(np.log(ratios[1:]) * (_GRID / reach) + 1e-9).astype(np.int64)
    masses = np.zeros(2 * _GRID + 3)
    np.add.at(masses, cells + _GRID + 1, found)
    return masses, float(curve[-1])


def _dots(part: Guarantee, reach: float) -> Floats:
    """Return the positive losses at which a curve is looked at."""
    dots = np.arange(1, _DOTS + 1, dtype=np.float64) * (reach / _DOTS)
    corner = _corner(part)
    return np.unique(np.append(dots, corner)) if 0 < corner < reach else dots


def _corner(part: Guarantee) -> float:
    """Return the ε from which on a curve is flat; 0 where there is none."""
    match part:
        case PathGuarantee():
            corner = _corner(part.release)
            return corner and rounded_up(part.look + part.sampler.loss + corner)
        case PointGuarantee():
            return rounded_up(part.pure + part.sampler.loss)
    return 0.0


def _delta_at(part: Guarantee, epsilon: float) -> float:
    """Return a part's δ; 1 where its sampler takes all of ε."""
    return part.delta(epsilon=epsilon) if epsilon > part.sampler.loss else 1.0


def _hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the largest convex curve that is nowhere above these points."""
    kept: list[int] = []
    for new in range(len(x)):
        while len(kept) > 1 and _is_above(x, y, kept[-2], kept[-1], new):
            kept.pop()
        kept.append(new)
    return x[kept], y[kept]


def _is_above(x: Floats, y: Floats, first: int, middle: int, last: int) -> bool:
    rise = (y[middle] - y[first]) * (x[last] - x[first])
    return bool(rise >= (y[last] - y[first]) * (x[middle] - x[first]))


def taken(guarantee: Guarantee, release: Guarantee | None) -> Guarantee:
    """Return the guarantee of the path that a look took; without a look, the guarantee itself."""
    if not isinstance(guarantee, LookGuarantee):
        return guarantee
    return next(path for path in guarantee.paths if path.release == release)


def promised_by(asked: Asked, planned: Sequence[Guarantee]) -> Guarantee:
    """Return what levels with these plans will have spent at most: what was asked for."""
    return LevelsGuarantee.of_budgets(planned) if isinstance(asked, RhoDelta) else _point_of(asked)


def whole_of(asked: Asked, spent: Sequence[Guarantee], *, looked: bool) -> Guarantee:
    """Return the guarantee of all levels, which spent this, after looks or without any."""
    if isinstance(asked, RhoDelta):
        return LevelsGuarantee.of_budgets(spent)
    if looked:
        return _point_of(asked)
    whole = LevelsGuarantee.of(spent, min(asked.epsilon, LARGEST_EPSILON))
    return replace(whole, asked_epsilon=asked.epsilon)


def with_the_rest(  # noqa: PLR0917
    asked: Asked,
    spent: Sequence[Guarantee],
    part: Asked,
    path: Guarantee,
    mechanism: Mechanism,
    max_items: int,
) -> tuple[Design | None, Guarantee]:
    """Return the last level's design for the largest ε that composition leaves, and its guarantee.

    Without a design, there is nothing to be gained beyond its part, which `path` spends.

    Guarantee: all levels together have δ(ε) ≤ δ, in floats.
    """
    found: tuple[Design | None, Guarantee] = (None, path)
    if isinstance(asked, RhoDelta) or isinstance(part, RhoDelta):
        return found
    epsilon = min(asked.epsilon, LARGEST_EPSILON)
    low, high = part.epsilon, epsilon
    for _ in range(_TRIALS):
        middle = (low + high) / 2
        design = _design(mechanism, EpsilonDelta(middle, part.delta), max_items)
        whole = path if design is None else _with_release(path, design.guarantee)
        composed = LevelsGuarantee.of([*spent, whole], epsilon)
        if design is not None and composed.delta(epsilon=epsilon) <= asked.delta:
            low, found = middle, (design, whole)
        else:
            high = middle
    return found


def _design(mechanism: Mechanism, asked: EpsilonDelta, max_items: int) -> Design | None:
    try:
        return mechanism.design(asked, max_items)
    except UsageError:
        return None


def _with_release(path: Guarantee, release: Guarantee) -> Guarantee:
    """Return a path with another release at its end."""
    if not isinstance(path, PathGuarantee):
        return release
    return PathGuarantee.of(path.look, release, path.sampler)
