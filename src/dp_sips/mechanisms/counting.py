"""How many users hold each released item: one more Gaussian, with whole numbers.

    K ← the released items, or keys that are given
    for each user: the first max_items of their items in K, in bounding order, count
    release c(u) + N_Z(0, σ²) for each u in K,  σ² = s²/2ρ + r²,  s² = min(max_items, |K|)

N_Z is the discrete Gaussian, P[n] ∝ exp(−n²/2σ²) on the whole numbers, and r² = `SMOOTHING`. The
row `other` counts the users who hold nothing of K.

Guarantee: given K, the counts are a function of a Gaussian mechanism with Σ 1/σ² = 2ρ, except for a
factor within e^(±η) in the odds of each count that one user changes.

Sensitivity. Given K and the bits of bounding, which items of a user count is a rule for that user
alone. An additional user adds 1 to at most min(max_items, |K|) counts; or, without an item in K, 1
to `other` and nothing else. So the row `other` is free: the counts move by an L2 norm of at most s
with or without it (s = 1 where K is empty).

The discrete Gaussian is a function of a Gaussian (Peikert 2010, Theorem 3.1, with the error spelled
out). Let c be a whole number, t² = σ² − r², and draw y from N(c, t²), then n from the discrete
Gaussian of variance r² around y: P[n | y] = ρ_r(n − y) / Σ_k ρ_r(k − y), ρ_r(z) = exp(−z²/2r²). By
Poisson's summation the sum is √(2π) r (1 + 2 Σ_{k≥1} exp(−2π²r²k²) cos 2πky), so it is within
√(2π) r (1 ± θ), θ = 2 Σ_{k≥1} exp(−2π²r²k²). Without the sum, the integral over y is a convolution
of two Gaussians: n has odds φ_σ(n − c) up to a factor within 1/(1 ± θ). The discrete Gaussian of
variance σ² has odds φ_σ(n − c) / (1 + θ'), 0 ≤ θ' ≤ θ. So the two differ by a factor within e^(±η),
η = log((1 + θ)/(1 − θ)). With r² = 3/2, η < 6·10⁻¹³.

The other counts have the same odds on both neighbours: leave them as they are, and replace those of
the at most s² counts that the user changes. What replaces them is a function of y, a Gaussian
mechanism with deviation t and sensitivity s: s²/t² = 2ρ. The exchange costs a factor e^(s²η) on
each side, hence 2s²η of ε and a factor e^(s²η) on δ: `rounding_cost`. OpenDP's sampler is exact.

The whole. The selection and its guarantee are as they were; given its release, the counts are as
above, with fresh noise. `joint.py` composes the two, exactly for what is known of each.

Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design, EpsilonDelta, RhoDelta
from dp_sips.mechanisms.joint import NOTHING, joined, paths_of, release_of, whole_of
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import rounded_up
from dp_sips.privacy.guarantee import LARGEST_EPSILON, Guarantee, SamplerCost
from dp_sips.privacy.search import boundary
from dp_sips.validation import check_number, check_whole

DEFAULT_MAX_ITEMS: Final = 10
"""How many of the keys a user counts for, unless told otherwise: the noise grows as its root."""

DEFAULT_SHARE: Final = 1 / 3
"""The count's part of ε or ρ, unless told otherwise."""

SMOOTHING: Final = 1.5
"""r²: how much of the variance makes a Gaussian's value a whole number."""

# A selection by coins takes its δ beforehand; this much leaves noise enough for the counts.
_SELECTION_DELTA: Final = 0.75
# Less than this ρ is of no use to a count: the noise would be beyond 10⁵ users.
_LEAST_RHO: Final = 1e-10
_DOWN: Final = 1 - 2.0**-45
# With one more for other items, a user's keys fit into a chunk of the Spark engine.
_MOST_ITEMS: Final = (1 << 20) - 1


def check_share(share: object) -> float:
    """Return the count's part of the budget; it must lie strictly between 0 and 1."""
    number = check_number("share", share)
    if not 0 < number < 1:
        raise UsageError(f"share must be in (0, 1), the part of the counts, got {share}")
    return number


