"""What several releases about the same users spend together.

Adaptive composition. Each release is (ε, δ_i(ε))-DP for every ε, given all that came before, both
ways. Then the releases together are (ε, δ(ε))-DP for the bounds below. They hold where mechanisms
and parameters do not depend on what earlier releases showed; inputs may (the keys of a count, say).
Where parameters do depend on that, only `simple` holds (Rogers, Roth, Ullman and Vadhan 2016,
Theorem 3.1): `Composition` takes it alone with `adaptive=True`.

Simple addition. Each release is (ε_i, δ_i)-DP at the point that was asked for; together they are
(Σε_i, Σδ_i)-DP.

Gaussian rounds and thresholds. On an event that fails with probability at most Σδ_T, all of them
are a function of one adaptive composition of Gaussians with Σ 1/σ² = 2Σρ (`joint.py`, "Gaussian
rounds and a threshold", for one release after another). So δ(ε) = Σδ_T + δ_G(ε, √(2Σρ)), exactly as
for one release; the samplers' costs add up.

Everything else, by its curve. Let H(s) = max over events of P − s·P′ = δ(log s). It is convex and
falls from H(0) = 1. Given upper bounds of H at some points, the lower convex hull of these points
is an upper bound everywhere, as the area above H is convex. The hull is piecewise linear, hence
the curve of a pair with finitely many privacy losses (Doroshenko et al. 2022, "Connect the dots"):

    H(s) = p_∞ + Σ p_j (1 − s/s_j)⁺,    p_j = s_j (slope after s_j − slope before s_j),

which dominates the release, and the product of such pairs dominates the composition (Zhu, Dong and
Wang 2022, Theorem 10). The points are multiples of one step, so that the losses of a product are
too, and their distribution is a convolution. For s < 1, H(s) ≤ 1 − s (1 − δ(log 1/s)), as the
guarantee holds both ways. For an (ε, δ)-DP coin, ε on the grid, the hull is the coin's own curve.

Rounding. H of a product is Σ p_i H₂(s/s_i) + p_∞: it grows with p and with H₂. So losses may be
moved up and probabilities raised: sums above the grid count as infinite, those below it as its
lowest point; after the slopes are computed in floats, all p are scaled up until H, a sum of
positive terms, is at least the hull at each of its corners; and each sum of positive terms is
raised by more than its rounding.

Guarantee: every δ and ε here is rounded up, and never above simple addition.
Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Final, Self

import numpy as np

from dp_sips.mechanisms.joint import GaussianGuarantee
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.budget import LEAST_EPSILON
from dp_sips.privacy.guarantee import LARGEST_EPSILON, Guarantee, SamplerCost
from dp_sips.privacy.search import boundary

# Points of the grid on each side of a loss of zero.
_POINTS: Final = 3000
# A curve that has no formula is known at this many points per ε that was asked for, up to twice it.
_DENSITY: Final = 20
# Far above the rounding of a few floats, and of a sum of 2 · _POINTS positive ones.
_UPWARDS: Final = 1 + 1e-11


@dataclass(frozen=True)
class Spending:
    """What one release spends, in numbers that a file can hold.

    Attributes:
        epsilon: ε at which simple addition counts it …
        delta: … and its δ there.
        gaussian: ρ, δ of the thresholds, and the sampler's loss and tail, of Gaussian rounds; or …
        curve: … points (ε, δ) of the curve of any other release, in order of ε.
    """

    epsilon: float
    delta: float
    gaussian: tuple[float, float, float, float] | None
    curve: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, spent: Guarantee, reach: float = 0.0) -> Self:
        """Return what a release of this guarantee spends; its curve is known beyond ε = `reach`."""
        epsilon, delta = spent.stated()
        if type(spent) in {Guarantee, GaussianGuarantee}:  # others have curves of their own
            cost = spent.sampler
            whole = (spent.rho, spent.threshold_delta, cost.loss, cost.tail)
            return cls(epsilon, delta, whole, ())
        places = _places(spent, epsilon, reach)
        return cls(epsilon, delta, None, tuple((at, spent.delta(epsilon=at)) for at in places))


def _places(spent: Guarantee, epsilon: float, reach: float) -> list[float]:
    """Return where to ask a guarantee for its curve: any choice gives true bounds."""
    if isinstance(spent, PointGuarantee):
        return [epsilon]
    dense = (epsilon * step / _DENSITY for step in range(1, 2 * _DENSITY + 1))
    far = (epsilon * factor for factor in (2.5, 3.0, 4.0, 8.0))
    wide = (1.25 * reach * step / _DENSITY for step in range(1, _DENSITY + 1))
    places = sorted({*dense, *far, *wide})
    return [at for at in places if spent.sampler.loss < at <= LARGEST_EPSILON]


@dataclass(frozen=True)
class Composition:
    """The curve of several releases together.

    Attributes:
        spendings: What each of them spends.
        reach: The ε that matters most: the grid of losses is made for it.
        adaptive: Whether parameters may depend on earlier releases: then, simple addition.
    """

    spendings: tuple[Spending, ...]
    reach: float
    adaptive: bool = False

    def delta(self, epsilon: float) -> float:
        """Return a δ for which all of it is (ε, δ)-DP."""
        if not self.spendings:
            return 0.0
        simple = self._simple(epsilon)
        return simple if self.adaptive else min(simple, self._tight(epsilon))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε, rounded up, for which all of it is (ε, δ)-DP; may be infinite."""
        if self.adaptive:
            fits = _written_sum(one.delta for one in self.spendings) <= Fraction(repr(float(delta)))
            return float(_written_sum(one.epsilon for one in self.spendings)) if fits else math.inf
        if self.delta(LEAST_EPSILON) <= delta:
            return 0.0 if not self.spendings else LEAST_EPSILON
        largest = max(LARGEST_EPSILON, 2 * sum(one.epsilon for one in self.spendings))
        if self.delta(largest) > delta:
            return math.inf
        return boundary(lambda epsilon: self.delta(epsilon) <= delta, largest, factor=0.5)

    def _simple(self, epsilon: float) -> float:
        """Return Σδ_i where Σε_i ≤ ε, both as they are written: ten times 0.1 is 1."""
        if _written_sum(one.epsilon for one in self.spendings) > Fraction(repr(float(epsilon))):
            return 1.0
        return min(1.0, float(_written_sum(one.delta for one in self.spendings)))

    def _tight(self, epsilon: float) -> float:
        if self._losses is not None:
            return self._losses.delta(epsilon)
        whole = self._gaussian
        assert whole is not None
        return whole.delta(epsilon=epsilon) if epsilon > whole.sampler.loss else 1.0

    @cached_property
    def _gaussian(self) -> Guarantee | None:
        """All Gaussian rounds as one release."""
        parts = [one.gaussian for one in self.spendings if one.gaussian is not None]
        if not parts:
            return None
        rho, own, loss, tail = (math.fsum(column) * _UPWARDS for column in zip(*parts, strict=True))
        whole = Guarantee(rho, own, SamplerCost(loss, tail))
        return whole if own else GaussianGuarantee(rho, 0.0, whole.sampler)

    @cached_property
    def _losses(self) -> "Losses | None":
        """The losses of all of it; None where there are only Gaussian rounds."""
        grid = Grid(min(3 * self.reach + 1, self.reach + 6) / _POINTS)
        curves = [one.curve for one in self.spendings if one.gaussian is None]
        parts = [grid.losses(grid.from_points(curve)) for curve in curves]
        if not parts:
            return None
        if self._gaussian is not None:
            parts.append(grid.losses(grid.from_guarantee(self._gaussian)))
        return reduce(Losses.plus, parts)


