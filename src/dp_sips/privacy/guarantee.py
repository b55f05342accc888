"""What a release has spent, in every currency that its reader may ask for."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.privacy.budget import Accounting, Budget, check_delta, check_epsilon
from dp_sips.privacy.evidence import Schedule, joint_bound
from dp_sips.privacy.noise import SAMPLER_ERROR, SAMPLER_TAIL
from dp_sips.privacy.rule import ReleaseRule, rule_delta, rule_epsilon
from dp_sips.privacy.search import boundary

_LARGEST_EPSILON = 10_000.0
LARGEST_EPSILON: Final = 28.0
"""A larger ε counts as this one: up to here the sampler's tails are as small as accounted for."""

# An ε below this is reported as this: nobody can tell it from zero.
_LEAST_EPSILON = 1e-9
# Items that may be touched through others, and −log of the chance that their errors add up to more.
_MOST_VERDICTS = 2**36
_LOG_MISS = 270.0


def sampler_loss(rounds: int, max_items: int) -> float:
    """Return what the sampler's rounding can add to ε: README.md, "The sampler".

    One user touches at most max_items verdicts a round; the odds of each are off by a factor of at
    most 1 ± SAMPLER_ERROR on either neighbour. Three times as much covers (1 + e)/(1 − e).
    """
    return 3 * rounds * max_items * SAMPLER_ERROR


def sampler_tail(rounds: int, max_items: int) -> float:
    """Return what the sampler's far tails can add to δ: README.md, "The sampler"."""
    return rounds * max_items * SAMPLER_TAIL


def cascade_loss(rounds: float) -> float:
    """Return the same as `sampler_loss` where one user can touch every verdict, through others.

    The logarithms of the odds' errors are independent and average out: README.md, "The sampler".
    """
    spread = SAMPLER_ERROR * math.sqrt(2 * _MOST_VERDICTS * _LOG_MISS)
    return 2 * rounds * (1.01 * spread + 2 * _MOST_VERDICTS * SAMPLER_ERROR**2)


def cascade_tail(rounds: int) -> float:
    """Return the same as `sampler_tail` where one user can touch every verdict, through others."""
    return 2 * rounds * _MOST_VERDICTS * SAMPLER_TAIL


@dataclass(frozen=True)
class Guarantee:
    """Differential privacy of the whole release, for one user added or removed.

    Attributes:
        rho: ρ of the paper's statement, threshold_delta-approximate ρ-zCDP.
        threshold_delta: δ of that statement: how likely an item that only one user holds is
            released at all.
        sampler_loss: What rounding can add to ε, and by what factor more 1 + it can raise δ;
            `epsilon` and `delta` include it.
        sampler_tail: What the sampler's far tails can add to δ; included as well.
    """

    rho: float
    threshold_delta: float
    sampler_loss: float
    sampler_tail: float

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up.

        Infinity stands for every ε above LARGEST_EPSILON: there, the sampler's tails show.
        """
        return self._whole(self._budget.epsilon(self._exact(delta), accounting))

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        return self._sampled(self._budget.delta_at(self._rest(epsilon), accounting))

    def _exact(self, delta: float) -> float:
        """Return the δ that exact arithmetic may have, for the sampler to have this one."""
        exact = (check_delta(delta) - self.sampler_tail) / (1 + self.sampler_loss)
        if exact <= 0:
            raise UsageError(
                f"delta must be above {self.sampler_tail}, the sampler's part, got {delta}"
            )
        return exact

    def _whole(self, epsilon: float) -> float:
        """Return the ε that the sampler has where exact arithmetic has this one."""
        whole = epsilon + self.sampler_loss
        return whole if whole <= LARGEST_EPSILON * (1 + 1e-9) else math.inf

    def _sampled(self, delta: float) -> float:
        """Return the δ that the sampler has where exact arithmetic has this one."""
        return min(1.0, delta * (1 + self.sampler_loss) + self.sampler_tail)

    def _rest(self, epsilon: float) -> float:
        rest = min(check_epsilon(epsilon), LARGEST_EPSILON) - self.sampler_loss
        if rest <= 0:
            raise UsageError(
                f"epsilon must be above {self.sampler_loss}, the sampler's part, got {epsilon}"
            )
        return rest

    @property
    def _budget(self) -> Budget:
        return Budget(self.rho, self.threshold_delta)

    def __str__(self) -> str:
        return f"{self.threshold_delta:.4g}-approximate {self.rho:.4g}-zCDP"


@dataclass(frozen=True)
class RuleGuarantee(Guarantee):
    """The guarantee of release rules: (ε, δ) by the proof in rule.py.

    Attributes:
        rules: The rules of all rounds. `rho` and `threshold_delta` follow from the (ε, δ) that was
            asked for, as in `PlainGuarantee`.
    """

    rules: tuple[ReleaseRule, ...]

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up."""
        del accounting  # there is only one
        return self._whole(rule_epsilon(self.rules, self._exact(delta)))

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        del accounting
        return self._sampled(rule_delta(self.rules, self._rest(epsilon)))

    def __str__(self) -> str:
        return f"({math.sqrt(2 * self.rho) + self.sampler_loss:.4g}, {self.threshold_delta:.4g})-DP"


