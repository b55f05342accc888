"""Flat coins: SIPS with a release rule for weights that fall more slowly than 1/√k.

    each user keeps up to Δ0 items
    in each round: a user with k items left gives k^−γ to each, rounded down to the lattice
                   each item is released with the probability that its weight has in π
                   released items leave the sets, and others of a user's items move up

Gaussian noise hides an L2 norm, and 1/√k uses all of it. Coins hide steps, one by one, and may be
made for other ones. Weights of 1/√k are a poor choice for long lists: the few users with one item
take steps of 1, and the table has to rise slowly for everyone. With γ = 0.3, items of people with a
hundred items each need half as many holders, those of people with one item half as many again.

Guarantee: (ε, δ)-DP, by the proof in `release_rule.py` ("Flatter weights"). K is Δ0: rules are made
for at most `max_items` items of a user, whatever the data is. `rho=` has no meaning here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design, table_of_rounds
from dp_sips.mechanisms.coins import CoinRound, coin_chances
from dp_sips.mechanisms.point import zcdp_of_epsilon
from dp_sips.mechanisms.release_rule import calibrate_rule, exact_power
from dp_sips.mechanisms.sips import check_shares, geometric_shares
from dp_sips.mechanisms.sips_rule import COLUMNS, RuleGuarantee, rule_point
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.guarantee import SamplerCost

_MOST_ITEMS: Final = 10_000

_WORDS: Final = """\
A user with k items gives 1/k^{gamma:g} to each. In each round an item is released with a
probability that depends on its weight alone; then it leaves the sets."""


@dataclass(frozen=True)
class FlatRule:
    """SIPS with a release rule for weights k^−γ.

    Attributes:
        rounds: I, how many rounds.
        ratio: r, a round's part of the budget relative to the next one's.
        gamma: γ, from 0.01 to 1, in hundredths: the less, the more long lists count.
    """

    rounds: int = 3
    ratio: float = 1 / 3
    gamma: float = 0.3

    name: ClassVar[str] = "flat-rule"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "coins"
    good_for: ClassVar[str] = "long lists in few rounds"

    def __post_init__(self) -> None:
        check_shares(self.rounds, self.ratio)
        if not 0 < self.gamma <= 1 or float(exact_power(self.gamma)) != self.gamma:
            raise UsageError(f"gamma must be from 0.01 to 1, in hundredths, got {self.gamma}")

    def design(self, asked: Asked, max_items: int) -> Design:
        """Give each round its share of the divergence and of δ."""
        if max_items > _MOST_ITEMS:
            raise UsageError(f"{self.name} takes max_items up to {_MOST_ITEMS}, got {max_items}")
        sampler = SamplerCost.of(self.rounds, max_items)
        epsilon, delta = rule_point(self.name, asked, sampler)
        shares = geometric_shares(self.rounds, self.ratio)
        rules = calibrate_rule(epsilon, delta, shares, self.gamma, max_items)
        guarantee = RuleGuarantee(zcdp_of_epsilon(epsilon), delta, sampler, rules)
        power = exact_power(self.gamma)
        rounds = tuple(CoinRound(rule, max_items, power) for rule in rules)
        return Design(rounds, guarantee, Bounds(max_items))

    def chances(self, rounds: Sequence[CoinRound], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders."""
        return coin_chances(rounds, holders, items)

    def words(self, rounds: Sequence[CoinRound]) -> str:
        """Say what the rounds do."""
        words = _WORDS.format(gamma=self.gamma)
        return "\n".join((words, table_of_rounds([r.row() for r in rounds], COLUMNS)))
