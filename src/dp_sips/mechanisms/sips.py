r"""DP-SIPS: the paper's Algorithm 3, a few rounds of Weighted Gaussian with growing budgets.

    Algorithm 3: DP-SIPS(x = (W_1, …, W_N), Δ0, ρ, δ, I, r)               here
     1  S ← {}
     2  for i = 0, …, I−1:                                               select.select_partitions
     3–6    (ρ_i, δ_i) ← (ρ, δ) · r^{I−i−1} (1−r)/(1−r^I), or 1/I if r=1  Sips.shares, Budget.split
     8      P_i ← WeightedGaussian(x, ρ_i, δ_i, Δ0)                       GaussianRound.run
     9      for j in N:  W_j ← W_j \ P_i                                   Contributions.remove
    12      S ← S ∪ P_i                                                  Contributions.remove
    14  return S                                                         Contributions.released

Each round removes what it found from the users' sets, so that the next one spends its weight on
what is left; users with more than Δ0 items let others move up.

Guarantee: δ-approximate ρ-zCDP, by composition of its rounds (lem:comp), and (ε, δ)-DP by the exact
Gaussian curve; privacy/README.md, "The argument", has the proof.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design
from dp_sips.mechanisms.min_users import check_min_users
from dp_sips.mechanisms.weighted_gaussian import (
    GaussianRound,
    gaussian_chances,
    gaussian_rounds,
    gaussian_words,
)
from dp_sips.privacy.arrays import Floats
from dp_sips.validation import check_positive, check_whole

# Shares further apart than e⁶⁰⁰ are zero, or infinite, as floats.
_LARGEST_LOG: Final = 600


def geometric_shares(rounds: int, ratio: float) -> tuple[float, ...]:
    """Return r^(I−1−i) for round i: Algorithm 3, lines 3–6, before they are normalised."""
    return tuple(ratio ** (rounds - 1 - i) for i in range(rounds))


def check_shares(rounds: int, ratio: float) -> None:
    """Reject rounds and ratios of which no shares can be made."""
    check_whole("rounds", rounds)
    check_positive("ratio", ratio)
    if abs(math.log(ratio)) * (rounds - 1) > _LARGEST_LOG:
        raise UsageError(f"ratio must be nearer to 1 for {rounds} rounds, got {ratio}")


@dataclass(frozen=True)
class Sips:
    """The paper's Algorithm 3, DP-SIPS: a few rounds with growing budgets.

    Attributes:
        rounds: I, how many rounds; the paper recommends 3 or more.
        ratio: r, a round's budget relative to the next one's; the paper recommends 0.2 to 0.4.
        min_users: How many users must hold an item for it to be released at all.
    """

    rounds: int = 3
    ratio: float = 1 / 3
    min_users: int = 1

    name: ClassVar[str] = "sips"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "the paper's mechanism: a few rounds, on any cluster"

    def __post_init__(self) -> None:
        check_shares(self.rounds, self.ratio)
        check_min_users(self.min_users)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Split the budget over the rounds."""
        shares = geometric_shares(self.rounds, self.ratio)
        return gaussian_rounds(asked, max_items, shares, self.min_users)

    def chances(self, rounds: Sequence[GaussianRound], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders."""
        return gaussian_chances(rounds, holders, items)

    def words(self, rounds: Sequence[GaussianRound]) -> str:
        """Say what the rounds do."""
        return gaussian_words(rounds)
