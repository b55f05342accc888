"""From a mechanism and privacy parameters to rounds and a guarantee: one function for each kind."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dp_sips.errors import UsageError
from dp_sips.mechanisms import (
    Cumulative,
    Dpsu,
    Gw,
    Mad,
    Mad2R,
    Mechanism,
    PolicyLaplace,
    Single,
    Sips,
    SipsRule,
    WeightedGaussian,
)
from dp_sips.privacy import adaptive
from dp_sips.privacy.adaptive import Spread, bias_edges, cells
from dp_sips.privacy.budget import Budget, calibrate, compose
from dp_sips.privacy.evidence import (
    calibrate_evidence,
    calibrate_evidence_rho,
    drop_levels,
    joint_bound,
    lattice_error,
)
from dp_sips.privacy.guarantee import (
    LARGEST_EPSILON,
    Guarantee,
    JointGuarantee,
    PlainGuarantee,
    RuleGuarantee,
    cascade_loss,
    cascade_tail,
    sampler_loss,
    sampler_tail,
)
from dp_sips.privacy.policy import (
    L1,
    L2,
    MOST_USERS,
    Favourite,
    proportional,
    sensitivity,
    unit_bits,
)
from dp_sips.privacy.rule import calibrate_rule
from dp_sips.privacy.single import SingleRule
from dp_sips.privacy.threshold import laplace_threshold, sigma, threshold
from dp_sips.rounds import AdaptiveRound, EvidenceRound, FoldRound, LaplaceRound, Round, RuleRound

Asked = dict[str, float]
"""The privacy parameters as they were given: epsilon or rho, and delta."""

# For more, weights on the lattice of cumulative evidence and shares of Policy Laplace would be
# nothing, and a set that is cut would not fit into a chunk of Spark's.
_MOST_ITEMS = 1 << 20
_NARROW = 0.02


@dataclass(frozen=True)
class Terms:
    """What a mechanism makes of its parameters; `Plan` says what each attribute means."""

    rounds: tuple[Any, ...]
    guarantee: Guarantee
    cut: bool = False
    counts: bool = False


def terms_of(mechanism: Mechanism, max_items: int, asked: Asked) -> Terms:
    """Return the rounds and the guarantee of a mechanism."""
    # A subclass stands before its base.
    planners: list[tuple[type[Any], Callable[[Any, int, Asked], Terms]]] = [
        (Cumulative, _evidence),
        (SipsRule, _rules),
        (Sips, _rounds),
        (WeightedGaussian, _rounds),
        (Mad2R, _mad2r),
        (Mad, _mad),
        (Dpsu, _dpsu),
        (PolicyLaplace, _policy_laplace),
        (Gw, _gw),
        (Single, _single),
    ]
    planner = next(planner for kind, planner in planners if isinstance(mechanism, kind))
    return planner(mechanism, max_items, asked)


def _rounds(mechanism: WeightedGaussian | Sips, max_items: int, asked: Asked) -> Terms:
    """Plan the paper's mechanisms: the budget is split, each part makes a round of its own."""
    shares = mechanism.shares()
    loss, tail = sampler_loss(len(shares), max_items), sampler_tail(len(shares), max_items)
    budget = _budget(asked, loss, tail, lambda b: threshold(b.split(shares)[-1], max_items))
    rounds = tuple(
        Round(part.rho, part.delta, sigma(part), threshold(part, max_items), max_items)
        for part in budget.split(shares)
    )
    spent = compose(Budget(r.rho, r.delta) for r in rounds)
    guarantee = Guarantee(spent.rho, spent.delta, loss, tail)
    return Terms(rounds, guarantee)


def _rules(mechanism: SipsRule, max_items: int, asked: Asked) -> Terms:
    """Plan release rules: every round has its share of the divergence and of δ."""
    if "rho" in asked:
        raise UsageError("sips-rule has no rho: give epsilon instead")
    count = mechanism.rounds
    loss, tail = sampler_loss(count, max_items), sampler_tail(count, max_items)
    epsilon, delta = _left(asked, loss, tail)
    rules = calibrate_rule(epsilon, delta, mechanism.shares())
    guarantee = RuleGuarantee(_zcdp(epsilon), delta, loss, tail, rules)
    rounds = tuple(RuleRound(rule, max_items) for rule in rules)
    return Terms(rounds, guarantee)