@dataclass(frozen=True)
class Grid:
    """Losses that are multiples of one step, on both sides of zero."""

    step: float

    @property
    def _epsilons(self) -> Floats:
        return np.linspace(self.step, self.step * _POINTS, _POINTS)

    def from_guarantee(self, spent: Guarantee) -> Floats:
        """Return δ at 1, 2, … steps of ε."""
        loss, epsilons = spent.sampler.loss, self._epsilons.tolist()
        return np.array([spent.delta(epsilon=at) if at > loss else 1.0 for at in epsilons])

    def from_points(self, curve: Sequence[tuple[float, float]]) -> Floats:
        """Return bounds of δ at 1, 2, … steps of ε: on chords, as H is convex."""
        epsilons, deltas = np.array(curve).T
        known, heights = _both_ways(epsilons, deltas)
        places = np.exp(self._epsilons)
        return np.asarray(np.minimum(1.0, np.interp(places, known, heights) * _UPWARDS))

    def losses(self, deltas: Floats) -> "Losses":
        """Return losses whose curve is at least δ at each step, and everywhere in between."""
        places, heights = _both_ways(self._epsilons, deltas)
        numbers = np.r_[-_POINTS:0, 1 : _POINTS + 1]
        corners = _hull(np.r_[0.0, places], np.r_[1.0, heights])
        s, h = np.r_[0.0, places][corners], np.r_[1.0, heights][corners]
        slopes = np.minimum(0.0, np.diff(h) / np.diff(s))
        masses = np.maximum(0.0, np.diff(np.r_[slopes, 0.0]))  # q_j, for all corners but s = 0
        chances = np.zeros(2 * _POINTS + 1)
        chances[numbers[corners[1:] - 1] + _POINTS] = masses * s[1:]
        # The last corner needs no check, as H is p_∞ alone there; nor does a height of 0.
        covered, checked = h[-1] + _covered(s, masses), h[:-1] > 0
        scale = max(1.0, float((h[:-1][checked] / covered[checked]).max())) * _UPWARDS
        return Losses(self, chances * scale, float(h[-1]) * scale)


