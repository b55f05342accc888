"""Matching: each user has one vote, and deferred acceptance finds the item that needs it.

    each user lists its items: publicly frequent first, then short, then by a keyed hash (bounding.py)
    while some user stands:
        it asks the next item of its list for a seat; `laps` times over the list, then once for spare seats
        a free seat:                            the user sits down
        a key below the worst key seated there: the user takes that seat, and the other stands
        otherwise, or when turned away later:   it goes on; when its requests are over, it gives up
    release item j with probability π(H_j), where H_j users are seated at j

π is the optimal rule of `single.py`. An item has as many seats as give it a chance of 95 %, and spare
seats up to 99.95 % for votes that no item needs otherwise. The key of a request is

    (laps left, items left on the list, turn of the user),

and the least is the best: who has few requests left goes first. Keys of two users never agree, as no
two have the same turn, a rank in a random order (bounding.turns) of which only comparisons matter.

Guarantee: (ε, δ)-DP, with all of ε and δ for the coins. An additional user changes H at one item at the
most, by one (the theorem below). Coins are independent given H, and π is made for such a step
(`single.py`), also where the item had no vote before.

Theorem. Let every user's list and turn depend on that user and on public things alone.
  1. H does not depend on who asks when.
  2. An additional user leaves H as it was, or raises it by 1 at one item.

Proof. A *desk* is an item's seats or its spare seats, and has q of them. A user's *requests*, a desk and a
key each, are a fixed sequence; a lap over the list is a part of it like any other, and so two
requests of a user may go to one desk. A user makes the next request when, and only when, the one before
has been rejected. A desk that has received more than q requests has rejected all but those with the q
least keys. More requests only lower what it takes to stay, so a rejected request stays rejected, and a
user is never seated twice.

1. Take two runs A and B, each until nobody stands, and suppose that A rejects a request that B does not.
   Let r, to a desk d, be the first of these in the order in which A rejects. When A rejects r, it has made q
   requests with lesser keys at d. Their users' earlier requests, and those of r's user, were rejected by A
   before r, hence by B, too; so B, which runs until nobody stands, makes the same q requests and r as well.
   Then r is not among the q least at d, and B rejects it: a contradiction. By symmetry both runs reject
   the same requests, and so they make the same ones, and seat the same users at the same desks.

2. The lists of the others and all comparisons of their keys are the same with and without the new user.
   By 1, H is what comes out if the others settle first and the new user comes last. From then on one user
   stands at a time. It is turned away and goes on (H stays), or takes another's seat, who stands instead (H
   stays), or finds a free seat (H grows by 1 there, and nobody stands), or gives up (nobody stands). Each
   request is made once, so this chain ends, with at most one free seat taken. ∎

It is essential that a run ends only when nobody stands: after a fixed number of rounds, one user can move
several votes. It is essential, too, that users do not look at how full items are other than through
rejections (`tests/privacy/test_matching_exact.py` has these and other broken variants).

Deferred acceptance, and 1 for one request of each user to each desk, are Gale and Shapley's (1962); that
the order of requests does not matter was spelt out by McVitie and Wilson (1971), and chains like that of 2
by Blum, Roth and Rothblum (1997). One vote for each user under a target is GW's (Carvalho et al. 2022), and
the optimal coin is Desfontaines, Voss, Gipson and Mandayam's (2022). Laps, spare seats, these keys, the use
for partition selection and the bound on privacy are ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from dp_sips.mechanisms.base import Asked, Design, check_few_items
from dp_sips.mechanisms.single import SingleRule
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds, check_public_counts
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import decide_by_coin
from dp_sips.privacy.guarantee import PointGuarantee, SamplerCost
from dp_sips.privacy.noise import Scrambler
from dp_sips.validation import check_whole

_LIKELY: Final = 0.95
"""The chance that an item's seats are to give it."""

_NEARLY_SURE: Final = 0.9995
"""The chance with all spare seats: more votes would add next to nothing."""

_MOST_LAPS: Final = 8


