"""A plan: the rounds of a release, computed from public parameters before any data is touched.

A plan can be printed, explained, tested and audited. What it says about chances is exact for an
item held by n users with m items each, as long as none of their other items is found; where some
are found, the others' weight grows, and the chance with it.
"""

import math
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_sips.chances import binomial, chances
from dp_sips.errors import UsageError
from dp_sips.mechanisms import (
    Cumulative,
    Mechanism,
    Sips,
    SipsRule,
    WeightedGaussian,
    find_mechanism,
)
from dp_sips.parameters import refuse_unknown
from dp_sips.privacy.budget import (
    Budget,
    calibrate,
    check_delta,
    check_epsilon,
    check_rho,
    compose,
)
from dp_sips.privacy.evidence import (
    calibrate_evidence,
    calibrate_evidence_rho,
    drop_levels,
    joint_bound,
    lattice_loss,
)
from dp_sips.privacy.guarantee import (
    Guarantee,
    JointGuarantee,
    RuleGuarantee,
    sampler_loss,
    sampler_tail,
)
from dp_sips.privacy.rule import calibrate_rule
from dp_sips.privacy.threshold import check_max_items, sigma, threshold
from dp_sips.rounds import AnyRound, EvidenceRound, Round, RuleRound

_MOST_USERS = 1 << 34
# Below this, re-truncation beats evidence on some data sets (experiments/yields.py --max-items).
_FEW_ITEMS = 80
# Weights on the lattice of cumulative evidence would be nothing for more.
_MOST_ITEMS = 1 << 20


@dataclass(frozen=True)
class Plan:
    """The rounds that will run, and what they guarantee.

    Attributes:
        mechanism: What makes the rounds.
        max_items: Δ0, how many items of a user count.
        rounds: What will be done, in order: each a Round, an EvidenceRound or a RuleRound, all of
            one kind.
        guarantee: What the release spends, all rounds together.
        asked: The privacy parameters as they were given: epsilon or rho, and delta.
        cut: Whether users' sets are cut to max_items once, and not again in each round.
    """

    mechanism: Mechanism
    max_items: int
    rounds: tuple[Any, ...]
    guarantee: Guarantee
    asked: dict[str, float]
    cut: bool = False

    def release_probability(self, users: int, items_per_user: int = 1) -> float:
        """Return the chance of an item that `users` users hold, each with `items_per_user` items.

        Exact as long as none of the users' other items is found, a lower bound otherwise. Users
        with more than max_items drop the item with the chance that bounding gives it.
        """
        users = _whole("users", users, least=0)
        items = _whole("items_per_user", items_per_user, least=1)
        if items <= self.max_items:
            return float(self._chance(np.array([float(users)]), items)[0])
        holders, odds = binomial(users, self.max_items / items)
        return min(1.0, float(odds @ self._chance(holders, self.max_items)))

    def users_needed(self, probability: float, items_per_user: int = 1) -> int:
        """Return how many users must hold an item, for it to be released with this probability."""
        probability = _probability(probability)
        low, high = 0, 1
        while self.release_probability(high, items_per_user) < probability and high < _MOST_USERS:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self.release_probability(middle, items_per_user) < probability:
                low = middle
            else:
                high = middle
        return high

    def explain(self) -> str:
        """Say in plain words what will happen; nothing in it depends on data."""
        from dp_sips.explain import explain

        return explain(self)

    def table(self) -> list[dict[str, Any]]:
        """Return the rounds as rows of a table."""
        return [{"round": i, **_row(r)} for i, r in enumerate(self.rounds, start=1)]

    def _chance(self, holders: NDArray[np.float64], items: int) -> NDArray[np.float64]:
        """Return the chance of release for each number of holders; none, no chance."""
        return np.where(holders > 0, chances(self.rounds, holders, items), 0.0)


def _row(step: AnyRound) -> dict[str, Any]:
    if isinstance(step, RuleRound):
        return {**asdict(step.rule), "median": step.threshold}
    return {name: value for name, value in asdict(step).items() if name != "max_items"}


def plan(
    mechanism: str | Mechanism = "auto",
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    max_items: int | None = None,
    **unknown: Any,
) -> Plan:
    """Compute the rounds of a release from public parameters.

    Args:
        mechanism: "auto" for the recommended one, another name such as "sips", or a mechanism with
            its own parameters: `Sips(rounds=5)`.
        epsilon: ε of (ε, δ)-differential privacy; give this or `rho`.
        delta: δ, together with either.
        rho: ρ of the paper's δ-approximate ρ-zCDP.
        max_items: Δ0, how many items of a user count; each mechanism has its default.
        unknown: Refused, with the name that is meant where another library's is given.

    Guarantee: with `epsilon`, the release is (ε, δ)-DP by exact Gaussian accounting, calibrated so
    that the last threshold is lowest. With `rho`, it is δ-approximate ρ-zCDP.
    """
    refuse_unknown(unknown)
    asked = _asked(epsilon, delta, rho)
    given = None if max_items is None else check_max_items(max_items)
    chosen = _recommended(given, asked) if mechanism == "auto" else find_mechanism(mechanism)
    most = given or chosen.default_max_items
    if isinstance(chosen, Cumulative):
        return _plan_evidence(chosen, most, asked)
    if isinstance(chosen, SipsRule):
        return _plan_rules(chosen, most, asked)
    assert isinstance(chosen, WeightedGaussian | Sips)
    return _plan_rounds(chosen, most, asked)


