"""The guarantee of mechanisms that are (ε, δ)-DP for one ε and one δ: coins, votes, turns.

Public: everything here. No function in this file sees data.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

from dp_sips.errors import UsageError
from dp_sips.privacy.budget import LEAST_EPSILON, Accounting, rounded_up
from dp_sips.privacy.events import point_event
from dp_sips.privacy.guarantee import LARGEST_EPSILON, Guarantee, SamplerCost, shown


def zcdp_of_epsilon(epsilon: float) -> float:
    """Return ρ of what is (ε, δ)-DP, and so δ-approximate ρ-zCDP (`PointGuarantee` says why)."""
    return rounded_up(epsilon**2 / 2)


@dataclass(frozen=True, repr=False)
class PointGuarantee(Guarantee):
    """The guarantee of mechanisms that are (ε, δ)-DP for one ε and one δ: `pure`, threshold_delta.

    Every such mechanism is a function of one that tells all with probability δ, and else answers
    one question truthfully with odds e^ε : 1 (Murtagh and Vadhan 2016); so its whole curve is
    known, and δ-approximate ε²/2-zCDP follows.

    Attributes:
        pure: ε, in exact arithmetic.
    """

    pure: float

    @classmethod
    def of(cls, epsilon: float, delta: float, sampler: SamplerCost) -> Self:
        """Return the guarantee of what is (ε, δ)-DP with an exact sampler."""
        return cls(zcdp_of_epsilon(epsilon), delta, sampler, epsilon)

    def dp_event(self, *, delta: float | None = None) -> tuple[Any, float]:
        """Return an event of dp-accounting and its δ: those of the point, unless one is named."""
        if delta is not None:
            return super().dp_event(delta=delta)
        own = rounded_up(self.threshold_delta * (1 + self.sampler.loss) + self.sampler.tail)
        return point_event(self.pure + self.sampler.loss, own)

    def exact_epsilon(self, delta: float, accounting: Accounting) -> float:
        """Solve δ(ε′) = δ + (1 − δ)(e^ε − e^ε′)/(1 + e^ε) for ε′."""
        del accounting  # there is only one
        if delta < self.threshold_delta:
            raise UsageError(
                f"delta must be at least {self.threshold_delta}, which the threshold spends, "
                f"got {delta}"
            )
        spare = (delta - self.threshold_delta) / (1 - self.threshold_delta)
        inside = 1 - spare * (1 + math.exp(-self.pure)) + 1e-15  # rounded up
        found = self.pure + math.log(inside) if inside > 0 else 0.0
        return max(LEAST_EPSILON, found + 1e-14 * (1 + self.pure))

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return δ + (1 − δ)(e^ε − e^ε′)/(1 + e^ε), rounded up."""
        del accounting
        less = max(0.0, self.pure - epsilon)
        spare = -math.expm1(-less) / (1 + math.exp(-self.pure))
        own = self.threshold_delta
        return own + (1 - own) * spare * (1 + 1e-12)

    def natural_epsilon(self) -> float:
        """Return ε, with the sampler's part."""
        return min(LARGEST_EPSILON, shown(self.pure + self.sampler.loss))
