"""Matching: each user has one vote, and deferred acceptance finds an item that needs it.

    each user lists its items: publicly frequent ones first, then short ones, then by a keyed hash
    while some user stands:
        it asks the next item of its list for a seat: `laps` times all of them, then once all of
        them for a spare seat; a loyal user first asks one of its items, by an order of its own,
        for a seat and for a spare seat
        a free seat: the user sits down
        a key below the worst key seated there: the user takes that seat, and the other stands
        otherwise: the user goes on; after the last request, it gives up
    release item j with probability π(H_j), where H_j users are seated at j

π is the optimal rule of `single.py`. An item has the seats that it needs for a chance of 95 %, and
spare seats, up to certainty, for votes that no item needs otherwise. The key of a request is

    (laps left, items left on the list, turn of the user),

and the least key is the best: users who can ask few others are seated first. Turns are ranks in a
random order (bounding.turns), so that no two keys are the same; only comparisons of them matter.

All lists have the same order, so that votes meet. It would leave out an item that everybody holds,
if it comes after items that nobody else has, as those turn nobody away. Therefore one user in 2k,
of those with k > 1 items, is loyal (bounding.loyal): N holders with k items each send about N/2k²
votes to an item, wherever it stands on their lists. This costs 0.5 % to 3 % of the items.

Guarantee: (ε, δ)-DP, with all of ε and δ for the coins. By the theorem below, an additional user
changes H at one item at most, and by one. Given H, coins are independent, and π is made for such a
step (`single.py`), also where the item had no vote before.

Theorem. Let the list of each user depend on that user and on public things alone, and let an
additional user leave the order of the others' turns as it was. Then
  1. H does not depend on who asks when;
  2. an additional user leaves H as it was, or raises it by 1 at one item.

Proof. A desk is an item's seats, or its spare seats; q is their number. The requests of a user, a
desk and a key each, are a fixed sequence. A lap is a part of it like any other: two requests of one
user may go to the same desk. A user makes a request when all earlier ones have been rejected, and
only then. Of the requests that it has received, a desk has rejected all except those with the q
least keys. Further requests only lower what it takes to stay, so what is rejected stays rejected,
and a user is never seated twice.

1. Let A and B be two runs until nobody stands, and suppose that A rejects a request that B does
   not. Let r, to a desk d, be the first such request in the order in which A rejects. When A
   rejects r, q requests with lesser keys have been made to d. Their users' earlier requests, and
   those of r's user, were rejected in A before r, and so in B, too. As nobody stands at the end of
   B, the same q requests, and r, are made in B. So r is not among the q least at d, and B rejects
   it: a contradiction. By symmetry, A and B reject the same requests. So they make the same
   requests, and the same users sit at the same desks.

2. With and without the new user, the others have the same requests, and keys that compare alike.
   By 1 they may settle first, and the new user comes last. From then on, one user stands at a time.
   It is rejected and goes on: H stays. It takes the seat of another, who stands instead: H stays.
   It takes a free seat: H grows by 1 there, and nobody stands. It gives up: nobody stands. Each
   request is made once, so this chain ends, and at most one free seat was taken. ∎

A run has to go on until nobody stands: if it ends after a given number of rounds, one user can move
several votes. And users must learn how full items are from rejections only. Both, and other broken
variants, are in tests/privacy/test_matching_exact.py.

Whose is what: deferred acceptance is Gale and Shapley's (1962); that the order of proposals does
not matter is McVitie and Wilson's (1971); requests with terms, so that a user may ask one desk
twice, are Hatfield and Milgrom's contracts (2005); vacancy chains, as in 2, are Blum, Roth and
Rothblum's (1997). One vote for each user and a target are GW's (Carvalho et al. 2022), the coin is
Desfontaines, Voss, Gipson and Mandayam's (2022). Laps, spare seats, these keys, and the use of all
this for partition selection are ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from dp_sips.mechanisms.base import Asked, Design, check_few_items, without_bounds
from dp_sips.mechanisms.min_users import check_min_users
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.mechanisms.single import SingleRule
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds, check_public_counts
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import decide_by_coin
from dp_sips.privacy.guarantee import SamplerCost
from dp_sips.privacy.noise import Scrambler
from dp_sips.validation import check_whole

_LIKELY: Final = 0.95
"""The chance that an item's seats are to give it."""

_SURE: Final = 1.0
"""The chance with all spare seats: votes that nobody else needs make popular items certain."""

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
        coin = without_bounds(asdict(self.coin))
        return {**coin, **numbers, "median": self.coin.median}


@dataclass(frozen=True)
class Matching:
    """Matching: each user has one vote, and deferred acceptance finds the item that needs it.

    Attributes:
        laps: How often users ask all of their items. The second time is worth a few per cent of the
            items, the third less.
        histogram: Public frequencies of items (of tuples, for several columns): publicly frequent
            items come first on all lists; items that it lacks come last. This must not come from
            the data that is protected.
        min_users: How many users must hold an item for it to be released at all: that many votes
            less one do not count.
    """

    laps: int = 3
    histogram: Mapping[Any, int] | None = field(default=None, repr=False, hash=False)
    min_users: int = 1

    name: ClassVar[str] = "matching"
    default_max_items: ClassVar[int] = 1_000_000
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "coins"
    good_for: ClassVar[str] = "most items, popular or not, from users with few items each"

    def __post_init__(self) -> None:
        check_whole("laps", self.laps, most=_MOST_LAPS)
        check_min_users(self.min_users)
        if self.histogram is not None:
            check_public_counts("histogram", self.histogram)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Give an item the seats that its coin needs."""
        check_few_items(self.name, max_items)
        sampler = SamplerCost.of(rounds=1, max_items=1)
        epsilon, delta = asked.point(sampler)
        coin = SingleRule(epsilon, delta, self.min_users)
        seats, enough = coin.users_for(_LIKELY), coin.users_for(_SURE)
        step = MatchingRound(coin, seats, enough - seats, self.laps, max_items)
        bounds = Bounds(max_items, once=True, public_counts=self.histogram)
        return Design((step,), PointGuarantee.of(epsilon, delta, sampler), bounds)

    def chances(self, rounds: Sequence[MatchingRound], holders: Floats, items: int) -> Floats:
        """Return the mean chance of the items that all holders have, where nobody else votes.

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
            f"Each user has one vote, and asks their items, one by one, for one of {step.seats}\n"
            "seats. An item keeps the users who have the fewest other items left to\n"
            f"ask. Users who find no seat in {step.laps} laps ask for one of {step.spare} spare\n"
            "seats. An item is released with a probability that depends on the number\n"
            "of its seated users alone, the highest that the promise allows: at least\n"
            f"one half with {step.coin.median:.0f} users or more. If votes run out, items that\n"
            "many people hold can be missing, but hardly ever those with more than\n"
            f"{2 * (step.seats + step.spare)} · k² holders who have k items each."
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