@dataclass(frozen=True)
class MatchingRound:
    """Seat the users, and toss each item's coin.

    Attributes:
        coin: What the round spends, and its table of probabilities.
        seats: How many users an item seats before they go on to others.
        spare: How many it seats beyond that, of those that no other item needs.
        laps: How often users go over their lists before they ask for spare seats.
        max_items: How many items of a user count.
    """

    coin: SingleRule
    seats: int
    spare: int
    laps: int
    max_items: int

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Release an item with the probability that the number of its users decides."""
        weights = self.weigh(contributions)
        toss = partial(decide_by_coin, coin=self.coin, scrambler=noise)
        contributions.remove(contributions.decide(weights, toss))

    def weigh(self, contributions: Contributions) -> Any:
        """Return how many users are seated at each item: H."""
        return contributions.settle(self.seats, self.spare, self.laps, self.max_items)

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        numbers = {"seats": self.seats, "spare": self.spare, "laps": self.laps}
        return {**asdict(self.coin), **numbers, "median": self.coin.median}


@dataclass(frozen=True)
class Matching:
    """Matching: each user has one vote, and deferred acceptance finds the item that needs it.

    Attributes:
        laps: How often users ask all of their items. The second time is worth a few per cent of the
            items, the third less.
        histogram: Public frequencies of items (of tuples, for several columns): publicly frequent
            items come first on all lists; items that it lacks come last. This must not come from
            the data that is protected.
    """

    laps: int = 3
    histogram: Mapping[Any, int] | None = field(default=None, repr=False, hash=False)

    name: ClassVar[str] = "matching"
    default_max_items: ClassVar[int] = 1_000_000
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "coins"
    good_for: ClassVar[str] = "most items from users with few items each"

    def __post_init__(self) -> None:
        check_whole("laps", self.laps, most=_MOST_LAPS)
        if self.histogram is not None:
            check_public_counts("histogram", self.histogram)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Give an item the seats that its coin needs."""
        check_few_items(self.name, max_items)
        sampler = SamplerCost.of(rounds=1, max_items=1)
        epsilon, delta = asked.point(sampler)
        coin = SingleRule(epsilon, delta)
        seats, enough = coin.users_for(_LIKELY), coin.users_for(_NEARLY_SURE)
        step = MatchingRound(coin, seats, enough - seats, self.laps, max_items)
        bounds = Bounds(max_items, once=True, public_counts=self.histogram)
        return Design((step,), PointGuarantee.of(epsilon, delta, sampler), bounds)

    def chances(self, rounds: Sequence[MatchingRound], holders: Floats, items: int) -> Floats:
        """Return the chance of an item, any of those that all holders have, where nobody else votes.

        They fill the seats of one item after the other, then the spare seats.
        """
        step = rounds[0]
        in_seats = np.minimum(holders, float(items) * step.seats)
        in_spare = np.minimum(holders - in_seats, float(items) * step.spare)
        chance = _mean_chance(step.coin, in_seats, step.seats, items)
        with_spare = _mean_chance(step.coin, in_spare, step.spare, items, before=step.seats)
        return np.where(in_spare > 0, with_spare, chance)

    def words(self, rounds: Sequence[MatchingRound]) -> str:
        """Say what the round does."""
        step = rounds[0]
        return (
            f"Each user has one vote, and asks their items for one of {step.seats} seats, one item\n"
            "after the other; an item keeps the users who have the fewest other items left to\n"
            f"ask. Those left over after {step.laps} laps ask for one of {step.spare} spare seats. An item is\n"
            "released with a probability that depends on the number of its seated users alone,\n"
            f"the highest that the promise allows: one half from {step.coin.median:.0f} users on."
        )


def _mean_chance(
    coin: SingleRule, votes: Floats, seats: int, items: int, before: int = 0
) -> Floats:
    """Return the mean chance of items that votes fill up one after the other."""
    full, rest = np.divmod(votes, max(seats, 1))
    users = [np.full_like(votes, before + seats), before + rest, np.full_like(votes, before)]
    begun = np.minimum(items - full, 1)
    shares = [full, begun, items - full - begun]
    return np.asarray(sum(n * coin.chances(u) for n, u in zip(shares, users, strict=True)) / items)
