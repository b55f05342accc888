"""The best rule for users with one item each: Desfontaines, Voss, Gipson and Mandayam 2022.

An item that n users hold is released with probability π(n), the largest that (ε, δ)-DP allows:

    π(0) = 0,   π(n+1) = min(e^ε π(n) + δ,  1 − e^(−ε) (1 − π(n) − δ),  1).

Guarantee: (ε, δ)-DP. An additional user changes n of one item by one, and nothing else. The
verdicts of items are independent, so the release is (ε, δ)-DP if and only if each two neighbouring
coins are: π(n+1) ≤ e^ε π(n) + δ and 1 − π(n) ≤ e^ε (1 − π(n+1)) + δ, and the other way round, which
is weaker as π grows. Each entry is rounded down a little, which makes both conditions easier, and
by much less than it exceeds the one before. No rule releases more: by induction over n.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design
from dp_sips.mechanisms.coins import CoinRound, coin_chances
from dp_sips.mechanisms.min_users import check_min_users, counted_holders
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.privacy.arrays import Floats, Weights
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import check_delta, check_epsilon
from dp_sips.privacy.guarantee import SamplerCost
from dp_sips.privacy.weights import UNIT_BITS

# Longer tables are for an ε that releases next to nothing.
_LONGEST: Final = 1 << 22
_DOWN: Final = 1 - 2.0**-50
# The rule of a smaller ε is private, too; e^ε of a larger one overflows.
_LARGEST_EPSILON: Final = 700.0
_HALF: Final = 0.5


@dataclass(frozen=True)
class SingleRule:
    """The rule as a coin.

    Attributes:
        epsilon: ε of what one user may change.
        delta: δ of it.
        min_users: The first m − 1 of an item's users do not count (mechanisms/min_users.py).
    """

    epsilon: float
    delta: float
    min_users: int = 1

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        _tables(self.epsilon, self.delta)

    @property
    def step_bits(self) -> int:
        """Weights are whole numbers of users."""
        return 0

    @property
    def median(self) -> float:
        """The least number of users that is released with a probability of at least one half."""
        return float(self.users_for(_HALF))

    def users_for(self, chance: float) -> int:
        """Return the least number of users that is released with at least this probability."""
        counted = np.argmax(_tables(self.epsilon, self.delta)[0] >= chance)
        return int(counted) + self.min_users - 1

    def chances(self, users: Floats) -> Floats:
        """Return π of whole numbers of users."""
        table = _tables(self.epsilon, self.delta)[0]
        counted = counted_holders(users, self.min_users)
        return table[np.minimum(counted, len(table) - 1).astype(np.intp)]

    def odds(self, weights: Weights) -> tuple[Floats, Floats]:
        """Return π and 1 − π of each weight, given in units of 2⁻³⁰."""
        released, missed = _tables(self.epsilon, self.delta)
        cells = self._cells(weights)
        return released[cells], missed[cells]

    def _cells(self, weights: Weights) -> NDArray[np.intp]:
        last = len(_tables(self.epsilon, self.delta)[0]) - 1
        users: Weights = weights >> np.uint64(UNIT_BITS)
        users = users - np.minimum(users, np.uint64(self.min_users - 1))
        return np.minimum(users, np.uint64(last)).astype(np.intp)


@lru_cache(maxsize=16)
def _tables(epsilon: float, delta: float) -> tuple[Floats, Floats]:
    """Return π(0), π(1), … up to 1, and 1 − π of each with as many good digits.

    Up to a half, π grows as e^ε π + δ; from there on, 1 − π falls as e^(−ε)(1 − π − δ).
    """
    epsilon = min(epsilon, _LARGEST_EPSILON)
    grow, shrink = math.exp(epsilon) * _DOWN, math.exp(-epsilon) / _DOWN
    released, missed = [0.0], [1.0]
    while missed[-1] > 0:
        up = (grow * released[-1] + delta) * _DOWN
        down = max(0.0, shrink * (missed[-1] - delta * _DOWN) / _DOWN)
        left = max(down, 1 - up)
        released.append(min(up, 1 - down))
        missed.append(left)
        if len(released) > _LONGEST:
            raise UsageError(f"epsilon is too small for the mechanism single, got {epsilon}")
    return np.array(released), np.array(missed)


@dataclass(frozen=True)
class Single:
    """The optimal rule for users with one item each (Desfontaines et al. 2022).

    No mechanism releases an item of such users with a higher probability.

    Attributes:
        min_users: How many users must hold an item for it to be released at all.
    """

    min_users: int = 1

    name: ClassVar[str] = "single"
    default_max_items: ClassVar[int] = 1
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "coins"
    good_for: ClassVar[str] = "users with one item each: nothing can be better"

    def __post_init__(self) -> None:
        check_min_users(self.min_users)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Make one round of the rule."""
        if max_items != 1:
            raise UsageError(f"{self.name} is for max_items=1, got {max_items}: try 'sips-rule'")
        sampler = SamplerCost.of(rounds=1, max_items=1)
        epsilon, delta = asked.point(sampler)
        step = CoinRound(SingleRule(epsilon, delta, self.min_users), max_items)
        return Design((step,), PointGuarantee.of(epsilon, delta, sampler), Bounds(max_items))

    def chances(self, rounds: Sequence[CoinRound], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders."""
        return coin_chances(rounds, holders, items)

    def words(self, rounds: Sequence[CoinRound]) -> str:
        """Say what the round does."""
        return (
            "One item of each user counts. An item is released with a probability that\n"
            "depends on the number of its users alone, the highest that the promise\n"
            f"allows: at least one half with {rounds[0].coin.median:.0f} users or more."
        )
