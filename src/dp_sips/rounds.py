"""What a round does: public numbers, computed before any data is touched."""

from dataclasses import dataclass

from dp_sips.privacy.adaptive import Spread
from dp_sips.privacy.evidence import STEP_BITS
from dp_sips.privacy.policy import Favourite, Proportional
from dp_sips.privacy.rule import ReleaseRule
from dp_sips.privacy.single import SingleRule
from dp_sips.privacy.weights import UNIT_BITS


@dataclass(frozen=True)
class Round:
    """One round: weigh, add noise, release what reaches the threshold.

    Attributes:
        rho: The round's part of ρ.
        delta: The round's part of δ.
        sigma: The standard deviation of its Gaussian noise, in units of a user's whole weight.
        threshold: The noisy weight from which an item is released.
        max_items: Δ0, how many items of a user count.
    """

    rho: float
    delta: float
    sigma: float
    threshold: float
    max_items: int

    @property
    def step_bits(self) -> int:
        """Weights are multiples of 2^-step_bits."""
        return UNIT_BITS


@dataclass(frozen=True)
class EvidenceRound(Round):
    """A round of cumulative evidence: its noisy weights are added to those of earlier rounds.

    `threshold` is compared with the evidence: the average of the noisy weights so far, each with
    the share of its round.

    Attributes:
        share: The round's share of the budget; all shares add up to one.
        spent: The sum of the shares so far.
        drop: The evidence below which an item is given up.
    """

    share: float
    spent: float
    drop: float

    @property
    def step_bits(self) -> int:
        """Weights and noise are multiples of 2^-step_bits."""
        return STEP_BITS


@dataclass(frozen=True)
class RuleRound:
    """A round of a release rule: an item is released with a probability that its weight decides.

    Attributes:
        rule: The rule: what it spends, and its table of probabilities.
        max_items: Δ0, how many items of a user count.
    """

    rule: ReleaseRule | SingleRule
    max_items: int

    @property
    def step_bits(self) -> int:
        """Weights are multiples of 2^-step_bits."""
        return self.rule.step_bits

    @property
    def delta(self) -> float:
        """The round's part of δ."""
        return self.rule.delta

    @property
    def threshold(self) -> float:
        """The weight from which an item is released with a probability of at least one half."""
        return self.rule.median


@dataclass(frozen=True)
class FoldRound(Round):
    """A round in which users pay one after the other, with Gaussian noise.

    Attributes:
        policy: What a user pays.
    """

    policy: Proportional


@dataclass(frozen=True)
class LaplaceRound:
    """A round in which users pay one after the other, with Laplace noise.

    Attributes:
        epsilon: The round's ε.
        delta: Its δ.
        scale: The scale of its Laplace noise.
        threshold: The noisy weight from which an item is released.
        max_items: How many items of a user count.
        policy: What a user pays.
    """

    epsilon: float
    delta: float
    scale: float
    threshold: float
    max_items: int
    policy: Proportional | Favourite


@dataclass(frozen=True)
class AdaptiveRound(Round):
    """A round in which what popular items do not need goes to other items of their holders.

    Attributes:
        spread: What a user gives to each of its items.
        drop: The noisy weight below which an item is given up; none in the last round.
    """

    spread: Spread
    drop: float | None = None


AnyRound = AdaptiveRound | Round | EvidenceRound | RuleRound | FoldRound | LaplaceRound
