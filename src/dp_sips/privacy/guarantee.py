"""What a release has spent, in every currency that its reader may ask for."""

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Final, Self

from dp_sips.errors import UsageError
from dp_sips.privacy.budget import (
    Accounting,
    Budget,
    check_delta,
    check_epsilon,
)
from dp_sips.privacy.events import gaussian_event, point_event
from dp_sips.privacy.noise import SAMPLER_ERROR, SAMPLER_TAIL

LARGEST_EPSILON: Final = 28.0
"""A larger ε counts as this one: up to here the sampler's tails are as small as accounted for."""

# Where nothing else names a δ, that of most examples.
_USUAL_DELTA: Final = 1e-6

# Items that may be touched through others, and −log of the chance that their errors add up to more.
_MOST_VERDICTS: Final = 2**36
_LOG_MISS: Final = 270.0


@dataclass(frozen=True)
class SamplerCost:
    """What a sampler that is not exact adds to a guarantee: README.md, "The sampler".

    Attributes:
        loss: What rounding can add to ε; it can also raise δ by a factor of 1 + loss.
        tail: What the sampler's far tails can add to δ.
    """

    loss: float
    tail: float

    @classmethod
    def of(cls, rounds: int, max_items: int) -> Self:
        """Return the cost where one user touches at most max_items verdicts a round.

        The odds of each are off by a factor of at most 1 ± SAMPLER_ERROR on either neighbour.
        Three times as much covers (1 + e)/(1 − e).
        """
        return cls(3 * rounds * max_items * SAMPLER_ERROR, rounds * max_items * SAMPLER_TAIL)

    @classmethod
    def of_cascade(cls, rounds: int) -> Self:
        """Return the cost where one user can touch every verdict, through others."""
        return cls(cascade_loss(rounds), 2 * rounds * _MOST_VERDICTS * SAMPLER_TAIL)


def cascade_loss(rounds: float) -> float:
    """Return what rounding can add to ε where one user can touch every verdict, through others.

    The logarithms of the odds' errors are independent and average out.
    """
    spread = SAMPLER_ERROR * math.sqrt(2 * _MOST_VERDICTS * _LOG_MISS)
    return 2 * rounds * (1.01 * spread + 2 * _MOST_VERDICTS * SAMPLER_ERROR**2)


@dataclass(frozen=True, repr=False)
class Guarantee:
    """Differential privacy of the whole release, for one user added or removed.

    Attributes:
        rho: ρ of the paper's statement, threshold_delta-approximate ρ-zCDP.
        threshold_delta: δ of that statement: how likely an item that only one user holds is
            released at all.
        sampler: What the sampler adds; `epsilon` and `delta` include it.
        asked_epsilon: The ε that was asked for, if one was: `stated` says what it costs.
    """

    rho: float
    threshold_delta: float
    sampler: SamplerCost
    asked_epsilon: float | None = field(default=None, kw_only=True)

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up.

        Infinity stands for every ε above LARGEST_EPSILON: there, the sampler's tails show.
        """
        exact = (check_delta(delta) - self.sampler.tail) / (1 + self.sampler.loss)
        if exact <= 0:
            raise UsageError(
                f"delta must be above {self.sampler.tail}, the sampler's part, got {delta}"
            )
        whole = self.exact_epsilon(exact, accounting) + self.sampler.loss
        return whole if whole <= LARGEST_EPSILON * (1 + 1e-9) else math.inf

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        rest = min(check_epsilon(epsilon), LARGEST_EPSILON) - self.sampler.loss
        if rest <= 0:
            raise UsageError(
                f"epsilon must be above {self.sampler.loss}, the sampler's part, got {epsilon}"
            )
        exact = self.exact_delta(rest, accounting)
        return min(1.0, exact * (1 + self.sampler.loss) + self.sampler.tail)

    def dp_event(self, *, delta: float | None = None) -> tuple[Any, float]:
        """Return an event of Google's dp-accounting, and the δ that comes beside it.

        Events have no δ: what an accountant finds for all events is to be read at its target less
        the δ of each. Gaussian rounds are Gaussian events. What else is known by a curve is (ε, δ)
        at the `delta` that is named, which only mechanisms with a single ε and δ do without.
        """
        if delta is not None:
            return point_event(self.epsilon(delta=delta), delta)
        if type(self) is Guarantee:  # others have curves of their own
            return gaussian_event(self)
        raise UsageError("name a delta, at which this guarantee becomes an event: delta=1e-6")

    def exact_epsilon(self, delta: float, accounting: Accounting) -> float:
        """Return the smallest ε that an exact sampler would have, rounded up."""
        return Budget(self.rho, self.threshold_delta).epsilon(delta, accounting)

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the smallest δ that an exact sampler would have, rounded up."""
        return Budget(self.rho, self.threshold_delta).delta_at(epsilon, accounting)

    def stated(self) -> tuple[float, float]:
        """Return the ε that was asked for, or one that fits ρ, and the δ that is spent there."""
        epsilon = self.natural_epsilon() if self.asked_epsilon is None else self.asked_epsilon
        return epsilon, self.delta(epsilon=epsilon)

    def natural_epsilon(self) -> float:
        """Return the ε at which a Gaussian of this ρ spends as much δ as its thresholds do."""
        own = self.threshold_delta or _USUAL_DELTA
        both = min(2 * own, (1 + own) / 2)
        return min(LARGEST_EPSILON, shown(Budget(self.rho, own).epsilon(both, "gaussian")))

    def zcdp(self) -> str:
        """Say the approximate zCDP that follows; by itself, it says less than the curve does."""
        own = f"{self.threshold_delta:.4g}-approximate " if self.threshold_delta else ""
        return f"{own}{self.rho:.4g}-zCDP"

    def __str__(self) -> str:
        epsilon, delta = self.stated()
        return f"({epsilon:g}, {shown(delta):g})-DP; weaker corollary: {self.zcdp()}"

    def __repr__(self) -> str:
        return f"Guarantee: {self}"

    _repr_html_ = __repr__


def shown(value: float) -> float:
    """Return a number as it is printed: four digits, rounded up."""
    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
