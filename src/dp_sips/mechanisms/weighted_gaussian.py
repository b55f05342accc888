"""Weighted Gaussian: the paper's Algorithms 1 and 2, one round with the whole budget.

    Algorithm 2: WeightedGaussian(x = (W_1, …, W_N), ρ, δ, Δ0)            here
     1  H ← {};  S ← {}
     3  for i = 1, …, N:
     4      W_i ← W_i without duplicates                                 Engine.load
     5      W̄_i ← at most Δ0 items of W_i, sampled uniformly             bounding.rank
     6      for u in W̄_i:  H[u] ← H[u] + 1/√|W̄_i|                        Contributions.weigh
    10  σ ← 1/√(2ρ)                                                      threshold.sigma
    11  T ← max over k in 1..Δ0 of 1/√k + σ Φ⁻¹((1−δ)^{1/k})             threshold.threshold
    12  for u in Supp(H):                                                Contributions.decide
    13      Ĥ[u] ← H[u] + N(0, σ²)                                       noise.gaussian
    14      if Ĥ[u] ≥ T:  S ← S ∪ {u}                                    decide.decide
    16  return S                                                         Contributions.remove

Algorithm 1 is its frame (lines 2 and 12–16) with any weighted histogram and any noise.

Guarantee: δ-approximate ρ-zCDP (thm:naive_priv), and (ε, δ)-DP by the exact Gaussian curve;
privacy/README.md, "The argument", has the proof.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from dp_sips.mechanisms.base import Asked, Design, table_of_rounds, without_bounds
from dp_sips.mechanisms.chances import missed_by_threshold
from dp_sips.mechanisms.min_users import check_min_users, counted_holders
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import Budget, compose
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import decide
from dp_sips.privacy.guarantee import Guarantee, SamplerCost
from dp_sips.privacy.noise import Scrambler
from dp_sips.privacy.threshold import sigma, threshold


@dataclass(frozen=True)
class GaussianRound:
    """Algorithm 1 with Weighted Gaussian's histogram, noise and threshold.

    Attributes:
        rho: The round's part of ρ.
        delta: The round's part of δ.
        sigma: The standard deviation of its Gaussian noise, in units of a user's whole weight.
        threshold: The noisy weight from which an item is released.
        max_items: Δ0, how many items of a user count.
        min_users: How many users must hold an item (mechanisms/min_users.py).
    """

    rho: float
    delta: float
    sigma: float
    threshold: float
    max_items: int
    min_users: int = 1

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Release what reaches the threshold: Algorithm 2, lines 3–7 and 12–16."""
        weights = contributions.weigh(self.max_items, min_users=self.min_users)
        noisy_enough = partial(decide, sigma=self.sigma, threshold=self.threshold, scrambler=noise)
        contributions.remove(contributions.decide(weights, noisy_enough))

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        return without_bounds(asdict(self))


def gaussian_rounds(
    asked: Asked, max_items: int, shares: Sequence[float], min_users: int = 1
) -> Design:
    """Split the budget by shares and make a round of each part: Algorithm 2, lines 10 and 11.

    With ε, the budget is the one with the lowest threshold in the last round, which decides about
    the rare items.
    """
    sampler = SamplerCost.of(len(shares), max_items)
    budget = asked.budget(sampler, lambda b: threshold(b.split(shares)[-1], max_items))
    rounds = tuple(
        GaussianRound(
            part.rho, part.delta, sigma(part), threshold(part, max_items), max_items, min_users
        )
        for part in budget.split(shares)
    )
    spent = compose(Budget(r.rho, r.delta) for r in rounds)
    return Design(rounds, Guarantee(spent.rho, spent.delta, sampler), Bounds(max_items))


def gaussian_chances(rounds: Sequence[GaussianRound], holders: Floats, items: int) -> Floats:
    """Return the chance that some round releases an item."""
    counted = counted_holders(holders, rounds[0].min_users)
    missed = sum(missed_by_threshold(counted, items, r.threshold, r.sigma) for r in rounds)
    return np.where(counted > 0, -np.expm1(missed), 0.0)


NOISY_ROUNDS: Final = {
    "rho": ("rho", "10.4g"),
    "delta": ("delta", "10.3g"),
    "sigma": ("noise σ", "9.4f"),
    "threshold": ("threshold", "9.4f"),
}
"""The columns of a table of rounds with Gaussian noise and a threshold."""

_WORDS: Final = """\
A user with k items gives 1/√k to each. An item is released in the first round
in which its weight plus noise reaches the threshold; then it leaves the sets."""


def gaussian_words(rounds: Sequence[GaussianRound]) -> str:
    """Say what the rounds do."""
    return "\n".join((_WORDS, table_of_rounds([r.row() for r in rounds], NOISY_ROUNDS)))


@dataclass(frozen=True)
class WeightedGaussian:
    """The paper's Algorithm 2: one round with the whole budget.

    Attributes:
        min_users: How many users must hold an item for it to be released at all.
    """

    min_users: int = 1

    name: ClassVar[str] = "weighted-gaussian"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "one round: the simplest, and the paper's baseline"

    def __post_init__(self) -> None:
        check_min_users(self.min_users)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Spend the budget in one round."""
        return gaussian_rounds(asked, max_items, (1.0,), self.min_users)

    def chances(self, rounds: Sequence[GaussianRound], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders."""
        return gaussian_chances(rounds, holders, items)

    def words(self, rounds: Sequence[GaussianRound]) -> str:
        """Say what the round does."""
        return gaussian_words(rounds)