def _evidence(mechanism: Cumulative, max_items: int, asked: Asked) -> Terms:
    """Plan cumulative evidence: one budget for all rounds, thresholds for the sum of them."""
    _few_enough(max_items, mechanism)
    schedule, delta = mechanism.schedule(), asked["delta"]
    if "rho" in asked:
        rho = asked["rho"]
        thresholds = calibrate_evidence_rho(rho, delta, schedule, max_items)
        loss, tail = lattice_error(rho, schedule, max_items)
    else:
        loss = tail = 0.0
        rho, thresholds = calibrate_evidence(*_left(asked, loss, tail), schedule, max_items)
        while True:  # a smaller ρ, a larger error
            more, beyond = lattice_error(rho, schedule, max_items)
            if loss >= more and tail >= beyond:
                break
            loss, tail = 1.01 * more, 1.01 * beyond
            if loss > asked["epsilon"] / 2:
                raise UsageError(
                    f"epsilon={asked['epsilon']:g} and delta={delta:g} need so much noise that "
                    f"its rounding would show: choose fewer than max_items={max_items}, "
                    "or mechanism='sips'"
                )
            rho, thresholds = calibrate_evidence(*_left(asked, loss, tail), schedule, max_items)
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
    return Terms(rounds, guarantee, cut=True)


def _mad(mechanism: Mad, max_items: int, asked: Asked) -> Terms:
    """Plan MAD: Weighted Gaussian's noise and threshold, and a need above it."""
    _few_enough(max_items, mechanism)
    loss, tail = cascade_loss(1), cascade_tail(1)
    budget = _budget(asked, loss, tail, lambda b: threshold(b, max_items))
    step = _adaptive(mechanism, budget, max_items)
    return Terms((step,), Guarantee(budget.rho, budget.delta, loss, tail), cut=True)


def _mad2r(mechanism: Mad2R, max_items: int, asked: Asked) -> Terms:
    """Plan MAD2R: two rounds, of which the second has biases from the first."""
    _few_enough(max_items, mechanism)
    # The sampler's part depends on the noise, a little, and the noise on the sampler's part.
    loss, tail = cascade_loss(2), cascade_tail(2)
    while True:
        first, second = _two_rounds(mechanism, max_items, asked, loss, tail)
        assert first.drop is not None
        levels = (first.threshold, first.drop, *second.spread.edges)
        needed = cascade_loss(1 + cells(levels, first.sigma))
        if needed <= loss:
            break
        loss = 1.01 * needed
    spent = compose(Budget(r.rho, r.delta) for r in (first, second))
    return Terms((first, second), Guarantee(spent.rho, spent.delta, loss, tail), cut=True)


def _two_rounds(
    mechanism: Mad2R, max_items: int, asked: Asked, loss: float, tail: float
) -> tuple[AdaptiveRound, AdaptiveRound]:
    shares = mechanism.share, 1 - mechanism.share
    if mechanism.composition == "basic" and "epsilon" in asked:
        epsilon, delta = _left(asked, loss, tail)
        parts = [
            Budget.from_epsilon(part * epsilon, part * delta, threshold_delta=part * delta / 2)
            for part in shares
        ]
    else:
        highest = mechanism.highest

        def level(budget: Budget) -> float:
            return threshold(budget.split(shares)[-1], max_items, weight=highest)

        parts = list(_budget(asked, loss, tail, level).split(shares))
    second = _adaptive(
        mechanism, parts[1], max_items, lowest=mechanism.lowest, highest=mechanism.highest
    )
    first = _adaptive(mechanism, parts[0], max_items)
    first = replace(first, drop=second.threshold - mechanism.upper * first.sigma)
    edges: tuple[float, ...] = ()
    if second.threshold > 0:  # else every item does well
        edges = bias_edges(mechanism.lower * first.sigma, second.threshold, mechanism.lowest)
    # An edge next to the threshold would make an interval that is too narrow to be of use.
    edges = tuple(e for e in edges if abs(e - first.threshold) > _NARROW * first.sigma)
    return first, replace(second, spread=replace(second.spread, edges=edges))


def _adaptive(
    mechanism: Mad, budget: Budget, max_items: int, *, lowest: float = 1.0, highest: float = 1.0
) -> AdaptiveRound:
    moves = adaptive.sensitivity(mechanism.largest)
    noise = moves * sigma(budget)
    level = threshold(budget, max_items, weight=highest, sensitivity=moves)
    target = max(1.0, level + mechanism.buffer * noise)
    if target > adaptive.LARGEST:
        raise UsageError(
            f"an item would need a weight of {target:g}, too much for {mechanism.name}: "
            "give a larger epsilon or rho"
        )
    spread = Spread(target, mechanism.largest, lowest, highest)
    return AdaptiveRound(budget.rho, budget.delta, noise, level, max_items, spread)


