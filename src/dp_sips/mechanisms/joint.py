"""What a selection and one more Gaussian mechanism, run on its release, spend together.

The further mechanism is known by its ρ: given the release, it is a function of a Gaussian mechanism
with sensitivity/σ = μ = √(2ρ). `counting.py` says why counts are one. It composes with

Gaussian rounds and a threshold (privacy/README.md, "The argument"). Let h be the history of noisy
weights and g the further Gaussian's output, given f(h), the release. On E, which fails with
probability at most δ_T, both neighbours' results are the same function of (h, g), an adaptive
composition of Gaussian mechanisms with Σ 1/σ² = 2(ρ_s + ρ). So δ(ε) = δ_T + δ_G(ε, √(2(ρ_s + ρ))).

Cumulative evidence (`evidence.py`). Fix ξ in E, the noise of the user's own items. What is left is
a composition of Gaussians whose Σ 1/σ² is at most 2ρ_s y, and now 2ρ more. With

    G(t) = E δ_G(ε, √(2(ρ_s y + ρ)))

in place of the old G, the proof goes on as before: given ξ in E, none of the user's own items is in
the release, and the further noise is independent of ξ. As a function of y this G is the old one, at
ρ_s y + ρ: it is convex where ρ_s y + ρ ≤ √(1 + ε²) − 1. (With
`min_users` above 1, y = 1, and the argument is that of the paragraph before.)

Coins, and whatever else is (ε₀, δ₀)-DP. Such a mechanism is a function of one that tells all with
probability δ₀, and otherwise answers one question truthfully with odds e^ε₀ : 1 (`PointGuarantee`).
Given its output, whatever that is, the further mechanism is a function of N(0, 1) on one neighbour
and N(μ, 1) on the other. So both together are a function of the independent pair, whose curve is
exact: a truthful answer shifts the privacy loss of the Gaussian by ε₀, a lie by −ε₀,

    δ(ε) = δ₀ + (1 − δ₀) (p δ_G(ε − ε₀, μ) + (1 − p) δ_G(ε + ε₀, μ)),    p = e^ε₀/(1 + e^ε₀),

with δ_G(−a) = 1 − e^(−a) (1 − δ_G(a)), as a Gaussian's curve is the same both ways.

Release rules (`release_rule.py`). They are known by a divergence D_α of one order, and a Gaussian
has D_α ≤ αρ: the good parts of the rounds are multiplied by the Gaussian, D_α is at most Σe_i + αρ,
and the conversion is the same.

A look and what it chooses (`auto.py`). Each path is composed by itself, and may have a ρ of its
own, as the choice is public. The look's ε is added to a path's, and the curve is the worst path's,
as before: the argument asks nothing of the releases but their curves.

ρ-zCDP adds up, and δ stays (Bun and Steinke's Lemma 8.2, with a δ of 0). The costs of two samplers,
of which each bounds the odds given what came before, add up as well.

Guarantee: as in privacy/budget.py, every δ and ε here is rounded up.
Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.mechanisms.auto import LookGuarantee, PathGuarantee
from dp_sips.mechanisms.cumulative import EvidenceGuarantee
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.mechanisms.release_rule import rule_delta
from dp_sips.mechanisms.sips_rule import RuleGuarantee
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.budget import (
    LEAST_EPSILON,
    Accounting,
    gaussian_delta,
    rounded_up,
    zcdp_delta,
)
from dp_sips.privacy.guarantee import Guarantee, SamplerCost
from dp_sips.privacy.search import boundary

# No ε that anyone asks for is above this.
_LARGEST_EPSILON: Final = 10_000.0
# Far above the rounding of a few products of curves.
_UPWARDS: Final = 1 + 1e-12


def paths_of(selection: Guarantee) -> tuple[Guarantee, ...]:
    """Return what may happen after a look at the data; without one, the selection itself."""
    return selection.paths if isinstance(selection, LookGuarantee) else (selection,)


def release_of(path: Guarantee) -> Guarantee:
    """Return the guarantee of a path's release by itself, without the look."""
    return path.release if isinstance(path, PathGuarantee) else path


def whole_of(paths: Sequence[Guarantee]) -> Guarantee:
    """Undo `paths_of`."""
    after_look = [path for path in paths if isinstance(path, PathGuarantee)]
    return LookGuarantee.of(after_look) if after_look else paths[0]