def _recommended(max_items: int | None, asked: dict[str, float]) -> Mechanism:
    """Return the mechanism that releases most, as far as public parameters can tell.

    Cumulative evidence cuts sets once. Where so few items of a user count that many are cut, it is
    better to look again in each round at what is left, as SIPS does.
    """
    if max_items is None or max_items >= _FEW_ITEMS:
        return Cumulative()
    return SipsRule() if "epsilon" in asked else Sips()


def _asked(epsilon: float | None, delta: float | None, rho: float | None) -> dict[str, float]:
    """Return the privacy parameters by name, checked."""
    if (epsilon is None) == (rho is None):
        given = "both" if epsilon is not None else "neither"
        raise UsageError(f"give either epsilon or rho, together with delta; got {given}")
    if delta is None:
        raise UsageError(
            "delta is missing: give one well below 1 / (number of users), such as 1e-6"
        )
    delta = check_delta(delta)
    if rho is not None:
        return {"rho": check_rho(rho), "delta": delta}
    assert epsilon is not None
    return {"epsilon": check_epsilon(epsilon), "delta": delta}


def _plan_rounds(
    mechanism: WeightedGaussian | Sips, max_items: int, asked: dict[str, float]
) -> Plan:
    """Plan the paper's mechanisms: the budget is split, each part makes a round of its own."""
    shares = mechanism.shares()
    loss, tail = sampler_loss(len(shares), max_items), sampler_tail(len(shares), max_items)
    if "rho" in asked:
        budget = Budget.from_rho(asked["rho"], asked["delta"])
    else:
        budget = calibrate(
            _above("epsilon", asked["epsilon"], loss),
            _above("delta", asked["delta"], tail),
            lambda b: threshold(b.split(shares)[-1], max_items),
        )
    rounds = tuple(
        Round(part.rho, part.delta, sigma(part), threshold(part, max_items), max_items)
        for part in budget.split(shares)
    )
    spent = compose(Budget(r.rho, r.delta) for r in rounds)
    guarantee = Guarantee(spent.rho, spent.delta, loss, tail)
    return Plan(mechanism, max_items, rounds, guarantee, asked)


def _plan_rules(mechanism: SipsRule, max_items: int, asked: dict[str, float]) -> Plan:
    """Plan release rules: every round has its share of the divergence and of δ."""
    if "rho" in asked:
        raise UsageError("sips-rule has no rho: give epsilon instead")
    count = mechanism.rounds
    loss, tail = sampler_loss(count, max_items), sampler_tail(count, max_items)
    rest = _above("epsilon", asked["epsilon"], loss), _above("delta", asked["delta"], tail)
    rules = calibrate_rule(*rest, mechanism.shares())
    own = -math.expm1(sum(math.log1p(-rule.delta) for rule in rules))
    rho = sum(rule.e for rule in rules) / rules[0].alpha
    guarantee = RuleGuarantee(rho, own, loss, tail, rules)
    rounds = tuple(RuleRound(rule, max_items) for rule in rules)
    return Plan(mechanism, max_items, rounds, guarantee, asked)


def _plan_evidence(mechanism: Cumulative, max_items: int, asked: dict[str, float]) -> Plan:
    """Plan cumulative evidence: one budget for all rounds, thresholds for the sum of them."""
    if max_items > _MOST_ITEMS:
        raise UsageError(f"max_items must be at most {_MOST_ITEMS} for cumulative, got {max_items}")
    schedule, delta = mechanism.schedule(), asked["delta"]
    tail = sampler_tail(mechanism.rounds, max_items)
    if "rho" in asked:
        rho = asked["rho"]
        thresholds = calibrate_evidence_rho(rho, delta, schedule, max_items)
        loss = lattice_loss(rho, schedule, max_items)
    else:
        rest, loss = _above("delta", delta, tail), 0.0
        rho, thresholds = calibrate_evidence(asked["epsilon"], rest, schedule, max_items)
        while loss < lattice_loss(rho, schedule, max_items):  # a smaller ρ, a larger loss
            loss = 1.01 * lattice_loss(rho, schedule, max_items)
            if loss > asked["epsilon"] / 2:
                raise UsageError(
                    f"epsilon={asked['epsilon']:g} and delta={delta:g} need so much noise that "
                    f"its rounding would show: choose fewer than max_items={max_items}, "
                    "or mechanism='sips'"
                )
            left = asked["epsilon"] - loss
            rho, thresholds = calibrate_evidence(left, rest, schedule, max_items)
    bound = joint_bound(schedule, max_items)
    parts = bound.release_by_round(rho, thresholds)
    rounds = tuple(
        EvidenceRound(
            rho=rho * share,
            delta=part,
            sigma=_up(1 / math.sqrt(2 * rho * share)),
            threshold=level,
            max_items=max_items,
            share=share,
            spent=spent,
            drop=drop,
        )
        for share, spent, level, drop, part in zip(
            schedule.fractions.tolist(),
            schedule.spent.tolist(),
            thresholds.tolist(),
            drop_levels(rho, schedule),
            parts,
            strict=True,
        )
    )
    own = bound.threshold_delta(rho, thresholds)
    levels = tuple(thresholds.tolist())
    guarantee = JointGuarantee(rho, own, loss, tail, schedule, max_items, levels)
    return Plan(mechanism, max_items, rounds, guarantee, asked, cut=True)


def _above(name: str, asked: float, part: float) -> float:
    """Return what is left after the sampler's part."""
    if asked <= part:
        raise UsageError(f"{name} must be above {part}, the sampler's part, got {asked}")
    return asked - part


def _up(value: float) -> float:
    return value * (1 + 2.0**-50)


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise UsageError(f"probability must be in (0, 1), got {value!r}")
    return float(value)
