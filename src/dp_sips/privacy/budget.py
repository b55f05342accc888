"""Budgets, their composition, and their conversion to (ε, δ)-DP.

A budget is δ-approximate ρ-zCDP. Two accountings read it as (ε, δ)-DP (here and below, names such
as lem:comp are labels in the paper's source):

"zcdp"      the paper's cor:approx_zCDP_to_DP, true of every δ_T-approximate ρ-zCDP release:
            δ = δ_T + (1 − δ_T) · inf_α exp((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α.
"gaussian"  for releases that are a function of adaptively composed Gaussian mechanisms with
            Σ 1/σ_i² ≤ 2ρ, except on an event of probability at most δ_T on both neighbours. The
            composition is μ-Gaussian-DP with μ = √(2ρ), so δ = δ_T + δ_G(ε, μ). Weighted Gaussian
            and DP-SIPS are such releases; the event is that an item of the new user alone crosses
            its threshold.

Guarantee: every conversion rounds towards more privacy. A δ or an ε is never below the true one, a
calibrated ρ never above it, and the calibrated value satisfies the condition when it is evaluated
again in floats.
Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final, Literal, Self, get_args

from dp_sips.errors import UsageError, did_you_mean
from dp_sips.privacy.search import boundary, minimum
from dp_sips.validation import check_number, check_positive

Accounting = Literal["gaussian", "zcdp"]

# Sixteen roundings of 2⁻⁵³ each: more than any expression below makes before it is rounded up.
_ROUNDING: Final = 2.0**-49

LEAST_EPSILON: Final = 1e-9
"""An ε below this is reported as this: nobody can tell it from zero."""

# `calibrate` looks for the threshold's share of δ between this and one minus this.
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, slots=True)
class Budget:
    """What a release may spend: δ-approximate ρ-zCDP (the paper's def:approx_zCDP).

    Public: both numbers.
    """

    rho: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_rho(self.rho))
        object.__setattr__(self, "delta", check_delta(self.delta))

    @classmethod
    def from_rho(cls, rho: float, delta: float) -> Self:
        """Return the budget of δ-approximate ρ-zCDP."""
        return cls(rho, delta)

    @classmethod
    def from_epsilon(
        cls,
        epsilon: float,
        delta: float,
        *,
        threshold_delta: float | None = None,
        accounting: Accounting = "zcdp",
    ) -> Self:
        """Return the budget with the largest ρ that is (ε, δ)-DP.

        `threshold_delta` of δ is kept for the thresholds and becomes the budget's own δ; half of it
        unless told otherwise. `calibrate` finds the best part.

        Guarantee: `budget.delta_at(epsilon, accounting) <= delta`, in floats.
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        check_accounting(accounting)
        own = _check_threshold_delta(
            delta / 2 if threshold_delta is None else threshold_delta, delta
        )

        def holds(rho: float) -> bool:
            return _delta_at(rho, own, epsilon, accounting) <= delta

        # Bun and Steinke's Proposition 1.3, ε = ρ + 2√(ρ log(1/δ)), solved for ρ: true, not tight.
        log = -math.log(delta - own)
        start = (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2
        return cls(boundary(holds, start, factor=2.0), own)

    def split(self, shares: Sequence[float]) -> tuple["Budget", ...]:
        """Return one part of the budget for each share; shares need not add up to one.

        Guarantee: the parts compose to no more than the whole. They are computed exactly and
        rounded down, so Σρ_i ≤ ρ and 1 − Π(1−δ_i) ≤ Σδ_i ≤ δ hold as real numbers.
        """
        if not hasattr(shares, "__iter__"):
            raise UsageError(f"shares must be a list, such as [1, 1] for halves, got {shares!r}")
        exact = [Fraction(check_positive("share", share)) for share in shares]
        if not exact:
            raise UsageError("shares must name at least one part, got none")
        whole = sum(exact)
        rho, delta = Fraction(self.rho), Fraction(self.delta)
        return tuple(
            Budget(_float_below(rho * share / whole), _float_below(delta * share / whole))
            for share in exact
        )

    def __add__(self, other: "Budget") -> "Budget":
        """Return what two releases spend together, rounded up: `compose`."""
        return compose([self, other]) if isinstance(other, Budget) else NotImplemented

    def __radd__(self, other: object) -> "Budget":
        """Return the budget itself after nothing, which is 0: where `sum` begins."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: "Budget") -> "Budget":
        """Return what is left after a release, rounded down: with it again, at most the whole."""
        if not isinstance(other, Budget):
            return NotImplemented
        rho = Fraction(self.rho) - Fraction(other.rho)
        delta = 1 - (1 - Fraction(self.delta)) / (1 - Fraction(other.delta))
        for name, rest in (("rho", rho), ("delta", delta)):
            if rest <= 0:
                raise UsageError(
                    f"no {name} is left of {getattr(self, name):g} after {getattr(other, name):g}: "
                    "spend less of both, as a release needs some rho and some delta"
                )
        return Budget(_float_below(rho), _float_below(delta))

    def epsilon(self, delta: float, accounting: Accounting = "zcdp") -> float:
        """Return the smallest ε for which a release of this budget is (ε, δ)-DP, rounded up.

        Guarantee: `delta_at(epsilon(delta)) <= delta`, in floats.
        """
        delta = check_delta(delta)
        check_accounting(accounting)
        if delta <= self.delta:
            raise UsageError(
                f"delta must be above {self.delta}, which the budget itself spends, got {delta}"
            )

        def holds(epsilon: float) -> bool:
            return _delta_at(self.rho, self.delta, epsilon, accounting) <= delta

        if holds(LEAST_EPSILON):
            return LEAST_EPSILON
        # Bun and Steinke's Proposition 1.3: true, not tight.
        start = self.rho + 2 * math.sqrt(self.rho * -math.log(delta - self.delta))
        return boundary(holds, start, factor=0.5)

    def delta_at(self, epsilon: float, accounting: Accounting = "zcdp") -> float:
        """Return the smallest δ for which a release of this budget is (ε, δ)-DP, rounded up."""
        check_accounting(accounting)
        return _delta_at(self.rho, self.delta, check_epsilon(epsilon), accounting)


def compose(budgets: Iterable[Budget]) -> Budget:
    """Return the budget of releases made one after the other, each seeing those before it.

    Lemma 8.2 of Bun and Steinke (the paper's lem:comp): ρ adds up and δ = 1 − Π(1−δ_i).

    Guarantee: computed exactly and rounded up, so no smaller than what was spent.
    """
    rho, missed = Fraction(0), Fraction(1)
    for budget in budgets:
        rho += Fraction(budget.rho)
        missed *= 1 - Fraction(budget.delta)
    if not rho:
        raise UsageError("compose needs at least one budget, got none")
    return Budget(_float_above(rho), _float_above(1 - missed))


def calibrate(
    epsilon: float,
    delta: float,
    threshold: Callable[[Budget], float],
    accounting: Accounting = "gaussian",
) -> Budget:
    """Return the (ε, δ)-DP budget under which `threshold` is lowest.

    A δ can buy less noise or a threshold nearer to it; both lower the threshold of the last round,
    which decides about the rare items.

    Guarantee: `budget.delta_at(epsilon, accounting) <= delta` for every candidate, so the search
    for the best one needs no care.
    """
    delta = check_delta(delta)

    def candidate(log_share: float) -> Budget:
        part = delta * math.exp(log_share)
        return Budget.from_epsilon(epsilon, delta, threshold_delta=part, accounting=accounting)

    low, high = math.log(_LEAST_SHARE), math.log1p(-_LEAST_SHARE)
    return candidate(minimum(lambda share: threshold(candidate(share)), low, high, width=1e-4))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return δ_G(ε, μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), rounded up.

    Theorem 8 of Balle and Wang, and Corollary 2.13 of Dong, Roth and Su: the exact curve of the
    Gaussian mechanism with sensitivity/σ = μ. With near = ε/μ − μ/2 and far = ε/μ + μ/2 we have
    e^ε e^{−far²/2} = e^{−near²/2}, so

        δ_G = ½ e^{−near²/2} (erfcx(near/√2) − erfcx(far/√2)),

    which neither overflows nor subtracts what it could factor out.

    Guarantee: never below the true value. near and far are wrong by at most 2⁻⁵² far, hence
    e^{−near²/2} by 5 far² and each erfcx, with the library's own error, by 2 far + 10 parts in 2⁵³;
    so both terms are widened by 16 (1 + far²) such parts. Below the smallest normal float the value
    underflows, and `delta_at` covers it where it adds up.
    """
    ratio = epsilon / mu
    near, far = ratio - mu / 2, ratio + mu / 2
    peak, erfcx, root = math.exp(-near * near / 2), _erfcx(), math.sqrt(2)
    # For near < 0 erfcx would overflow where the product is a plain probability.
    first = peak * float(erfcx(near / root)) if near >= 0 else math.erfc(near / root)
    second = peak * float(erfcx(far / root))
    terms = first + second
    # Zero stays zero though far may be infinite.
    slack = _ROUNDING * (1 + far * far) * terms if terms else 0.0
    return min(1.0, (first - second + slack) / 2)


def zcdp_delta(epsilon: float, rho: float) -> float:
    """Return the δ with which every ρ-zCDP mechanism is (ε, δ)-DP, rounded up.

    Proposition 7 of Canonne, Kamath and Steinke (the paper's lem:zCDP_to_DP_tight):

        δ = inf_α exp((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α.

    Guarantee: never below the infimum. Every α > 1 gives a true bound, so the rounding of α does no
    harm; the rounding of the logarithm is covered by 2⁻⁴⁹ of the size of its terms.
    """
    beta = _optimal_beta(epsilon, rho)
    gain, loss = beta * epsilon, beta * (1 + beta) * rho
    shape = (1 + beta) * math.log1p(1 / beta)
    size = 1 + gain + loss + shape + abs(math.log(beta))
    log = loss - gain - shape - math.log(beta) + _ROUNDING * size
    return math.exp(min(0.0, log))


def zcdp_alpha(epsilon: float, rho: float) -> float:
    """Return the α at which `zcdp_delta` takes its infimum, as in the paper's tables."""
    return 1 + _optimal_beta(epsilon, rho)


def check_rho(rho: float) -> float:
    """Return ρ as a float; it must be positive and finite."""
    return check_positive("rho", rho)


def check_epsilon(epsilon: float) -> float:
    """Return ε as a float; it must be positive and finite."""
    return check_positive("epsilon", epsilon)


def check_delta(delta: float) -> float:
    """Return δ as a float; it must lie strictly between 0 and 1."""
    number = check_number("delta", delta)
    if not 0 < number < 1:
        raise UsageError(f"delta must be in (0, 1), got {delta}")
    return number


def check_accounting(accounting: str) -> None:
    """Reject an accounting that does not exist."""
    known = get_args(Accounting)
    if accounting not in known:
        raise UsageError(
            f"accounting must be one of {', '.join(known)}, got {accounting!r}; "
            + did_you_mean(str(accounting), known)
        )


def _check_threshold_delta(threshold_delta: float, delta: float) -> float:
    number = check_number("threshold_delta", threshold_delta)
    if not 0 < number < delta:
        raise UsageError(
            f"threshold_delta must be in (0, {delta}), a part of delta, got {threshold_delta}"
        )
    return number


def _delta_at(rho: float, own: float, epsilon: float, accounting: Accounting) -> float:
    """Return δ_T + δ_G ("gaussian") or δ_T + (1 − δ_T) δ' ("zcdp"), rounded up."""
    if accounting == "gaussian":
        noise = gaussian_delta(epsilon, _up(math.sqrt(2 * rho)))
    else:
        noise = _up((1 - own) * zcdp_delta(epsilon, rho))
    return min(1.0, math.nextafter(own + noise, math.inf))


def _optimal_beta(epsilon: float, rho: float) -> float:
    """Return β = α − 1 for the best α of `zcdp_delta`.

    The derivative of the logarithm, h(β) = (2β+1)ρ − ε − log(1+1/β), increases and is concave, so
    Newton's method climbs to its only root from anywhere on the left. As log(1+1/β) < 1/β, the
    root of (2β+1)ρ − ε − 1/β is on the right and near: the search starts there, and a step that
    would jump below zero is cut.
    """
    lead = rho - epsilon
    root = math.hypot(lead, math.sqrt(8) * math.sqrt(rho))
    # Of two forms of the same root, the one that does not cancel.
    beta = _clip(2 / (root + lead) if lead > 0 else (root - lead) / (4 * rho))
    for _ in range(40):
        slope = 2 * rho + 1 / (beta * (1 + beta))
        step = ((2 * beta + 1) * rho - epsilon - math.log1p(1 / beta)) / slope
        if abs(step) <= _ROUNDING * beta:
            break
        beta = _clip(max(beta - step, beta / 16))
    return beta


def _clip(beta: float) -> float:
    # Far beyond any α of use, and 1/β², β² stay floats.
    return min(max(beta, 1e-150), 1e150)


@cache
def _erfcx() -> Callable[[float], float]:
    # scipy.special takes longer to import than all the rest of this package.
    from scipy.special import erfcx

    return erfcx


def rounded_up(value: float) -> float:
    """Return a positive value, larger by more than the error of a few roundings."""
    return value * (1 + 2.0**-50)


def _up(value: float) -> float:
    return value * (1 + _ROUNDING)


def _float_below(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if nearest <= exact else math.nextafter(nearest, -math.inf)


def _float_above(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)
