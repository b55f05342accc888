"""Policy Laplace, the L1 twin of DPSU, with Laplace noise (Gopi et al. 2020).

    H ← 0;  Γ ← T + buffer·scale
    for each user in a random order, with items S:
        g ← Γ − H on S;   H ← H + g·min(1, 1/‖g‖₁)
    release u where H(u) + Laplace(scale) ≥ T

Guarantee: (ε, δ)-DP, with all of ε for the noise and all of δ for the threshold: an additional user
moves the weights by an L1 norm of at most 1 (the theorem in `turns.py`).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

from dp_sips.mechanisms.base import Asked, Design, check_few_items
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.mechanisms.turns import (
    L1,
    PROPORTIONALLY,
    Proportional,
    check_buffer,
    laplace_chances,
    paid_alike,
    proportional,
    sensitivity,
    unit_bits,
    words_of_turns,
)
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import rounded_up
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import decide_with_laplace
from dp_sips.privacy.guarantee import SamplerCost
from dp_sips.privacy.noise import Scrambler
from dp_sips.privacy.threshold import laplace_threshold


@dataclass(frozen=True)
class PolicyLaplaceRound:
    """Users pay one after the other; then Laplace noise and a threshold decide.

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
    policy: Proportional

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Let users pay, and release what reaches the threshold."""
        weights = contributions.pay_shares(self.policy, self.max_items)
        judge = partial(
            decide_with_laplace,
            scale=self.scale,
            threshold=self.threshold,
            scrambler=noise,
            unit_bits=self.policy.unit_bits,
        )
        contributions.remove(contributions.decide(weights, judge))

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {name: value for name, value in asdict(self).items() if name != "max_items"}


@dataclass(frozen=True)
class PolicyLaplace:
    """Policy Laplace, the L1 twin of DPSU, with Laplace noise (Gopi et al. 2020).

    Attributes:
        buffer: Target weight of an item: threshold + `buffer` scales of the noise.
    """

    buffer: float = 5.0

    name: ClassVar[str] = "policy-laplace"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = True
    noise: ClassVar[str] = "Laplace"
    good_for: ClassVar[str] = "comparison: DPSU with the noise of classic DP"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Use all of ε for the noise, all of δ for the threshold."""
        check_few_items(self.name, max_items)
        sampler = SamplerCost.of_cascade(rounds=1)
        epsilon, delta = asked.point(sampler)

        def target(scale: float) -> float:
            return laplace_threshold(scale, delta, max_items) + self.buffer * scale

        bits = unit_bits(L1, 2 * target(1 / epsilon), max_items)
        scale = rounded_up(sensitivity(L1, bits, max_items) / epsilon)
        policy = proportional(L1, target(scale), bits, max_items)
        level = laplace_threshold(scale, delta, max_items)
        step = PolicyLaplaceRound(epsilon, delta, scale, level, max_items, policy)
        return Design((step,), PointGuarantee.of(epsilon, delta, sampler), Bounds(max_items))

    def chances(self, rounds: Sequence[PolicyLaplaceRound], holders: Floats, items: int) -> Floats:
        """Return the chance where all holders have the same items, and pay them alike."""
        step = rounds[0]
        weights = paid_alike(holders, 1 / items, step.policy.full)
        return laplace_chances(weights, step.threshold, step.scale)

    def words(self, rounds: Sequence[PolicyLaplaceRound]) -> str:
        """Say what the round does."""
        step = rounds[0]
        noise = f"Laplace noise of scale {step.scale:.4f}"
        return words_of_turns(PROPORTIONALLY, step.policy.full, noise, step.threshold)
