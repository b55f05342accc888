"""Coins for flatter weights: every pair of coins, whole releases by enumeration, broken rules.

Whole releases of a few users are checked without sampling: given the weights, verdicts are
independent coins, so the distribution over all histories of verdicts can be written down.
"""

import math
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips import FlatRule, UsageError, plan
from dp_sips.mechanisms.release_rule import (
    ReleaseRule,
    calibrate_rule,
    exact_power,
    release_table,
    rule_delta,
)
from dp_sips.privacy.weights import UNIT_BITS, weight

EPSILONS = (0.05, 0.3, 1.0, 2.0, 4.0, 30.0)
# Sums of a few hundred products of floats.
ROUNDING = 1e-13
Sets = list[tuple[int, ...]]
# (α, e, δ, step_bits, γ, K); with 2 and 3 bits some steps are cells apart, and entries stand still.
RULES = [
    ReleaseRule(9.0, 0.6, 1.2e-5, 5, 0.3, 100),
    ReleaseRule(9.0, 0.6, 1.2e-5, 3, 0.3, 100),
    ReleaseRule(3.0, 1.0, 1e-3, 3, 0.2, 3),
    ReleaseRule(1.6, 2.5, 0.05, 4, 0.4, 7),
    ReleaseRule(8.0, 0.1, 1e-6, 2, 1.0, 4),
    ReleaseRule(8.0, 0.6, 1e-3, 4, 0.5, 20),
]


def divergence(p: Any, after: Any, d: float, alpha: float) -> Any:
    """The larger D_α between the good parts of coins p ≤ p', as close as d lets them be."""
    with np.errstate(all="ignore"):
        a, b = p / (1 - d), (after - d) / (1 - d)
        sums = [x**alpha * y ** (1 - alpha) + (1 - x) ** alpha * (1 - y) ** (1 - alpha)
                for x, y in ((a, b), (b, a))]  # fmt: skip
        found = np.log(np.maximum(*sums)) / (alpha - 1)
    return np.where((b <= a) | (p >= 1 - d), 0.0, np.where(np.isnan(found), np.inf, found))


def cells(rule: ReleaseRule, count: int) -> int:
    """Return v(k)."""
    assert rule.gamma is not None
    return weight(count, rule.step_bits, exact_power(rule.gamma)) >> (UNIT_BITS - rule.step_bits)


def chances(rule: ReleaseRule, sets: Sets, table: Any) -> dict[int, float]:
    weights: dict[int, int] = {}
    for items in sets:
        for item in items:
            weights[item] = weights.get(item, 0) + cells(rule, len(items))
    return {u: float(table[min(w, len(table) - 1)]) for u, w in weights.items()}


def histories(sets: Sets, rules: list[ReleaseRule], tables: list[Any]) -> dict[Any, float]:
    """Return the probability of each sequence of released sets."""
    if not rules:
        return {(): 1.0}
    odds_of = chances(rules[0], sets, tables[0])
    found: dict[Any, float] = {}
    for verdicts in product((False, True), repeat=len(odds_of)):
        released = frozenset(u for u, yes in zip(odds_of, verdicts, strict=True) if yes)
        odds = math.prod(p if u in released else 1 - p for u, p in odds_of.items())
        left = [tuple(u for u in items if u not in released) for items in sets]
        if odds:
            for rest, more in histories(left, rules[1:], tables[1:]).items():
                found[released, *rest] = odds * more
    return found


def worst(sets: Sets, rules: list[ReleaseRule], epsilon: float, tables: Any = None) -> float:
    """Return the true δ(ε), the larger of both directions, over all users to be removed."""
    tables = tables or [rule.table for rule in rules]
    whole, found = histories(sets, rules, tables), 0.0
    for one in set(sets):
        rest = list(sets)
        rest.remove(one)
        part = histories(rest, rules, tables)
        for p, q in ((whole, part), (part, whole)):
            excess = (max(0.0, odds - math.exp(epsilon) * q.get(h, 0.0)) for h, odds in p.items())
            found = max(found, sum(excess))
    return found


def caught(sets: Sets, rule: ReleaseRule, table: Any) -> bool:
    return any(
        worst(sets, [rule], epsilon, [table]) > rule_delta([rule], epsilon) + ROUNDING
        for epsilon in EPSILONS
    )


