"""SIPS with a release rule: each item gets a coin instead of noise and a threshold.

Only verdicts leave, so the chance of release can be as high as privacy allows for each weight. Like
SIPS it removes what it found, and lets others of a user's items move up.

Guarantee: (ε, δ)-DP, by the proof in `release_rule.py`. The idea of such rules is Harrison and
Manurangsi's; `rho=` has no meaning here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design, RhoDelta, table_of_rounds
from dp_sips.mechanisms.coins import CoinRound, coin_chances
from dp_sips.mechanisms.min_users import check_min_users
from dp_sips.mechanisms.point import zcdp_of_epsilon
from dp_sips.mechanisms.release_rule import (
    ReleaseRule,
    calibrate_rule,
    least_epsilon,
    rule_delta,
    rule_epsilon,
)
from dp_sips.mechanisms.sips import check_shares, geometric_shares
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import Accounting
from dp_sips.privacy.guarantee import Guarantee, SamplerCost

_WORDS: Final = """\
A user with k items gives 1/√k to each. In each round an item is released with a
probability that depends on its weight alone; then it leaves the sets."""

COLUMNS: Final = {
    "e": ("divergence", "10.4g"),
    "delta": ("delta", "10.3g"),
    "median": ("half at weight", "14.2f"),
}
"""What plans say of a round of coins."""


@dataclass(frozen=True, repr=False)
class RuleGuarantee(Guarantee):
    """The guarantee of release rules: (ε, δ) by the proof in `release_rule.py`.

    Attributes:
        rules: The rules of all rounds. `rho` and `threshold_delta` follow from the (ε, δ) that was
            asked for, as in `PointGuarantee`.
    """

    rules: tuple[ReleaseRule, ...]

    def exact_epsilon(self, delta: float, accounting: Accounting) -> float:
        """Return the smallest ε that an exact sampler would have, rounded up."""
        del accounting  # there is only one
        return rule_epsilon(self.rules, delta)

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the smallest δ that an exact sampler would have, rounded up."""
        del accounting
        return rule_delta(self.rules, epsilon)


def rule_point(name: str, asked: Asked, sampler: SamplerCost) -> tuple[float, float]:
    """Return the (ε, δ) that is left for rules; `name` is the mechanism's."""
    if isinstance(asked, RhoDelta):
        raise UsageError(f"{name} has no rho: give epsilon instead")
    least = least_epsilon(asked.delta)
    if asked.epsilon < least:
        raise UsageError(
            f"{name} needs an epsilon of at least {least:.3g} for delta={asked.delta:g}, "
            f"got {asked.epsilon:g}: try mechanism='sips'"
        )
    return asked.point(sampler)


@dataclass(frozen=True)
class SipsRule:
    """SIPS with a release rule instead of noise and a threshold.

    Attributes:
        rounds: I, how many rounds.
        ratio: r, a round's part of the budget relative to the next one's.
        min_users: How many users must hold an item for it to be released at all.
    """

    rounds: int = 3
    ratio: float = 1 / 3
    min_users: int = 1

    name: ClassVar[str] = "sips-rule"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "coins"
    good_for: ClassVar[str] = "most items where few items of a user count"

    def __post_init__(self) -> None:
        check_shares(self.rounds, self.ratio)
        check_min_users(self.min_users)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Give each round its share of the divergence and of δ."""
        sampler = SamplerCost.of(self.rounds, max_items)
        epsilon, delta = rule_point(self.name, asked, sampler)
        rules = calibrate_rule(epsilon, delta, geometric_shares(self.rounds, self.ratio))
        guarantee = RuleGuarantee(zcdp_of_epsilon(epsilon), delta, sampler, rules)
        rounds = tuple(CoinRound(rule, max_items, min_users=self.min_users) for rule in rules)
        return Design(rounds, guarantee, Bounds(max_items))

    def chances(self, rounds: Sequence[CoinRound], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders."""
        return coin_chances(rounds, holders, items)

    def words(self, rounds: Sequence[CoinRound]) -> str:
        """Say what the rounds do."""
        return "\n".join((_WORDS, table_of_rounds([r.row() for r in rounds], COLUMNS)))
