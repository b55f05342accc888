"""The release rule: every pair of coins, whole releases by enumeration, and rules that are broken.

Witnesses are a table by bisection, divergences as they are defined, and mpmath. Whole releases of a
few users are checked without sampling: given the weights, verdicts are independent coins, so the
distribution over all histories of verdicts can be written down.
"""

import math
from itertools import product
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips.errors import UsageError
from dp_sips.mechanisms.release_rule import (
    ReleaseRule,
    _tables,
    calibrate_rule,
    release_table,
    rule_delta,
    rule_epsilon,
)
from dp_sips.privacy.decide import toss
from dp_sips.privacy.weights import UNIT, UNIT_BITS, weight, weight_table

EPSILONS = (0.05, 0.3, 1.0, 2.0, 4.0, 30.0)
SIPS = (1 / 9, 1 / 3, 1.0)
# Sums of a few hundred products of floats.
ROUNDING = 1e-13
# (α, e, δ, step_bits): steep, gentle, ordinary and lopsided ones.
RULES = [
    (10.0, 0.9479, 2.48e-5, 6),
    (1.5, 3.0, 1e-2, 5),
    (2.7, 6.0, 7e-4, 5),
    (40.0, 0.2, 5e-7, 3),
    (6.7, 5.5, 5e-13, 5),
    (300.0, 0.02, 0.3, 2),
    (3.0, 1e-3, 0.05, 2),
]


def slow_table(alpha: float, e: float, delta: float, bits: int, power: float = 2) -> list[float]:
    """π by bisection on divergences as they are defined; d and e·v² with v^power, rightly 2."""
    steps, table = 1 << bits, [0.0]
    while table[-1] < 1 - 1e-4:
        reach = min(len(table), steps)
        p = np.array(table[-reach:])
        v = np.arange(reach, 0, -1) / steps
        d = -np.expm1(v**power * math.log1p(-delta))
        low, high = p + d, np.ones(reach)
        for _ in range(60):
            middle = (low + high) / 2
            fine = divergence(p, middle, d, alpha) <= e * v**power
            low, high = np.where(fine, middle, low), np.where(fine, high, middle)
        table.append(float(low.min()))
    return table


def divergence(p: Any, after: Any, d: Any, alpha: float) -> Any:
    """The larger D_α between the good parts of coins p ≤ p', as close as d lets them be."""
    with np.errstate(all="ignore"):
        a, b = p / (1 - d), (after - d) / (1 - d)
        there, back = (
            np.exp(alpha * np.log(x) + (1 - alpha) * np.log(y))
            + np.exp(alpha * np.log1p(-x) + (1 - alpha) * np.log1p(-y))
            for x, y in ((a, b), (b, a))
        )
        found = np.log(np.maximum(there, back)) / (alpha - 1)
    return np.where((b <= a) | (p >= 1 - d), 0.0, np.where(np.isnan(found), np.inf, found))


def exact_excess(rule: ReleaseRule, cell: int, move: int) -> Any:
    """(D_α − e·v²)/(e·v²) of two entries of the table, with 60 digits: at most 0 is private."""
    released, missed = _tables(rule)
    with mpmath.workdps(60):
        alpha, v = mpmath.mpf(rule.alpha), mpmath.mpf(move) / (1 << rule.step_bits)
        d = 1 - (1 - mpmath.mpf(rule.delta)) ** (v * v)
        yes, no = zip(*(_coin(released[i], missed[i]) for i in (cell, cell + move)), strict=True)
        good = ((yes[0], no[0] - d), (yes[1] - d, no[1]))
        if good[1][0] <= good[0][0] or good[0][1] <= 0:
            return mpmath.mpf(-1)
        if not good[0][0] or not good[1][1]:
            return mpmath.inf
        (a, na), (b, nb) = [(x / (1 - d), y / (1 - d)) for x, y in good]
        sums = (
            b**alpha * a ** (1 - alpha) + nb**alpha * na ** (1 - alpha),
            a**alpha * b ** (1 - alpha) + na**alpha * nb ** (1 - alpha),
        )
        return mpmath.log(max(sums)) / (alpha - 1) / (mpmath.mpf(rule.e) * v * v) - 1


