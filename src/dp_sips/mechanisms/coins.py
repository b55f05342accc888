"""Rounds in which each item gets a coin, whose chance depends on nothing but the item's weight."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from dp_sips.mechanisms.base import without_bounds
from dp_sips.mechanisms.min_users import counted_holders
from dp_sips.privacy.arrays import Floats, Weights
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import Coin, decide_by_coin
from dp_sips.privacy.noise import Scrambler
from dp_sips.privacy.weights import HALF, weight


class LatticeCoin(Coin, Protocol):
    """A coin for weights on a lattice; a dataclass, whose fields are its public numbers."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def step_bits(self) -> int:
        """Weights are multiples of 2^-step_bits."""

    @property
    def median(self) -> float:
        """The least weight that is released with a probability of at least one half."""


@dataclass(frozen=True)
class CoinRound:
    """One round: weigh, and toss each item's coin.

    Attributes:
        coin: What it spends, and its table of probabilities.
        max_items: Δ0, how many items of a user count.
        gamma: γ: a user with k items gives k^−γ to each.
        min_users: How many users must hold an item (mechanisms/min_users.py).
    """

    coin: LatticeCoin
    max_items: int
    gamma: Fraction = HALF
    min_users: int = 1

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Release an item with the probability that its weight decides."""
        lattice = self.coin.step_bits, self.gamma
        weights = contributions.weigh(self.max_items, *lattice, self.min_users)
        toss = partial(decide_by_coin, coin=self.coin, scrambler=noise)
        contributions.remove(contributions.decide(weights, toss))

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        coin = without_bounds(asdict(self.coin))
        numbers = {name: value for name, value in coin.items() if value is not None}
        return {**numbers, "median": self.coin.median}


def coin_chances(rounds: Sequence[CoinRound], holders: Floats, items: int) -> Floats:
    """Return the chance that some round releases an item."""
    missed = np.zeros(len(holders))
    for r in rounds:
        # No table is as long as this; and the product is exact.
        counted = counted_holders(holders, r.min_users)
        users: Weights = np.minimum(counted, 2.0**33).astype(np.uint64)
        yes, _ = r.coin.odds(users * np.uint64(weight(items, r.coin.step_bits, r.gamma)))
        with np.errstate(divide="ignore"):
            missed += np.log1p(-yes)
    return np.asarray(-np.expm1(missed))