def joined(path: Guarantee, rho: float, sampler: SamplerCost) -> Guarantee:
    """Return the guarantee of a path and of a further Gaussian mechanism on its release."""
    cost = SamplerCost(path.sampler.loss + sampler.loss, path.sampler.tail + sampler.tail)
    whole = rounded_up(path.rho + rho), path.threshold_delta, cost
    match path:
        case PathGuarantee():
            return PathGuarantee(*whole, path.look, joined(path.release, rho, sampler))
        case EvidenceGuarantee():
            return EvidenceAndGaussian(*whole, path, rho)
        case PointGuarantee():
            return CoinAndGaussian(*whole, path.pure, rho)
        case RuleGuarantee():
            return RuleAndGaussian(*whole, path, rho)
        case GaussianGuarantee():
            return GaussianGuarantee(*whole)
    if type(path) is Guarantee:  # others may have curves of their own
        return Guarantee(*whole)
    raise UsageError(
        f"nothing is known about counts after a {type(path).__name__}: choose another mechanism"
    )


@dataclass(frozen=True, repr=False)
class _CurveGuarantee(Guarantee):
    """A guarantee whose δ(ε) has a formula; ε(δ) is searched for."""

    def exact_epsilon(self, delta: float, accounting: Accounting) -> float:
        """Return the smallest ε that an exact sampler would have, rounded up."""
        return _epsilon_of(lambda epsilon: self.exact_delta(epsilon, accounting), delta)


@dataclass(frozen=True, repr=False)
class GaussianGuarantee(_CurveGuarantee):
    """The guarantee of Gaussian mechanisms alone, or of nothing: no threshold has a part of δ."""

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return δ_G(ε, √(2ρ)), rounded up."""
        if accounting == "zcdp":
            return zcdp_delta(epsilon, self.rho)
        return gaussian_delta(epsilon, rounded_up(math.sqrt(2 * self.rho)))


NOTHING: Final = GaussianGuarantee(0.0, 0.0, SamplerCost(0.0, 0.0))
"""What is spent where nothing is selected."""


@dataclass(frozen=True, repr=False)
class CoinAndGaussian(_CurveGuarantee):
    """The guarantee of what is (ε₀, δ₀)-DP, with δ₀ = threshold_delta, and of a Gaussian.

    Attributes:
        pure: ε₀, in exact arithmetic.
        more: ρ of the Gaussian.
    """

    pure: float
    more: float

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the exact curve of the pair, rounded up."""
        del accounting  # there is only one
        mu, lie = rounded_up(math.sqrt(2 * self.more)), 1 / (1 + math.exp(self.pure))
        told = (1 - lie) * _signed_delta(epsilon - self.pure, mu)
        spare = (told + lie * _signed_delta(epsilon + self.pure, mu)) * _UPWARDS
        return min(1.0, self.threshold_delta + (1 - self.threshold_delta) * spare)


@dataclass(frozen=True, repr=False)
class EvidenceAndGaussian(_CurveGuarantee):
    """The guarantee of cumulative evidence and of a Gaussian: the theorem with another G.

    Attributes:
        evidence: That of the selection.
        more: ρ of the Gaussian.
    """

    evidence: EvidenceGuarantee
    more: float

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the smallest δ that an exact sampler would have, rounded up."""
        if accounting == "zcdp":
            return super().exact_delta(epsilon, accounting)
        noise = self.evidence.bound.noise(epsilon, self.evidence.noise_rho, self.more)
        both = _released(self.evidence) + noise
        return min(1.0, float(both.max()))


@lru_cache
def _released(evidence: EvidenceGuarantee) -> Floats:
    """Return D(t), which a further Gaussian does not change."""
    return evidence.bound.release(evidence.noise_rho, np.array(evidence.thresholds))


@dataclass(frozen=True, repr=False)
class RuleAndGaussian(_CurveGuarantee):
    """The guarantee of release rules and of a Gaussian: their divergences add up.

    Attributes:
        selection: That of the rules.
        more: ρ of the Gaussian.
    """

    selection: RuleGuarantee
    more: float

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the smallest δ that an exact sampler would have, rounded up."""
        del accounting  # there is only one
        return rule_delta(self.selection.rules, epsilon, self.more)


def _signed_delta(epsilon: float, mu: float) -> float:
    """Return δ_G(ε, μ), rounded up, for any ε."""
    if epsilon >= 0:
        return gaussian_delta(epsilon, mu)
    return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(-epsilon, mu)


def _epsilon_of(curve: Callable[[float], float], delta: float) -> float:
    """Return the smallest ε, rounded up, at which a falling curve is at most δ."""
    if curve(_LARGEST_EPSILON) > delta:
        raise UsageError(f"delta is below what the selection spends for sure, got {delta}")
    if curve(LEAST_EPSILON) <= delta:
        return LEAST_EPSILON
    return boundary(lambda epsilon: curve(epsilon) <= delta, _LARGEST_EPSILON, factor=0.5)