def selection_part(asked: Asked, share: float) -> Asked:
    """Return what the selection may spend, if the counts are to have a share of ε or of ρ.

    Gaussians compose better than that: `Counting.within` gives the counts all that is left.
    """
    if isinstance(asked, RhoDelta):
        return RhoDelta(asked.rho * (1 - share), asked.delta)
    epsilon = min(asked.epsilon, LARGEST_EPSILON)
    return EpsilonDelta(epsilon * (1 - share), asked.delta * _SELECTION_DELTA)


def rounding_cost(max_items: int) -> SamplerCost:
    """Return what it costs that a discrete Gaussian is not exactly a function of a Gaussian.

    θ is below 2.1 exp(−2π²r²), and log((1 + θ)/(1 − θ)) below 2.1 θ.
    """
    theta = 2.1 * math.exp(-2 * math.pi**2 * SMOOTHING)
    return SamplerCost(2 * max_items * 2.1 * theta, 0.0)


@dataclass(frozen=True)
class Counting:
    """The noise of counts that follow a selection, and what both spend together.

    Attributes:
        max_items: How many of the keys a user counts for.
        guarantee: What the selection and the counts spend.
        rhos: ρ of the counts after each release that may happen, by that release's guarantee:
            there are several where a look at the data decides.
    """

    max_items: int
    guarantee: Guarantee
    rhos: Mapping[Guarantee, float]

    @classmethod
    def within(cls, asked: Asked, selection: Guarantee, max_items: int, share: float) -> Self:
        """Return the counting with the least noise that keeps both within what was asked.

        Guarantee: the joint guarantee is (ε, δ)-DP, or δ-approximate ρ-zCDP, in floats.
        """
        cost = rounding_cost(check_whole("max_items", max_items, most=_MOST_ITEMS))
        paths = paths_of(selection)
        rhos = [_largest_rho(asked, path, cost, share) for path in paths]
        whole = whole_of([joined(*path, cost) for path in zip(paths, rhos, strict=True)])
        return cls(max_items, whole, dict(zip(map(release_of, paths), rhos, strict=True)))

    def deviation(self, release: Guarantee, keys: int) -> float:
        """Return σ of the noise on each count, after this release, of this many keys."""
        norm = max(1, min(self.max_items, keys))
        return rounded_up(math.sqrt(rounded_up(norm / (2 * self.rhos[release]) + SMOOTHING)))


def _largest_rho(asked: Asked, path: Guarantee, cost: SamplerCost, share: float) -> float:
    """Return the largest ρ of counts that keeps a path within what was asked."""
    if isinstance(asked, RhoDelta):
        return asked.rho * share * _DOWN
    epsilon, delta = asked.epsilon, asked.delta

    def holds(rho: float) -> bool:
        return joined(path, rho, cost).delta(epsilon=epsilon) <= delta

    if epsilon <= path.sampler.loss + cost.loss or not holds(_LEAST_RHO):
        raise UsageError(
            f"epsilon={epsilon:g} and delta={delta:g} are too small for counts after this "
            "selection: give more, or choose another mechanism"
        )
    return boundary(holds, _LEAST_RHO, factor=2.0)


@dataclass(frozen=True)
class GivenKeys:
    """The mechanism of counts whose keys are given: it selects nothing, and spends nothing."""

    name: ClassVar[str] = "given-keys"
    default_max_items: ClassVar[int] = DEFAULT_MAX_ITEMS
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "none"
    good_for: ClassVar[str] = "counts of items that are public already"

    def design(self, asked: Asked, max_items: int) -> Design:
        """Return no rounds: all of the budget is left for the counts."""
        del asked
        return Design((), NOTHING, Bounds(max_items))

    def chances(self, rounds: Sequence[Any], holders: Floats, items: int) -> Floats:
        """Return 1: what is given is shown, whatever the data is."""
        del rounds, items
        return np.ones_like(holders)

    def words(self, rounds: Sequence[Any]) -> str:
        """Say that nothing is selected, and what that leaves out."""
        del rounds
        return (
            "The items are given; their users are counted. They must be public: where an earlier\n"
            "release of the same users' data named them, that release spent a budget of its own,\n"
            "which this one does not include."
        )