def _dpsu(mechanism: Dpsu, max_items: int, asked: Asked) -> Terms:
    """Plan DPSU: Weighted Gaussian's noise and threshold, and a target above it."""
    loss, tail = cascade_loss(1), cascade_tail(1)
    budget = _budget(asked, loss, tail, lambda b: threshold(b, max_items))

    def target(moves: float) -> float:
        level = threshold(budget, max_items, sensitivity=moves)
        return max(1.0, level + mechanism.buffer * moves * sigma(budget))

    bits = unit_bits(L2, 2 * target(1.0), max_items)
    moves = sensitivity(L2, bits, max_items)
    round_ = FoldRound(
        rho=budget.rho,
        delta=budget.delta,
        sigma=moves * sigma(budget),
        threshold=threshold(budget, max_items, sensitivity=moves),
        max_items=max_items,
        policy=proportional(L2, target(moves), bits, max_items),
    )
    return Terms((round_,), Guarantee(budget.rho, budget.delta, loss, tail))


def _policy_laplace(mechanism: PolicyLaplace, max_items: int, asked: Asked) -> Terms:
    """Plan Policy Laplace: all of ε for the noise, all of δ for the threshold."""
    _few_enough(max_items, mechanism)
    loss, tail = cascade_loss(1), cascade_tail(1)
    epsilon, delta = _pure(asked, loss, tail)

    def target(scale: float) -> float:
        return laplace_threshold(scale, delta, max_items) + mechanism.buffer * scale

    bits = unit_bits(L1, 2 * target(1 / epsilon), max_items)
    scale = _up(sensitivity(L1, bits, max_items) / epsilon)
    policy = proportional(L1, target(scale), bits, max_items)
    level = laplace_threshold(scale, delta, max_items)
    step = LaplaceRound(epsilon, delta, scale, level, max_items, policy)
    return Terms((step,), _plain(epsilon, delta, loss, tail))


def _gw(mechanism: Gw, max_items: int, asked: Asked) -> Terms:
    """Plan GW: T = 1 − log(2δ)/ε for the one item that may come to life, and a whole target."""
    loss, tail = sampler_loss(1, 1), sampler_tail(1, 1)
    epsilon, delta = _pure(asked, loss, tail)
    scale = _up(1 / epsilon)
    level = laplace_threshold(scale, delta, 1)
    target = min(level + mechanism.buffer * scale, MOST_USERS)  # no item has more weight
    policy = Favourite(max(1, round(target)), mechanism.ties == "rows")
    step = LaplaceRound(epsilon, delta, scale, level, max_items, policy)
    counts = mechanism.histogram is None
    return Terms((step,), _plain(epsilon, delta, loss, tail), counts=counts)


def _plain(epsilon: float, delta: float, loss: float, tail: float) -> PlainGuarantee:
    return PlainGuarantee(_zcdp(epsilon), delta, loss, tail, epsilon)


def _zcdp(epsilon: float) -> float:
    """Return ρ of what is (ε, δ)-DP, and so δ-approximate ρ-zCDP (`PlainGuarantee` says why)."""
    return _up(epsilon**2 / 2)


def _single(mechanism: Single, max_items: int, asked: Asked) -> Terms:
    """Plan the optimal rule of users with one item each."""
    if max_items != 1:
        raise UsageError(f"{mechanism.name} is for max_items=1, got {max_items}: try 'sips-rule'")
    loss, tail = sampler_loss(1, 1), sampler_tail(1, 1)
    epsilon, delta = _pure(asked, loss, tail)
    step = RuleRound(SingleRule(epsilon, delta), max_items)
    return Terms((step,), _plain(epsilon, delta, loss, tail))


def _budget(asked: Asked, loss: float, tail: float, level: Callable[[Budget], float]) -> Budget:
    """Return the budget that was asked for, less the sampler's part, with the lowest threshold."""
    if "rho" in asked:
        return Budget.from_rho(asked["rho"], asked["delta"])
    return calibrate(*_left(asked, loss, tail), level)


def _pure(asked: Asked, loss: float, tail: float) -> tuple[float, float]:
    """Return ε and δ of a mechanism that is (ε, δ)-DP and so δ-approximate ε²/2-zCDP."""
    if "rho" in asked:
        return math.sqrt(2 * asked["rho"]) * (1 - 2.0**-50), asked["delta"]
    return _left(asked, loss, tail)


def _left(asked: Asked, loss: float, tail: float) -> tuple[float, float]:
    """Return the ε and δ that are left for exact arithmetic, after the sampler's part."""
    epsilon, delta = min(asked["epsilon"], LARGEST_EPSILON), asked["delta"]
    for name, value, part in (("epsilon", epsilon, loss), ("delta", delta, tail)):
        if value <= part:
            raise UsageError(f"{name} must be above {part}, the sampler's part, got {value}")
    return epsilon - loss, (delta - tail) / (1 + loss) * (1 - 2.0**-50)


def _few_enough(max_items: int, mechanism: Mechanism) -> None:
    if max_items > _MOST_ITEMS:
        raise UsageError(
            f"max_items must be at most {_MOST_ITEMS} for {mechanism.name}, got {max_items}"
        )


def _up(value: float) -> float:
    return value * (1 + 2.0**-50)
