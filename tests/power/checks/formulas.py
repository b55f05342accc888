"""Noise, threshold and guarantee of every mechanism, held against what is written on paper.

Nothing of the product's arithmetic is used: from a plan come only the numbers by which it will run
(σ, scale, threshold, coin), and what it claims. The rest is worked out here, with 30 digits. Each
claim must be true, and no more than a little better than what was asked: a promise that is kept by
chance, with room to spare, would hide a slip in another place.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np

from dp_sips import Cumulative, FlatRule, Mad, Mad2R, Plan, SipsRule, plan
from dp_sips.mechanisms.base import EpsilonDelta
from dp_sips.mechanisms.counting import Counting, selection_part
from dp_sips.mechanisms.joint import NOTHING
from dp_sips.privacy.guarantee import Guarantee

mp.mp.dps = 30

BUDGETS = ((0.3, 1e-8), (1.0, 1e-5), (4.0, 1e-3))
"""Budgets (ε, δ) at which every formula is checked."""

_SAMPLER_ERROR, _SAMPLER_TAIL = 2.0**-40, 2.0**-82
_USERS = 2**32


def tail(z: Any) -> Any:
    """Q(z), the chance that a standard Gaussian is above z."""
    return mp.erfc(mp.mpf(z) / mp.sqrt(2)) / 2


def gaussian_curve(epsilon: Any, mu: Any) -> Any:
    """δ_G(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), for any ε."""
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    return tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * tail(epsilon / mu + mu / 2)


def some_of(count: int, chance: Any) -> Any:
    """The chance that one of several items is released."""
    return -mp.expm1(count * mp.log1p(-chance))


@dataclass(frozen=True)
class NoisyRound:
    """What a round with Gaussian noise does to one user.

    Attributes:
        sigma: The deviation of its noise.
        threshold: Its threshold.
        moves: By which L2 norm a user moves the weights.
        heaviest: Of t items of a user's own, each weighs at most this over √t.
        max_items: Δ0.
    """

    sigma: float
    threshold: float
    moves: float
    heaviest: float
    max_items: int

    def release(self) -> Any:
        """Return the largest chance that some of a user's own items is released."""
        sizes = {1, 2, 3, 10, self.max_items // 2, self.max_items - 1, self.max_items}
        return max(
            some_of(t, tail((self.threshold - self.heaviest / mp.sqrt(t)) / self.sigma))
            for t in sizes
            if 1 <= t <= self.max_items
        )

    def rho(self) -> Any:
        return (mp.mpf(self.moves) / self.sigma) ** 2 / 2


def noisy_rounds(made: Plan) -> list[NoisyRound]:
    """Return what the rounds of a plan do, with the moves that each mechanism's proof states."""
    moves, heaviest = _moves(made), [1.0] * len(made.rounds)
    if isinstance(made.mechanism, Mad2R):
        heaviest[1] = made.mechanism.highest
    return [
        NoisyRound(step.sigma, step.threshold, moves, heavy, made.max_items)
        for step, heavy in zip(made.rounds, heaviest, strict=True)
    ]


def _moves(made: Plan) -> float:
    """By how much a user moves the weights, as the mechanisms' theorems say, rounding included."""
    match made.mechanism.name:
        case "dpsu":
            return 1 + 2 * _USERS * (math.sqrt(made.max_items) + 8) / _units(made)
        case "policy-laplace":
            return 1 + 2 * _USERS * (made.max_items + 8) / _units(made)
        case "mad" | "mad2r":
            assert isinstance(made.mechanism, Mad)
            return 1 + 4 * math.sqrt(made.mechanism.largest) * _USERS * 2.0**-46
    return 1.0


def _units(made: Plan) -> int:
    """How many units of its weights a user's whole weight has."""
    return 1 << int(made.rounds[0].policy.unit_bits)


def sampler_cost(made: Plan) -> tuple[float, float]:
    """Return the least that the sampler can cost: privacy/README.md, "The sampler"."""
    rounds = len(made.rounds)
    match made.mechanism.name:
        case "dpsu" | "policy-laplace" | "mad" | "mad2r":
            spread = _SAMPLER_ERROR * math.sqrt(2 * 2**36 * 270)
            each = 2 * (1.01 * spread + 2 * 2**36 * _SAMPLER_ERROR**2)
            times = rounds - 1 + _intervals(made)
            return times * each, 2 * rounds * 2**36 * _SAMPLER_TAIL
        case "gw" | "single" | "matching":
            return 3 * _SAMPLER_ERROR, _SAMPLER_TAIL
        case "cumulative":
            cells = [2.0**12 * step.sigma for step in made.rounds]
            loss = sum(3 * made.max_items * 23 * 2.0**-49 * (cell + 11) for cell in cells)
            return loss, made.max_items * _SAMPLER_TAIL * sum(1 + 5.4 * c / 16 for c in cells)
    return 3 * rounds * made.max_items * _SAMPLER_ERROR, rounds * made.max_items * _SAMPLER_TAIL


def _intervals(made: Plan) -> float:
    """Return how much larger the errors of mad2r's intervals are than those of tails.

    What the second round learns of the first is in which of a few intervals a noisy weight lies.
    """
    if made.mechanism.name != "mad2r":
        return 1.0
    first, second = made.rounds
    levels = sorted((first.threshold, first.drop, *second.spread.edges))
    width = min(1.0, *((b - a) / first.sigma for a, b in pairwise(levels)))
    return float(2 / (0.79 * width * math.exp(-width)))


Curve = Callable[[float], Any]
"""δ of exact arithmetic, for each ε."""


def check_claims(made: Plan, curve: Curve, *, tight: float = 0.95, inverse: bool = True) -> None:
    """What a plan claims is true of the curve of its rounds, and what was asked holds.

    `inverse` is whether ε of a δ is asked for, too, which takes long for evidence.
    """
    loss, spare = sampler_cost(made)
    claimed = made.guarantee
    assert claimed.sampler.loss >= loss * (1 - 1e-12)
    assert claimed.sampler.tail >= spare * (1 - 1e-12)

    def true_delta(epsilon: float) -> Any:
        return curve(epsilon - loss) * (1 + loss) + spare

    asked = made.asked
    assert isinstance(asked, EpsilonDelta)
    assert tight * asked.delta <= true_delta(asked.epsilon) <= asked.delta * (1 + 1e-12)
    assert claimed.delta(epsilon=asked.epsilon) <= asked.delta
    if inverse:
        found = claimed.epsilon(delta=asked.delta)
        assert true_delta(found) * (1 - 1e-9) <= asked.delta
        assert found <= asked.epsilon * (1 + 1e-9)
    for part in (0.7, 0.9, 1.0, 1.1, 1.3):
        assert claimed.delta(epsilon=part * asked.epsilon) >= true_delta(part * asked.epsilon) * (
            1 - 1e-9
        )


# ------------------------------------------------------------------------------------------------
# Gaussian noise and a threshold


def rounds_curve(rounds: Sequence[NoisyRound], more: Any = 0) -> Curve:
    """Return ε ↦ δ_T + δ_G(ε, μ) with μ² = Σ (moves/σ)² + 2·more."""
    own = 1 - mp.fprod(1 - step.release() for step in rounds)
    mu = mp.sqrt(2 * (sum(step.rho() for step in rounds) + more))
    return lambda epsilon: own + gaussian_curve(epsilon, mu)


def gaussian_rounds(name: Any, max_items: int, *, tight: float = 0.95) -> None:
    """weighted-gaussian, sips, dpsu, mad, mad2r: σ, T and guarantee follow from each other."""
    for epsilon, delta in BUDGETS:
        made = plan(name, epsilon=epsilon, delta=delta, max_items=max_items)
        rounds = noisy_rounds(made)
        check_claims(made, rounds_curve(rounds), tight=tight)
        _parts_add_up(made, rounds)
        made = plan(name, rho=epsilon / 4, delta=delta, max_items=max_items)
        rounds = noisy_rounds(made)
        _parts_add_up(made, rounds)
        assert 0.999 * epsilon / 4 <= made.guarantee.rho <= epsilon / 4
        assert 0.999 * delta <= made.guarantee.threshold_delta <= delta


def _parts_add_up(made: Plan, rounds: Sequence[NoisyRound]) -> None:
    """Each round spends what it says, and the guarantee says what all of them spend."""
    assert made.guarantee.sampler.loss >= sampler_cost(made)[0] * (1 - 1e-12)
    for step, noisy in zip(made.rounds, rounds, strict=True):
        assert step.rho * (1 - 1e-12) <= noisy.rho() <= step.rho
        assert 0.999 * step.delta <= noisy.release() <= step.delta
    assert made.guarantee.rho >= sum(step.rho() for step in rounds)
    missed = mp.fprod(1 - step.release() for step in rounds)
    assert made.guarantee.threshold_delta >= 1 - missed


# ------------------------------------------------------------------------------------------------
# Cumulative evidence: what the theorem says of users with no item, or one item, of their own


def cumulative() -> None:
    """D(1) + G(1) and G(0) from below, with the rounds' own σ, thresholds and counts."""
    for mechanism, max_items in ((Cumulative(), 250), (Cumulative(rounds=3), 10)):
        for epsilon, delta in BUDGETS[1:]:
            made = plan(mechanism, epsilon=epsilon, delta=delta, max_items=max_items)
            rho = sum(1 / (2 * mp.mpf(step.sigma) ** 2) for step in made.rounds)
            assert made.guarantee.rho >= rho * (1 - mp.mpf(10) ** -12)
            check_claims(made, evidence_curve(made, rho), tight=0.5, inverse=False)
            assert made.guarantee.delta(epsilon=epsilon) >= 0.97 * delta


def evidence_curve(made: Plan, rho: Any) -> Curve:
    own = [one_item_of_ones_own(made, i) for i in range(len(made.rounds))]
    left = mp.mpf(made.max_items - 1) / made.max_items

    def curve(epsilon: float) -> Any:
        alone = sum(own) + gaussian_curve(epsilon, mp.sqrt(2 * rho * left))
        return max(gaussian_curve(epsilon, mp.sqrt(2 * rho)), alone)

    return curve


def one_item_of_ones_own(made: Plan, index: int) -> Any:
    """Return Q((T_i − 1)/s_i), s_i the deviation of the average of all noise up to round i."""
    so_far = made.rounds[: index + 1]
    counted = sum(mp.mpf(step.count) for step in so_far)
    deviation = mp.sqrt(sum((step.count * mp.mpf(step.sigma)) ** 2 for step in so_far)) / counted
    return tail((so_far[-1].threshold - 1) / deviation)


# ------------------------------------------------------------------------------------------------
# Laplace noise and a threshold


def laplace_rounds(name: str, max_items: int) -> None:
    """policy-laplace and gw: scale = moves/ε, and T hides every number of items of one's own."""
    for epsilon, delta in BUDGETS:
        made = plan(name, epsilon=epsilon, delta=delta, max_items=max_items)
        (step,) = made.rounds
        pure = mp.mpf(_moves(made)) / step.scale
        assert isinstance(getattr(step.policy, "target", 0), int)
        most = 1 if name == "gw" else max_items
        own = max(
            some_of(t, mp.exp(-(step.threshold - mp.mpf(1) / t) / step.scale) / 2)
            for t in {1, 2, 3, most // 2 or 1, most}
            if t <= most
        )
        assert math.isclose(float(pure), step.epsilon, rel_tol=1e-12)
        assert pure <= step.epsilon
        check_claims(made, point_curve(pure, own))


def point_curve(pure: Any, own: Any) -> Curve:
    """What is (ε₀, δ₀)-DP is (ε, δ₀ + (1 − δ₀)(e^ε₀ − e^ε)/(1 + e^ε₀))-DP."""

    def curve(epsilon: float) -> Any:
        if epsilon >= pure:
            return own
        answered = (mp.exp(pure) - mp.exp(epsilon)) / (1 + mp.exp(pure))
        return own + (1 - own) * answered

    return curve


# ------------------------------------------------------------------------------------------------
# Coins


def optimal_coin(name: str) -> None:
    """single and matching: neighbouring entries of π are (ε, δ)-indistinguishable, and no more."""
    for epsilon, delta in BUDGETS:
        made = plan(name, epsilon=epsilon, delta=delta)
        coin = made.rounds[0].coin
        loss, spare = sampler_cost(made)
        exact = epsilon - loss, (mp.mpf(delta) - spare) / (1 + loss)
        users = np.arange(coin.users_for(1.0) + 1, dtype=np.uint64) << np.uint64(30)
        yes, no = coin.odds(users)
        assert float(np.abs(yes + no - 1).max()) < 1e-15
        _coins_are_hidden([mp.mpf(p) for p in yes], [mp.mpf(q) for q in no], *exact)
        assert made.guarantee.delta(epsilon=epsilon) <= delta
        for part in (0.5, 0.9, 1.0):
            true = point_curve(exact[0], exact[1])(part * epsilon - loss)
            assert made.guarantee.delta(epsilon=part * epsilon) >= true * (1 - mp.mpf(10) ** -9)


def _coins_are_hidden(yes: list[Any], no: list[Any], epsilon: float, delta: Any) -> None:
    grow, close = mp.exp(epsilon), 1 + mp.mpf(10) ** -12
    assert yes[0] == 0
    best = mp.mpf(0)
    for n in range(len(yes) - 1):
        assert yes[n] <= yes[n + 1] <= (grow * yes[n] + delta) * close
        assert no[n] <= (grow * no[n + 1] + delta) * close
        best = min(grow * best + delta, 1 - (1 - best - delta) / grow, mp.mpf(1))
        assert abs(yes[n + 1] - best) <= 1e-9 * best


def release_rules() -> None:
    """sips-rule: the conversion, and the divergence of coins that a user moves, for many moves."""
    for epsilon, delta in BUDGETS[2:]:
        made = plan("sips-rule", epsilon=epsilon, delta=delta, max_items=20)
        rules = [step.coin for step in made.rounds]
        check_claims(made, rules_curve(rules))
        for rule in rules:
            _moves_are_hidden(replace(rule, step_bits=4))  # finer tables take long


def rules_curve(rules: Sequence[Any], more: Any = 0) -> Curve:
    """Return δ_T + (1 − δ_T) exp((α−1)(e + α·more − ε)) / (α−1) · (1−1/α)^α of all rounds."""
    alpha = mp.mpf(rules[0].alpha)
    e = sum(mp.mpf(rule.e) for rule in rules) + alpha * more
    own = 1 - mp.fprod(1 - mp.mpf(rule.delta) for rule in rules)

    def curve(epsilon: float) -> Any:
        rest = mp.exp((alpha - 1) * (e - epsilon)) / (alpha - 1) * (1 - 1 / alpha) ** alpha
        return own + (1 - own) * min(1, rest)

    return curve


def _moves_are_hidden(rule: Any) -> None:
    """Coins v apart are d(v)-approximately (α, e v²)-RDP, both ways."""
    apart = {1, 2, 5, 1 << rule.step_bits - 1, 1 << rule.step_bits}
    _costs_are_kept(rule, {cells: (cells * 2.0**-rule.step_bits) ** 2 for cells in apart})


def flat_rules() -> None:
    """flat-rule: a move by k^−γ may cost 1/k of the divergence and of log(1 − δ), for every k."""
    made = plan(FlatRule(rounds=1), epsilon=4.0, delta=1e-3, max_items=20)
    (step,) = made.rounds
    check_claims(made, rules_curve([step.coin]))
    moves = {int(16 * k**-0.3): 1 / k for k in range(1, 21)}
    _costs_are_kept(replace(step.coin, step_bits=4), moves)


def _costs_are_kept(rule: Any, costs: dict[int, float]) -> None:
    """Coins that many cells apart diverge by at most that part of e, except for that part of δ."""
    table, alpha = rule.table, rule.alpha
    for apart, square in costs.items():
        bad = -math.expm1(square * math.log1p(-rule.delta))
        low, high = table[:-apart] / (1 - bad), (table[apart:] - bad) / (1 - bad)
        met = (high <= low) | (low >= 1) | (high >= 1)
        a, b = low[~met], high[~met]
        for p, q in ((a, b), (b, a)):
            with np.errstate(divide="ignore"):
                sums = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
            assert (np.log(sums) / (alpha - 1) <= rule.e * square * (1 + 1e-3) + 1e-12).all()
        assert bool((table[:apart][0] == 0) and (high[low >= 1] <= 1).all())


# ------------------------------------------------------------------------------------------------
# A selection and counts


def counts() -> None:
    """σ² = s²/2ρ + 3/2 for every number of keys, and both releases together keep what was asked."""
    for epsilon, delta in BUDGETS[1:]:
        for name, max_items in (("sips", 10), ("sips", 1), ("matching", 10), ("cumulative", 10)):
            _counts_after(name, EpsilonDelta(epsilon, delta), max_items)
    _counts_after(SipsRule(rounds=1), EpsilonDelta(2.0, 5e-4), 10)


def _counts_after(mechanism: Any, asked: EpsilonDelta, max_items: int) -> None:
    part = selection_part(asked, 1 / 3)
    assert isinstance(part, EpsilonDelta)
    made = plan(mechanism, epsilon=part.epsilon, delta=part.delta)
    counting = Counting.within(asked, made.guarantee, max_items, 1 / 3)
    rho = _rho_of_counts(counting, made.guarantee, max_items)
    rounding = counting.guarantee.sampler.loss - made.guarantee.sampler.loss
    assert rounding >= 2 * max_items * _rounding_of_one_count()
    true = _curve_with_counts(made, rho)(asked.epsilon - made.guarantee.sampler.loss)
    least = 0.5 if made.mechanism.name == "cumulative" else 0.95  # there, the curve is a bound
    assert least * asked.delta <= true <= asked.delta
    assert true <= counting.guarantee.delta(epsilon=asked.epsilon) <= asked.delta


def counts_alone() -> None:
    """Counts of given keys spend all of ε and δ, as one Gaussian mechanism."""
    for epsilon, delta in BUDGETS:
        for max_items in (1, 10):
            counting = Counting.within(EpsilonDelta(epsilon, delta), NOTHING, max_items, 1.0)
            rho = _rho_of_counts(counting, NOTHING, max_items)
            true = gaussian_curve(epsilon, mp.sqrt(2 * rho))
            assert 0.95 * delta <= true <= counting.guarantee.delta(epsilon=epsilon) <= delta


def counts_after_a_look() -> None:
    """On every path: ε of the look, the release and the counts together keep what was asked."""
    asked = EpsilonDelta(*BUDGETS[2])
    part = selection_part(asked, 1 / 3)
    assert isinstance(part, EpsilonDelta)
    made = plan("auto", epsilon=part.epsilon, delta=part.delta)
    look: Any = made.look
    counting = Counting.within(asked, made.guarantee, 10, 1 / 3)
    claimed = counting.guarantee.delta(epsilon=asked.epsilon)
    assert claimed <= asked.delta
    for branch in (look.short, look.long, look.early_short, look.early_long):
        release = branch.design.guarantee
        chosen = replace(made, mechanism=branch.mechanism, rounds=branch.design.rounds)
        rho = _rho_of_counts(counting, release, 10)
        rest = asked.epsilon - look.spent(branch) - look.sampler.loss - release.sampler.loss
        assert _curve_with_counts(chosen, rho)(rest) <= claimed


def _rho_of_counts(counting: Counting, release: Guarantee, max_items: int) -> Any:
    """Return what one user's counts cost, of every number of keys the most."""
    found = []
    for keys in (0, 1, 3, max_items, 1000):
        deviation = mp.mpf(counting.deviation(release, keys))
        moved = max(1, min(max_items, keys))
        found.append(moved / (2 * (deviation**2 - mp.mpf(3) / 2)))
    assert max(found) <= min(found) * (1 + mp.mpf(10) ** -9)
    return max(found)


def _rounding_of_one_count() -> float:
    """Return η = log((1 + θ)/(1 − θ)), θ = 2 Σ exp(−2π²r²k²), r² = 3/2; counting.py."""
    theta = 2 * sum(math.exp(-3 * math.pi**2 * k * k) for k in range(1, 5))
    return math.log1p(theta) - math.log1p(-theta)


def _curve_with_counts(made: Plan, rho: Any) -> Curve:
    match made.mechanism.name:
        case "sips":
            return rounds_curve(noisy_rounds(made), more=rho)
        case "cumulative":
            whole = mp.sqrt(2 * (sum(1 / (2 * mp.mpf(r.sigma) ** 2) for r in made.rounds) + rho))
            return lambda epsilon: gaussian_curve(epsilon, whole)
        case "sips-rule":
            return rules_curve([step.coin for step in made.rounds], more=rho)
    coin, mu = made.rounds[0].coin, mp.sqrt(2 * rho)
    pure, own = mp.mpf(coin.epsilon), mp.mpf(coin.delta)
    truth = 1 / (1 + mp.exp(-pure))

    def curve(epsilon: float) -> Any:
        told = truth * gaussian_curve(epsilon - pure, mu)
        return own + (1 - own) * (told + (1 - truth) * gaussian_curve(epsilon + pure, mu))

    return curve


# ------------------------------------------------------------------------------------------------
# A look and a release


def look_and_release() -> None:
    """auto: on every path, ε of the look and of the release add up to what was asked."""
    for epsilon, delta in BUDGETS[1:]:
        made = plan("auto", epsilon=epsilon, delta=delta)
        look: Any = made.look
        shares = {False: 1.0, True: 0.15 + 0.3}
        for branch, early in (
            (look.short, False),
            (look.long, False),
            (look.early_short, True),
            (look.early_long, True),
        ):
            spent = look.epsilon * shares[early]
            assert look.spent(branch) >= spent
            rest = epsilon - spent - look.sampler.loss
            release = branch.design.guarantee
            assert release.delta(epsilon=rest) <= delta
            assert release.delta(epsilon=0.97 * rest) > delta
            for part in (0.8, 1.0, 1.2):
                own = release.delta(epsilon=part * epsilon - spent)
                assert made.guarantee.delta(epsilon=part * epsilon) >= own * (1 - 1e-9)
        assert made.guarantee.delta(epsilon=epsilon) <= delta


EVERY: dict[str, Callable[[], None]] = {
    "formulas of weighted-gaussian": partial(gaussian_rounds, "weighted-gaussian", 100),
    "formulas of sips": partial(gaussian_rounds, "sips", 20),
    "formulas of dpsu": partial(gaussian_rounds, "dpsu", 50),
    "formulas of mad": partial(gaussian_rounds, "mad", 100),
    "formulas of mad2r": partial(gaussian_rounds, "mad2r", 100),
    "formulas of mad2r, basic": partial(
        gaussian_rounds, Mad2R(composition="basic"), 100, tight=0.05
    ),
    "formulas of cumulative": cumulative,
    "formulas of policy-laplace": partial(laplace_rounds, "policy-laplace", 50),
    "formulas of gw": partial(laplace_rounds, "gw", 50),
    "coins of single": partial(optimal_coin, "single"),
    "coins of matching": partial(optimal_coin, "matching"),
    "coins of sips-rule": release_rules,
    "coins of flat-rule": flat_rules,
    "noise of counts": counts,
    "noise of counts alone": counts_alone,
    "noise of counts after a look": counts_after_a_look,
    "a look and a release": look_and_release,
}