class TestTable:
    @pytest.mark.parametrize("rule", RULES, ids=repr)
    def test_every_step_that_a_user_can_take(self, rule: ReleaseRule) -> None:
        table, largest = rule.table, rule.largest
        assert largest is not None
        for k in range(1, largest + 1):
            v = cells(rule, k)
            if v:
                d = -math.expm1(math.log1p(-rule.delta) / k)
                after = np.minimum(table[v:], 1 - 1e-16)
                # 1 − π has no digits left in a plain float near 1.
                here = (table[:-v] < 1 - 1e-6) & (table[v:] < 1 - 1e-6)
                found = divergence(table[:-v], after, d, rule.alpha)[here]
                assert np.all(found <= rule.e / k * (1 + 1e-6))

    @pytest.mark.parametrize("rule", RULES, ids=repr)
    def test_rises_from_0_to_1(self, rule: ReleaseRule) -> None:
        assert rule.table[0] == 0
        assert rule.table[-1] == 1
        assert np.all(np.diff(rule.table) >= 0)

    def test_is_the_largest(self) -> None:
        """Some step of some user is at the edge, at every entry that a sum can have."""
        rule = RULES[0]
        for cell in np.linspace(60, np.argmax(rule.table > 0.99), 9).astype(int):
            after = rule.table[cell]
            edges = [
                k / rule.e * divergence(
                    rule.table[cell - cells(rule, k)], after,
                    -math.expm1(math.log1p(-rule.delta) / k), rule.alpha,
                )
                for k in range(1, 101)
            ]  # fmt: skip
            assert max(edges) > 0.999

    def test_long_lists_need_fewer_users_and_short_ones_more(self) -> None:
        flat, plain = (
            plan(m, epsilon=1.765, delta=4.96e-5) for m in (FlatRule(rounds=1), "sips-rule")
        )
        assert flat.users_needed(0.5, items_per_user=100) < 0.7 * plain.users_needed(
            0.5, items_per_user=100
        )
        assert flat.users_needed(0.5, items_per_user=1) > plain.users_needed(0.5, items_per_user=1)


small = st.builds(
    ReleaseRule,
    st.sampled_from([1.6, 3.0, 8.0]),
    st.sampled_from([0.1, 0.6, 2.5]),
    st.sampled_from([1e-6, 1e-3, 0.05]),
    st.sampled_from([2, 3, 4]),
    st.sampled_from([0.1, 0.3, 0.5, 1.0]),
    st.just(3),
)
crowds = st.lists(
    st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]), min_size=1, max_size=14
)


class TestWholeReleases:
    @settings(max_examples=120, deadline=None)
    @given(small, crowds)
    def test_one_round(self, rule: ReleaseRule, sets: Sets) -> None:
        for epsilon in EPSILONS:
            assert worst(sets, [rule], epsilon) <= rule_delta([rule], epsilon) + ROUNDING

    @settings(max_examples=30, deadline=None)
    @given(small, small, crowds)
    def test_two_rounds(self, first: ReleaseRule, second: ReleaseRule, sets: Sets) -> None:
        assert first.gamma is not None
        then = ReleaseRule(first.alpha, second.e, second.delta, second.step_bits, first.gamma, 3)
        for epsilon in (0.3, 1.0, 4.0):
            spent = worst(sets, [first, then], epsilon)
            assert spent <= rule_delta([first, then], epsilon) + ROUNDING

    def test_as_it_was_asked(self) -> None:
        found = calibrate_rule(2.0, 0.01, (1 / 3, 1.0), 0.3, 3)
        for n in range(8):
            sets: Sets = [*[(0,)] * n, *[(0, 1)] * (n // 2), (0, 1, 2)]
            assert worst(sets, list(found), 2.0) <= 0.01


class TestBrokenRules:
    RULE = ReleaseRule(3.0, 1.0, 1e-3, 4, 0.1, 3)
    ALONE: ClassVar[Sets] = [(0, 1, 2)]
    SHARED: ClassVar[list[Sets]] = [
        [*[(0,)] * n, *[(1,)] * n, *[(2,)] * n, (0, 1, 2)] for n in range(1, 9)
    ]

    def test_the_rule_itself_is_not(self) -> None:
        for sets in (self.ALONE, *self.SHARED):
            assert not caught(sets, self.RULE, self.RULE.table)

    def test_the_table_of_norm_one_under_flatter_weights(self) -> None:
        """It takes v² for a step of v: three steps of 0.9 cost 2.4 instead of 1."""
        table = release_table(3.0, 1.0, 1e-3, 4)
        assert caught(self.ALONE, self.RULE, table)

    def test_a_largest_below_what_users_have(self) -> None:
        table = ReleaseRule(3.0, 1.0, 1e-3, 4, 0.1, 1).table
        assert caught(self.ALONE, self.RULE, table)

    def test_three_times_the_divergence(self) -> None:
        table = ReleaseRule(3.0, 3.0, 1e-3, 4, 0.1, 3).table
        assert any(caught(sets, self.RULE, table) for sets in self.SHARED)


class TestMechanism:
    @pytest.mark.parametrize("gamma", [0.0, -0.3, 1.01, 0.333, math.nan])
    def test_gamma_is_in_hundredths(self, gamma: float) -> None:
        with pytest.raises(UsageError, match=r"gamma must be from 0\.01 to 1, in hundredths"):
            FlatRule(gamma=gamma)

    def test_rules_are_made_for_max_items(self) -> None:
        made = plan("flat-rule", epsilon=1, delta=1e-6, max_items=30)
        assert [r.coin.largest for r in made.rounds] == [30, 30, 30]
        assert [r.gamma for r in made.rounds] == [exact_power(0.3)] * 3
        assert made.guarantee.delta(epsilon=1) <= 1e-6
        assert "1/k^0.3" in made.explain()

    def test_refuses(self) -> None:
        with pytest.raises(UsageError, match="flat-rule has no rho"):
            plan("flat-rule", rho=0.1, delta=1e-6)
        with pytest.raises(UsageError, match="flat-rule takes max_items up to 10000"):
            plan("flat-rule", epsilon=1, delta=1e-6, max_items=20_000)
        with pytest.raises(UsageError, match="gamma and largest go together"):
            ReleaseRule(3.0, 1.0, 1e-3, 4, 0.3)
