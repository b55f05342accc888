"""What a release has spent, in every currency that its reader may ask for."""

from dataclasses import dataclass

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.privacy.budget import Accounting, Budget, check_delta, check_epsilon
from dp_sips.privacy.evidence import Schedule, joint_bound
from dp_sips.privacy.noise import SAMPLER_ERROR, SAMPLER_TAIL
from dp_sips.privacy.rule import ReleaseRule, rule_delta, rule_epsilon
from dp_sips.privacy.search import boundary

_LARGEST_EPSILON = 10_000.0
# An ε below this is reported as this: nobody can tell it from zero.
_LEAST_EPSILON = 1e-9


def sampler_loss(rounds: int, max_items: int) -> float:
    """Return what the sampler's rounding can add to ε: README.md, "The sampler".

    One user touches at most max_items verdicts a round; the odds of each are off by a factor of at
    most 1 ± SAMPLER_ERROR on either neighbour. Three times as much covers (1 + e)/(1 − e).
    """
    return 3 * rounds * max_items * SAMPLER_ERROR


def sampler_tail(rounds: int, max_items: int) -> float:
    """Return what the sampler's far tails can add to δ: README.md, "The sampler"."""
    return rounds * max_items * SAMPLER_TAIL


@dataclass(frozen=True)
class Guarantee:
    """Differential privacy of the whole release, for one user added or removed.

    Attributes:
        rho: ρ of the paper's statement, threshold_delta-approximate ρ-zCDP.
        threshold_delta: δ of that statement: how likely an item that only one user holds is
            released at all.
        sampler_loss: What rounding can add to ε; `epsilon` and `delta` include it.
        sampler_tail: What the sampler's far tails can add to δ; included as well.
    """

    rho: float
    threshold_delta: float
    sampler_loss: float
    sampler_tail: float

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up."""
        return self._budget.epsilon(delta - self.sampler_tail, accounting) + self.sampler_loss

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        return self._budget.delta_at(self._rest(epsilon), accounting) + self.sampler_tail

    def _rest(self, epsilon: float) -> float:
        rest = check_epsilon(epsilon) - self.sampler_loss
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
        rules: The rules of all rounds. `rho` is that of no Gaussian: it is the e/α of the rules.
    """

    rules: tuple[ReleaseRule, ...]

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up."""
        del accounting  # there is only one
        return rule_epsilon(self.rules, check_delta(delta) - self.sampler_tail) + self.sampler_loss

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        del accounting
        return rule_delta(self.rules, self._rest(epsilon)) + self.sampler_tail

    def __str__(self) -> str:
        e, alpha = sum(rule.e for rule in self.rules), self.rules[0].alpha
        return f"{self.threshold_delta:.4g}-approximate ({alpha:.4g}, {e:.4g})-RDP"


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
        delta = check_delta(delta) - self.sampler_tail
        if accounting == "zcdp":
            return super().epsilon(delta=delta + self.sampler_tail, accounting=accounting)
        if self._joint_delta(_LARGEST_EPSILON) > delta:
            raise UsageError(f"delta is below what the thresholds spend, got {delta}")
        if self._joint_delta(_LEAST_EPSILON) <= delta:
            return _LEAST_EPSILON + self.sampler_loss
        found = boundary(lambda e: self._joint_delta(e) <= delta, _LARGEST_EPSILON, factor=0.5)
        return found + self.sampler_loss

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        if accounting == "zcdp":
            return super().delta(epsilon=epsilon, accounting=accounting)
        return self._joint_delta(self._rest(epsilon)) + self.sampler_tail

    def _joint_delta(self, epsilon: float) -> float:
        bound = joint_bound(self.schedule, self.max_items)
        return bound.delta(epsilon, self.rho, np.array(self.thresholds))
