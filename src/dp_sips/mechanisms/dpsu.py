"""DPSU, the Policy Gaussian of Gopi et al. 2020: users fill up items, one after the other.

Each user pays its items in proportion to what they still lack, up to a target a little above the
threshold, so that no weight is wasted on items that are safe.

    H ← 0;  Γ ← T + buffer·σ
    for each user in a random order, with items S:
        g ← Γ − H on S;   H ← H + g·min(1, 1/‖g‖₂)
    release u where H(u) + N(0, σ²) ≥ T

Guarantee: δ-approximate ρ-zCDP, as recalibrated in the paper, and (ε, δ)-DP: an additional user
moves the weights by an L2 norm of at most 1, whatever the others do (the theorem in `turns.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dp_sips.mechanisms.base import Asked, Design
from dp_sips.mechanisms.turns import (
    L2,
    PROPORTIONALLY,
    Proportional,
    check_buffer,
    paid_alike,
    proportional,
    sensitivity,
    unit_bits,
    words_of_turns,
)
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import decide
from dp_sips.privacy.guarantee import Guarantee, SamplerCost
from dp_sips.privacy.noise import Scrambler
from dp_sips.privacy.threshold import sigma, threshold


@dataclass(frozen=True)
class PolicyGaussianRound:
    """Users pay one after the other; then Gaussian noise and a threshold decide.

    Attributes:
        rho: ρ.
        delta: δ of the threshold.
        sigma: The standard deviation of the noise, in units of a user's whole weight.
        threshold: The noisy weight from which an item is released.
        max_items: Δ0, how many items of a user count.
        policy: What a user pays.
    """

    rho: float
    delta: float
    sigma: float
    threshold: float
    max_items: int
    policy: Proportional

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Let users pay, and release what reaches the threshold."""
        weights = contributions.pay_shares(self.policy, self.max_items)
        judge = partial(
            decide,
            sigma=self.sigma,
            threshold=self.threshold,
            scrambler=noise,
            unit_bits=self.policy.unit_bits,
        )
        contributions.remove(contributions.decide(weights, judge))

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {name: value for name, value in asdict(self).items() if name != "max_items"}


@dataclass(frozen=True)
class Dpsu:
    """DPSU, the Policy Gaussian of Gopi et al. 2020: users fill up items, one after the other.

    Attributes:
        buffer: Target weight of an item: threshold + `buffer`·σ.
    """

    buffer: float = 5.0

    name: ClassVar[str] = "dpsu"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = True
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "short lists, on one machine: a strong baseline"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Use Weighted Gaussian's noise and threshold, and a target above it."""
        sampler = SamplerCost.of_cascade(rounds=1)
        budget = asked.budget(sampler, lambda b: threshold(b, max_items))

        def target(moves: float) -> float:
            level = threshold(budget, max_items, sensitivity=moves)
            return max(1.0, level + self.buffer * moves * sigma(budget))

        bits = unit_bits(L2, 2 * target(1.0), max_items)
        moves = sensitivity(L2, bits, max_items)
        step = PolicyGaussianRound(
            rho=budget.rho,
            delta=budget.delta,
            sigma=moves * sigma(budget),
            threshold=threshold(budget, max_items, sensitivity=moves),
            max_items=max_items,
            policy=proportional(L2, target(moves), bits, max_items),
        )
        return Design((step,), Guarantee(budget.rho, budget.delta, sampler), Bounds(max_items))

    def chances(self, rounds: Sequence[PolicyGaussianRound], holders: Floats, items: int) -> Floats:
        """Return the chance where all holders have the same items, and pay them alike."""
        from scipy.special import ndtr

        step = rounds[0]
        weights = paid_alike(holders, 1 / math.sqrt(items), step.policy.full)
        return np.asarray(ndtr((weights - step.threshold) / step.sigma))

    def words(self, rounds: Sequence[PolicyGaussianRound]) -> str:
        """Say what the round does."""
        step = rounds[0]
        noise = f"Gaussian noise of σ = {step.sigma:.4f}"
        return words_of_turns(PROPORTIONALLY, step.policy.full, noise, step.threshold)