@dataclass(frozen=True)
class JointGuarantee(Guarantee):
    """The guarantee of cumulative evidence: (ε, δ) by the theorem in evidence.py.

    Attributes:
        schedule: The shares and drop levels of the rounds.
        max_items: Δ0.
        thresholds: T_i of each round.
    """

    schedule: Schedule
    max_items: int
    thresholds: tuple[float, ...]

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up."""
        if accounting == "zcdp":
            return super().epsilon(delta=delta, accounting=accounting)
        delta = self._exact(delta)
        if self._joint_delta(_LARGEST_EPSILON) > delta:
            raise UsageError(f"delta is below what the thresholds spend, got {delta}")
        if self._joint_delta(_LEAST_EPSILON) <= delta:
            return self._whole(_LEAST_EPSILON)
        found = boundary(lambda e: self._joint_delta(e) <= delta, _LARGEST_EPSILON, factor=0.5)
        return self._whole(found)

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        if accounting == "zcdp":
            return super().delta(epsilon=epsilon, accounting=accounting)
        return self._sampled(self._joint_delta(self._rest(epsilon)))

    def _joint_delta(self, epsilon: float) -> float:
        bound = joint_bound(self.schedule, self.max_items)
        return bound.delta(epsilon, self.rho, np.array(self.thresholds))


@dataclass(frozen=True)
class PlainGuarantee(Guarantee):
    """The guarantee of mechanisms that are (ε, δ)-DP for one ε and one δ: `pure`, threshold_delta.

    Every such mechanism is a function of one that tells all with probability δ, and else answers
    one question truthfully with odds e^ε : 1 (Murtagh and Vadhan 2016); so its whole curve is
    known, and δ-approximate ε²/2-zCDP follows.

    Attributes:
        pure: ε, in exact arithmetic.
    """

    pure: float

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up."""
        del accounting
        delta = self._exact(delta)
        if delta < self.threshold_delta:
            raise UsageError(
                f"delta must be at least {self.threshold_delta}, which the threshold spends, "
                f"got {delta}"
            )
        # Solved for ε′: δ(ε′) = δ + (1 − δ)(e^ε − e^ε′)/(1 + e^ε).
        spare = (delta - self.threshold_delta) / (1 - self.threshold_delta)
        inside = 1 - spare * (1 + math.exp(-self.pure)) + 1e-15  # rounded up
        found = self.pure + math.log(inside) if inside > 0 else 0.0
        return self._whole(max(_LEAST_EPSILON, found + 1e-14 * (1 + self.pure)))

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        del accounting
        less = max(0.0, self.pure - self._rest(epsilon))
        spare = -math.expm1(-less) / (1 + math.exp(-self.pure))
        own = self.threshold_delta
        return self._sampled(own + (1 - own) * spare * (1 + 1e-12))

    def __str__(self) -> str:
        return f"({self.pure + self.sampler_loss:.4g}, {self.threshold_delta:.4g})-DP"