def _coin(released: float, missed: float) -> tuple[Any, Any]:
    """P[yes] and P[no] of `decide`: the smaller entry is the exact one."""
    if released <= 0.5:
        return mpmath.mpf(released), 1 - mpmath.mpf(released)
    return 1 - mpmath.mpf(missed), mpmath.mpf(missed)


class TestCoins:
    @pytest.mark.parametrize("parameters", RULES)
    def test_every_pair_in_floats(self, parameters: tuple[float, float, float, int]) -> None:
        alpha, e, delta, bits = parameters
        table = release_table(*parameters)
        for k in range(1, (1 << bits) + 1):
            v = k / (1 << bits)
            # 1 − π has no digits left in a plain float near 1; mpmath looks there.
            here = table[:-k] < 1 - 1e-6
            d = -math.expm1(v * v * math.log1p(-delta))
            found = divergence(table[:-k], np.minimum(table[k:], 1 - 1e-16), d, alpha)
            assert np.all(found[here & (table[k:] < 1 - 1e-6)] <= e * v * v * (1 + 1e-6))

    @settings(max_examples=300)
    @given(st.sampled_from(RULES), st.floats(0, 1), st.floats(0, 1))
    def test_pairs_in_exact_arithmetic(
        self, parameters: tuple[float, float, float, int], where: float, far: float
    ) -> None:
        rule = ReleaseRule(*parameters)
        move = 1 + round(far * ((1 << rule.step_bits) - 1))
        cell = round(where * (len(rule.table) - 1 - move))
        assert exact_excess(rule, cell, move) <= 0

    @pytest.mark.parametrize("parameters", RULES)
    def test_both_ends_in_exact_arithmetic(
        self, parameters: tuple[float, float, float, int]
    ) -> None:
        rule = ReleaseRule(*parameters)
        last, steps = len(rule.table) - 1, 1 << rule.step_bits
        for move in {1, 2, steps // 2, steps}:
            for cell in (0, 1, 2, last - move - 2, last - move - 1, last - move):
                assert exact_excess(rule, max(cell, 0), move) <= 0

    @pytest.mark.parametrize("parameters", RULES)
    def test_some_move_is_nearly_too_far(self, parameters: tuple[float, float, float, int]) -> None:
        """The table is the largest, so each entry is at the edge for one of the moves."""
        rule = ReleaseRule(*parameters)
        cells = np.linspace(1, np.argmax(rule.table > 0.999), 12).astype(int).tolist()
        for cell in cells:
            moves = range(1, min(cell, 1 << rule.step_bits) + 1)
            novel = -math.expm1((cell / (1 << rule.step_bits)) ** 2 * math.log1p(-rule.delta))
            tight = max(exact_excess(rule, cell - move, move) for move in moves)
            assert tight > -1e-4 or rule.table[cell] > novel * (1 - 1e-4)

    @pytest.mark.parametrize("parameters", RULES[:2])
    def test_another_way_to_the_same_table(
        self, parameters: tuple[float, float, float, int]
    ) -> None:
        alpha, e, delta, _ = parameters
        slow = np.array(slow_table(alpha, e, delta, 3))
        fast = release_table(alpha, e, delta, 3)[: len(slow)]
        assert np.all(fast <= slow * (1 + 1e-9))
        assert fast == pytest.approx(slow, rel=2e-4)

    @pytest.mark.parametrize("factor", [1.01, 1.3])
    def test_too_large_an_e_is_caught(self, factor: float) -> None:
        table = release_table(10.0, 0.9479 * factor, 2.48e-5, 4)
        for k in (1, 4, 16):
            d = -math.expm1((k / 16) ** 2 * math.log1p(-2.48e-5))
            found = divergence(table[:200], table[k : 200 + k], d, 10.0)
            assert np.any(found > 0.9479 * (k / 16) ** 2)


class TestTable:
    @pytest.mark.parametrize("parameters", RULES)
    def test_rises_from_0_to_1(self, parameters: tuple[float, float, float, int]) -> None:
        table = release_table(*parameters)
        assert table[0] == 0
        assert table[-1] == 1
        assert np.all(np.diff(table) >= 0)
        assert np.all(table[:-1][table[:-1] < 0.9] < table[1:][table[:-1] < 0.9])

    def test_a_novel_item_is_released_with_probability_delta_at_most(self) -> None:
        rule = ReleaseRule(10.0, 0.9479, 2.48e-5, 4)
        for k in range(1, 17):
            assert rule.table[k] <= -math.expm1((k / 16) ** 2 * math.log1p(-2.48e-5))

    def test_grows_with_e_and_delta(self) -> None:
        table = release_table(10.0, 0.5, 1e-5, 3)
        for more in (release_table(10.0, 0.6, 1e-5, 3), release_table(10.0, 0.5, 1e-4, 3)):
            assert np.all(more >= table[: len(more)] * (1 - 1e-4))
            assert len(more) < len(table)

    def test_is_computed_once_and_cannot_be_changed(self) -> None:
        table = release_table(10.0, 0.5, 1e-5, 3)
        assert release_table(10.0, 0.5, 1e-5, 3) is table
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1.0

    def test_golden_median(self) -> None:
        """research.md §4: at (1.765, 4.96e-5) with α = 10 and half of δ in δ_T."""
        rule = ReleaseRule(10.0, 0.9479, 2.48e-5)
        assert rule_delta([rule], 1.765) == pytest.approx(4.96e-5, rel=1e-3)
        assert rule.median == pytest.approx(9.03, abs=0.01)

    @pytest.mark.parametrize(
        "parameters",
        [(1.0, 1.0, 0.1, 3), (math.nan, 1.0, 0.1, 3), (2.0, 0.0, 0.1, 3), (2.0, math.inf, 0.1, 3),
         (2.0, 1.0, 0.0, 3), (2.0, 1.0, 1.0, 3), (2.0, 1.0, 0.1, -1), (2.0, 1.0, 0.1, 31),
         (2.0, 1e-12, 0.1, 8), (1e6, 1e-3, 0.1, 3), (100.0, 10.0, 0.1, 3)],
    )  # fmt: skip
    def test_refuses(self, parameters: tuple[float, float, float, int]) -> None:
        with pytest.raises(UsageError):
            release_table(*parameters)
        with pytest.raises(UsageError):
            ReleaseRule(*parameters)


def steps_of(count: int, bits: int) -> int:
    return weight(count, bits) >> (UNIT_BITS - bits)


class TestLattice:
    @given(st.integers(1, 10**6), st.integers(0, 12))
    def test_the_norm_is_at_most_one(self, count: int, bits: int) -> None:
        steps = steps_of(count, bits)
        assert count * steps**2 <= 4**bits < count * (steps + 1) ** 2

    def test_loss(self) -> None:
        """What the module says that rounding costs."""
        for bits, count, most in ((8, 20, 0.018), (8, 100, 0.04), (5, 100, 0.32)):
            for k in range(1, count + 1):
                assert steps_of(k, bits) >= 2**bits / math.sqrt(k) * (1 - most)

    def test_table_is_in_units(self) -> None:
        assert weight_table(4, 8).tolist() == [0, UNIT, 181 << 22, 147 << 22, UNIT // 2]

    def test_rounding_sums_would_be_wrong(self) -> None:
        """A contribution of a hundredth of a step would move a sum by a whole step."""
        rule = ReleaseRule(3.0, 1.0, 0.01, 3)
        with pytest.raises(UsageError, match="weights must be sums of weight_table"):
            rule.odds(np.array([UNIT // 8 + 1], dtype=np.uint64))
        v, (p, after) = 0.01 / 8, rule.table[16:18]
        d = -math.expm1(v * v * math.log1p(-0.01))
        assert divergence(p, after, d, 3.0) > 100 * v * v


class TestVerdicts:
    RULE = ReleaseRule(3.0, 1.0, 0.01, 3)

    def weights(self, *cells: int) -> Any:
        return np.array(cells, dtype=np.uint64) << np.uint64(UNIT_BITS - 3)

    def test_probability(self) -> None:
        table = self.RULE.table
        found, _ = self.RULE.odds(self.weights(0, 1, 9, len(table) - 1, len(table), 10**6))
        assert found.tolist() == [0, table[1], table[9], 1, 1, 1]

    def test_released_below_the_probability(self) -> None:
        p = float(self.RULE.table[20])
        uniform = np.array([0.0, p * (1 - 1e-15), p, p * (1 + 1e-15), 0.999])
        verdicts = toss(uniform, *self.RULE.odds(self.weights(*[20] * 5)))
        assert verdicts.tolist() == [True, True, False, False, False]

    def test_uniforms_modulo_one(self) -> None:
        cell = int(np.argmax(self.RULE.table > 1 - 1e-4))
        missed = _tables(self.RULE)[1][cell]
        uniform = np.array([0.4, -0.4, -missed * (1 + 1e-9), -missed * (1 - 1e-9)])
        verdicts = toss(uniform, *self.RULE.odds(self.weights(*[cell] * 4)))
        assert verdicts.tolist() == [True, True, True, False]

    def test_no_weight_no_release_and_full_weight_always(self) -> None:
        uniform = np.array([0.0, 1e-300, 0.5, 0.999, -0.5, -1e-300])
        assert not toss(uniform, *self.RULE.odds(self.weights(*[0] * 6))).any()
        assert toss(uniform, *self.RULE.odds(self.weights(*[10**6] * 6))).all()

    def test_rates(self) -> None:
        uniform = np.random.default_rng(1).uniform(-0.5, 0.5, 100_000)
        for cell in (8, 16, 24, 40):
            chance = self.RULE.table[cell]
            rate = toss(uniform, *self.RULE.odds(self.weights(*[cell] * 100_000))).mean()
            assert abs(rate - chance) < 5 * math.sqrt(chance * (1 - chance) / 1e5) + 1e-5


Sets = list[tuple[int, ...]]
Histories = dict[tuple[Any, ...], float]
Round = tuple[Any, int]
"""A table and the bits of its lattice."""


def rounds_of(*rules: ReleaseRule) -> list[Round]:
    return [(rule.table, rule.step_bits) for rule in rules]


def weigh(sets: Sets, bits: int, max_items: int) -> dict[int, int]:
    """Return each item's weight in steps."""
    weights: dict[int, int] = {}
    for items in sets:
        counted = items[:max_items]
        for item in counted:
            weights[item] = weights.get(item, 0) + steps_of(len(counted), bits)
    return weights


def histories(sets: Sets, rounds: list[Round], max_items: int) -> Histories:
    """Return the probability of each sequence of released sets."""
    if not rounds:
        return {(): 1.0}
    (table, bits), *later = rounds
    weights = weigh(sets, bits, max_items)
    chances = {u: float(table[min(w, len(table) - 1)]) for u, w in weights.items()}
    found: Histories = {}
    for verdicts in product((False, True), repeat=len(chances)):
        released = frozenset(u for u, yes in zip(chances, verdicts, strict=True) if yes)
        odds = math.prod(p if u in released else 1 - p for u, p in chances.items())
        left = [tuple(u for u in items if u not in released) for items in sets]
        if odds:
            for rest, more in histories(left, later, max_items).items():
                found[(released, *rest)] = odds * more
    return found


def worst(sets: Sets, rounds: list[Round], epsilon: float, max_items: int = 9) -> float:
    """Return the true δ(ε), the larger hockey-stick divergence, over all users to be removed."""

    def excess(p: Histories, q: Histories) -> float:
        return sum(max(0.0, odds - math.exp(epsilon) * q.get(h, 0.0)) for h, odds in p.items())

    whole, found = histories(sets, rounds, max_items), 0.0
    for one in set(sets):
        rest = list(sets)
        rest.remove(one)
        part = histories(rest, rounds, max_items)
        found = max(found, excess(whole, part), excess(part, whole))
    return found


def crowds(items: int, most: int) -> st.SearchStrategy[Sets]:
    """Return users with ordered sets of one item, two, or all: bounding may choose any."""
    singles = [(i,) for i in range(items)]
    pairs = [(i, j) for i in range(items) for j in range(items) if i != j]
    kinds = list(dict.fromkeys([*singles, *pairs, tuple(range(items))]))
    counts = st.fixed_dictionaries(dict.fromkeys(kinds, st.integers(0, most) | st.just(0)))
    return counts.map(lambda n: [k for k in kinds for _ in range(n[k])] or [tuple(range(items))])


rules = st.builds(
    ReleaseRule,
    st.sampled_from([1.6, 3.0, 8.0]),
    st.sampled_from([0.1, 0.6, 2.5]),
    st.sampled_from([1e-6, 1e-3, 0.05]),
    st.sampled_from([2, 3]),
)


class TestWholeReleases:
    @settings(max_examples=150)
    @given(rules, crowds(2, 8))
    def test_one_round(self, rule: ReleaseRule, sets: Sets) -> None:
        for epsilon in EPSILONS:
            spent = worst(sets, rounds_of(rule), epsilon)
            assert spent <= rule_delta([rule], epsilon) + ROUNDING

    @settings(max_examples=60)
    @given(rules, crowds(3, 4))
    def test_three_items(self, rule: ReleaseRule, sets: Sets) -> None:
        for epsilon in EPSILONS:
            spent = worst(sets, rounds_of(rule), epsilon)
            assert spent <= rule_delta([rule], epsilon) + ROUNDING

    @settings(max_examples=150)
    @given(rules, rules, crowds(2, 8), st.integers(1, 2))
    def test_two_rounds(
        self, first: ReleaseRule, second: ReleaseRule, sets: Sets, max_items: int
    ) -> None:
        """Found items leave, their holders' weight moves, and others come up in bounding."""
        then = ReleaseRule(first.alpha, second.e, second.delta, second.step_bits)
        for epsilon in EPSILONS:
            spent = worst(sets, rounds_of(first, then), epsilon, max_items)
            assert spent <= rule_delta([first, then], epsilon) + ROUNDING

    def test_as_it_was_asked(self) -> None:
        epsilon, delta = 2.0, 0.01
        found = calibrate_rule(epsilon, delta, (1 / 3, 1.0))
        for n in range(12):
            sets: Sets = [*[(0,)] * n, *[(0, 1)] * (n // 2), (1, 0)]
            assert worst(sets, rounds_of(*found), epsilon) <= delta

    def test_novel_items_spend_delta_to_the_last(self) -> None:
        rule = ReleaseRule(3.0, 1.0, 1e-3, 4)
        alone: list[Sets] = [[(0,)], [(0, 1, 2, 3)]]
        for sets in alone:
            assert worst(sets, rounds_of(rule), 30.0) == pytest.approx(1e-3, rel=1e-6)


class TestBrokenRules:
    """Checks that pass whatever they are given are none."""

    RULE = ReleaseRule(3.0, 1.0, 1e-3, 3)
    NOVEL: ClassVar[list[Sets]] = [[(0,)], [(0, 1)], [(0, 1, 2, 3)]]
    POPULAR: ClassVar[list[Sets]] = [[(0,)] * n for n in range(2, 14)]
    SHARED: ClassVar[list[Sets]] = [[(0,)] * n + [(1,)] * n + [(0, 1)] for n in range(1, 10)]

    def caught(self, rounds: list[Round], crowd: list[Sets]) -> bool:
        return any(
            worst(sets, rounds, epsilon) > rule_delta([self.RULE], epsilon) + ROUNDING
            for sets in crowd
            for epsilon in EPSILONS
        )

    def test_the_rule_itself_is_not(self) -> None:
        crowd = [*self.NOVEL, *self.POPULAR, *self.SHARED]
        assert not self.caught(rounds_of(self.RULE), crowd)

    def test_a_larger_delta(self) -> None:
        broken = ReleaseRule(3.0, 1.0, 1.01e-3, 3)
        assert self.caught(rounds_of(broken), self.NOVEL)

    def test_d_and_e_linear_in_the_weight(self) -> None:
        """Right for a single item; two half as heavy ones spend too much."""
        broken = [(np.array(slow_table(3.0, 1.0, 1e-3, 3, power=1)), 3)]
        assert not self.caught(broken, [[(0,)]])
        assert self.caught(broken, [[(0, 1)]])

    def test_a_larger_e(self) -> None:
        broken = ReleaseRule(3.0, 3.0, 1e-3, 3)
        assert self.caught(rounds_of(broken), self.POPULAR)

    def test_a_weight_too_much(self) -> None:
        """Entries twice as far apart as they may be."""
        assert self.caught([(self.RULE.table[::2], 3)], self.POPULAR)

    def test_a_round_too_many(self) -> None:
        assert self.caught(rounds_of(self.RULE, self.RULE), self.NOVEL)


class TestConversion:
    @settings(max_examples=100)
    @given(st.lists(rules, min_size=1, max_size=4), st.floats(0.01, 20))
    def test_delta_is_just_above_its_exact_value(
        self, several: list[ReleaseRule], epsilon: float
    ) -> None:
        alpha = several[0].alpha
        same = [ReleaseRule(alpha, r.e, r.delta, r.step_bits) for r in several]
        with mpmath.workdps(60):
            a, e = mpmath.mpf(alpha), mpmath.fsum(mpmath.mpf(r.e) for r in same)
            own = 1 - mpmath.fprod(1 - mpmath.mpf(r.delta) for r in same)
            rest = mpmath.exp((a - 1) * (e - mpmath.mpf(epsilon))) / (a - 1) * (1 - 1 / a) ** a
            exact = min(1, own + (1 - own) * rest)
            assert exact <= rule_delta(same, epsilon) <= exact * (1 + mpmath.mpf("1e-11"))

    @given(rules, st.floats(0.051, 0.9))
    def test_there_and_back(self, rule: ReleaseRule, delta: float) -> None:
        epsilon = rule_epsilon([rule], delta)
        assert rule_delta([rule], epsilon) <= delta
        assert epsilon <= 1e-9 or rule_delta([rule], epsilon * (1 - 1e-9)) > delta

    def test_refuses(self) -> None:
        one, other = ReleaseRule(3.0, 1.0, 0.01), ReleaseRule(4.0, 1.0, 0.01)
        with pytest.raises(UsageError, match="one alpha in common"):
            rule_delta([one, other], 1.0)
        with pytest.raises(UsageError, match="one alpha in common"):
            rule_delta([], 1.0)
        with pytest.raises(UsageError, match="delta must be above"):
            rule_epsilon([one], 0.01)
        with pytest.raises(UsageError, match="epsilon must be positive"):
            rule_delta([one], 0.0)


class TestCalibration:
    @pytest.mark.parametrize("shares", [(1.0,), SIPS, (5.0, 1.0)])
    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(1.765, 4.96e-5), (0.5, 1e-6), (10.0, 1e-3), (3.0, 1e-12)]
    )
    def test_never_above_delta_and_hardly_below(
        self, epsilon: float, delta: float, shares: tuple[float, ...]
    ) -> None:
        found = calibrate_rule(epsilon, delta, shares)
        assert delta * (1 - 1e-5) <= rule_delta(found, epsilon) <= delta
        assert rule_epsilon(found, delta) <= epsilon
        for rule, share in zip(found, shares, strict=True):
            assert rule.e / found[-1].e == pytest.approx(share / shares[-1])
            logs = [math.log1p(-r.delta) for r in (rule, found[-1])]
            assert logs[0] / logs[1] == pytest.approx(share / shares[-1])

    def test_no_neighbour_is_better(self) -> None:
        """The golden choice, α = 10 and half of δ, among others."""
        (found,) = calibrate_rule(1.765, 4.96e-5, (1.0,))
        assert found.median <= 9.04
        assert 8 < found.alpha < 12
        assert 0.4 < found.delta / 4.96e-5 < 0.65

    def test_long_tables_get_coarser_lattices(self) -> None:
        first, _, last = calibrate_rule(1.765, 4.96e-5, SIPS)
        assert first.step_bits < last.step_bits

    @pytest.mark.parametrize("shares", [(), (0.0,), (1.0, -1.0), (math.inf,), (math.nan,)])
    def test_bad_shares(self, shares: tuple[float, ...]) -> None:
        with pytest.raises(UsageError, match="shares must be positive"):
            calibrate_rule(1.0, 1e-5, shares)

    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(0.0, 1e-5), (1.0, 0.0), (1.0, 1.0), (1e-3, 1e-5)]
    )
    def test_bad_budgets(self, epsilon: float, delta: float) -> None:
        with pytest.raises(UsageError, match="must be"):
            calibrate_rule(epsilon, delta, (1.0,))