def _covered(s: Floats, masses: Floats) -> Floats:
    """Return Σ p_j (1 − s/s_j)⁺ at each corner but the last, as a sum of positive terms."""
    beyond = np.cumsum(masses[::-1])[::-1]  # Σ q_j of the corners after each
    return np.asarray(np.cumsum((np.diff(s) * beyond)[::-1])[::-1])


def _both_ways(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats]:
    """Return places s and bounds of H there, for ε and −ε."""
    below = np.exp(-epsilons)
    lower = (1 - below * (1 - deltas)) * (1 + 2.0**-50)
    return np.r_[below[::-1], np.exp(epsilons)], np.r_[np.minimum(1.0, lower)[::-1], deltas]


def _hull(x: Floats, y: Floats) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return the corners of the lower convex hull of points, which are in order of x.

    Rounding does no harm: chords between any of the points, the first and the last among them, are
    bounds of a convex curve.
    """
    xs, ys = x.tolist(), y.tolist()
    corners: list[int] = []
    for i in range(len(xs)):
        while len(corners) > 1:
            a, b = corners[-2:]
            rise, run = (ys[b] - ys[a]), (xs[b] - xs[a])
            if rise * (xs[i] - xs[a]) < (ys[i] - ys[a]) * run:
                break
            corners.pop()
        corners.append(i)
    return np.array(corners, np.int64)


@dataclass(frozen=True, eq=False)
class Losses:
    """A distribution of privacy losses, from above.

    Attributes:
        grid: What its losses are multiples of.
        chances: The probability of each, from the lowest.
        infinite: The probability that all is told.
    """

    grid: Grid
    chances: Floats
    infinite: float

    def plus(self, other: "Losses") -> "Losses":
        """Return the losses of both releases together."""
        sums = np.convolve(self.chances, other.chances)
        chances = sums[_POINTS : 3 * _POINTS + 1]
        chances[0] += sums[:_POINTS].sum()
        above = sums[3 * _POINTS + 1 :].sum()
        told = self.infinite * (other.infinite + other.chances.sum())
        told += other.infinite * self.chances.sum()
        return replace(self, chances=chances * _UPWARDS, infinite=float(above + told) * _UPWARDS)

    def delta(self, epsilon: float) -> float:
        """Return δ(ε), at an ε that is less by more than the rounding of the losses."""
        losses = self.grid.step * np.arange(-_POINTS, _POINTS + 1)
        excess = np.maximum(0.0, losses - epsilon + 1e-12 * (1 + epsilon))
        return min(1.0, (self.infinite + float(self.chances @ -np.expm1(-excess))) * _UPWARDS)


def _written_sum(numbers: Iterable[float]) -> Fraction:
    """Add up numbers as they are written in decimals."""
    return sum((Fraction(repr(float(number))) for number in numbers), Fraction(0))
