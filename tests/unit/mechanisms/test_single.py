"""The one-item rule against 60 digits: private in exact arithmetic, and hardly below the best."""

from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips.errors import UsageError
from dp_sips.mechanisms import single
from dp_sips.mechanisms.single import SingleRule, _tables
from dp_sips.privacy.decide import toss
from dp_sips.privacy.noise import Key, uniform
from dp_sips.privacy.weights import UNIT

epsilons = st.floats(0.02, 20)
deltas = st.floats(1e-12, 0.6)


def exact_table(epsilon: float, delta: float, size: int) -> list[Any]:
    """Return π(0), π(1), … by the published recursion."""
    grow, own, found = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta), [mpmath.mpf(0)]
    while len(found) < size:
        last = found[-1]
        found.append(min(grow * last + own, 1 - (1 - last - own) / grow, mpmath.mpf(1)))
    return found


def true_chances(rule: SingleRule) -> tuple[list[Any], list[Any]]:
    """Return the exact chance of release of each entry, as `decide` makes it, and of a miss.

    A uniform number in (0, ½) is below `released`; one in (−½, 0) is beyond `missed`.
    """
    half = mpmath.mpf(1) / 2
    hits, misses = [], []
    for released, missed in zip(*_tables(rule.epsilon, rule.delta), strict=True):
        below, beyond = min(mpmath.mpf(released), half), max(half - mpmath.mpf(missed), 0)
        hits.append(below + beyond)
        misses.append((half - below) + min(mpmath.mpf(missed), half))
    return hits, misses


class TestTable:
    @settings(max_examples=60)
    @given(epsilons, deltas)
    def test_neighbours_are_private_in_exact_arithmetic(self, epsilon: float, delta: float) -> None:
        with mpmath.workdps(60):
            grow, own = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
            hits, misses = true_chances(SingleRule(epsilon, delta))
            assert hits[0] == 0
            for n in range(len(hits) - 1):
                assert hits[n] <= hits[n + 1]
                assert hits[n + 1] <= grow * hits[n] + own
                assert misses[n] <= grow * misses[n + 1] + own

    @settings(max_examples=60)
    @given(epsilons, deltas)
    def test_is_never_above_the_best_and_hardly_below(self, epsilon: float, delta: float) -> None:
        with mpmath.workdps(60):
            hits, _ = true_chances(SingleRule(epsilon, delta))
            for found, best in zip(hits, exact_table(epsilon, delta, len(hits)), strict=True):
                assert found <= best
                assert found >= best * (1 - 1e-9)

    def test_a_known_table(self) -> None:
        """π(1) = δ, π(2) = δ(1 + e^ε), as long as the second bound is far."""
        rule = SingleRule(1.0, 1e-5)
        found, _ = rule.odds(np.array([0, 1, 2, 10**6], dtype=np.uint64) * np.uint64(UNIT))
        assert found.tolist() == pytest.approx([0, 1e-5, 1e-5 * (1 + np.e), 1.0], rel=1e-12)

    def test_a_rule_above_the_best_is_caught(self) -> None:
        with mpmath.workdps(60):
            hits, _ = true_chances(SingleRule(1.0, 1e-3))
            grow = mpmath.exp(1)
            assert not all(
                1.001 * more <= grow * less + mpmath.mpf(1e-3) for less, more in pairwise(hits)
            )


class TestRule:
    def test_median(self) -> None:
        rule = SingleRule(1.0, 1e-5)
        n = int(rule.median)
        (below, at), _ = rule.odds(np.array([n - 1, n], dtype=np.uint64) * np.uint64(UNIT))
        assert below < 0.5 <= at

    @pytest.mark.fresh
    def test_decides_as_often_as_it_says(self) -> None:
        """Within 7 deviations: a false alarm of 3e-12 for each of four entries."""
        rule, count = SingleRule(0.7, 1e-2), 200_000
        blocks = np.stack([np.arange(count, dtype=np.uint64)] * 2, axis=1)
        bits = Key.fresh().noise_of_round(0)(blocks)
        for users in (1, 3, int(rule.median), int(rule.median) + 3):
            weights = np.full(count, users * UNIT, dtype=np.uint64)
            chance = rule.odds(weights[:1])[0][0]
            found = int(toss(uniform(bits), *rule.odds(weights)).sum())
            assert abs(found - count * chance) <= 7 * np.sqrt(count * chance * (1 - chance)) + 7

    def test_none_and_all(self) -> None:
        rule, random = SingleRule(1.0, 0.1), np.random.default_rng(1).uniform(-0.5, 0.5, 1000)
        assert not toss(random, *rule.odds(np.zeros(1000, dtype=np.uint64))).any()
        assert toss(random, *rule.odds(np.full(1000, 10**6 * UNIT, dtype=np.uint64))).all()

    def test_extreme_epsilons(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert SingleRule(1e6, 1e-6).median == 2
        monkeypatch.setattr(single, "_LONGEST", 1000)
        with pytest.raises(UsageError, match=r"epsilon is too small .* got 1e-09"):
            SingleRule(1e-9, 1e-12)
