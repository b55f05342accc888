"""GW, greedy updates without sampling (Carvalho et al. 2022): each user backs one favourite.

A user's favourite is the item that it has most often, among those that are not full; repeated rows
count. Weights are whole numbers here, which the published threshold needs in order to hold
(`turns.py` shows why).

    H ← 0;  Γ ← T + buffer/ε, rounded
    for each user in a random order:
        u ← the user's favourite among its items with H(u) < Γ;   H(u) ← H(u) + 1
    release u where H(u) + Laplace(1/ε) ≥ T = 1 − log(2δ)/ε

Guarantee: (ε, δ)-DP, with all of ε for the noise and all of δ for the threshold: an additional user
changes one weight, by 1 (the theorem in `turns.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.mechanisms.turns import (
    MOST_USERS,
    Favourite,
    check_buffer,
    laplace_chances,
    paid_alike,
    words_of_turns,
)
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds, check_public_counts
from dp_sips.privacy.budget import rounded_up
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import decide_with_laplace
from dp_sips.privacy.guarantee import SamplerCost
from dp_sips.privacy.noise import Scrambler
from dp_sips.privacy.threshold import laplace_threshold


@dataclass(frozen=True)
class FavouriteRound:
    """Users back one item each, one user after the other; then Laplace noise decides.

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
    policy: Favourite

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Let users back their favourites, and release what reaches the threshold."""
        weights = contributions.pay_favourites(self.policy, self.max_items)
        judge = partial(
            decide_with_laplace,
            scale=self.scale,
            threshold=self.threshold,
            scrambler=noise,
            unit_bits=0,
        )
        contributions.remove(contributions.decide(weights, judge))

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {name: value for name, value in asdict(self).items() if name != "max_items"}


@dataclass(frozen=True)
class Gw:
    """GW, greedy updates without sampling (Carvalho et al. 2022): each user backs one favourite.

    Attributes:
        buffer: Target weight of an item: threshold + `buffer` scales of the noise, rounded.
        histogram: Public frequencies of items (of tuples, for several columns): a user's favourite
            is then its publicly most frequent item; items that it lacks come last. This must not
            come from the data that is protected.
        ties: What decides between items that a user has equally often: "items", an order of all
            items that is the same for everyone, or "rows", the order of the user's rows, as
            published. With "rows", the guarantee holds for data in which an additional user leaves
            the order of the others' rows as it was: not for a query whose order nobody promises.
    """

    buffer: float = 3.0
    histogram: Mapping[Any, int] | None = field(default=None, repr=False, hash=False)
    ties: str = "items"

    name: ClassVar[str] = "gw"
    default_max_items: ClassVar[int] = 1_000_000
    sequential: ClassVar[bool] = True
    noise: ClassVar[str] = "Laplace"
    good_for: ClassVar[str] = "small vocabularies, and lists with telling repeats"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)
        if self.histogram is not None:
            check_public_counts("histogram", self.histogram)
        if self.ties not in ("items", "rows"):
            raise UsageError(f"ties must be 'items' or 'rows', got {self.ties!r}")

    def design(self, asked: Asked, max_items: int) -> Design:
        """Use T = 1 − log(2δ)/ε for the one item that may come to life, and a whole target."""
        sampler = SamplerCost.of(rounds=1, max_items=1)
        epsilon, delta = asked.point(sampler)
        scale = rounded_up(1 / epsilon)
        level = laplace_threshold(scale, delta, 1)
        target = min(level + self.buffer * scale, MOST_USERS)  # no item has more weight
        policy = Favourite(max(1, round(target)), self.ties == "rows")
        step = FavouriteRound(epsilon, delta, scale, level, max_items, policy)
        bounds = Bounds(max_items, repeats=self.histogram is None, public_counts=self.histogram)
        return Design((step,), PointGuarantee.of(epsilon, delta, sampler), bounds)

    def chances(self, rounds: Sequence[FavouriteRound], holders: Floats, items: int) -> Floats:
        """Return the chance where all holders have the same items, and share them out evenly."""
        step = rounds[0]
        weights = paid_alike(holders, 1 / items, step.policy.target)
        return laplace_chances(weights, step.threshold, step.scale)

    def words(self, rounds: Sequence[FavouriteRound]) -> str:
        """Say what the round does."""
        step = rounds[0]
        how = "backs, with 1,\nits favourite among the items that are not full"
        noise = f"Laplace noise of scale {step.scale:.4f}"
        return words_of_turns(how, step.policy.target, noise, step.threshold)
