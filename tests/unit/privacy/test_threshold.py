"""The threshold against the paper's numbers, every k, and the probability it has to bound."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri_exp

from dp_sips.errors import UsageError
from dp_sips.privacy.budget import Budget
from dp_sips.privacy.threshold import sigma, threshold
from dp_sips.validation import check_whole

budgets = st.builds(
    Budget,
    st.floats(math.log(1e-6), math.log(1e4)).map(math.exp),
    st.floats(math.log(1e-15), math.log(0.1)).map(math.exp) | st.floats(0.1, 0.999),
)
max_items = st.integers(1, 1000) | st.sampled_from([10**4, 10**5, 10**6])


def thresholds_of_every_k(budget: Budget, most: int) -> Any:
    k = np.arange(1, most + 1)
    return 1 / np.sqrt(k) + sigma(budget) * ndtri_exp(np.log1p(-budget.delta) / k)


def probability_that_one_crosses(budget: Budget, crossed: float, items: int) -> Any:
    """P[some of k items of weight 1/√k with N(0, σ²) reaches T], with 60 digits."""
    with mpmath.workdps(60):
        weight = 1 / mpmath.sqrt(items)
        q = mpmath.ncdf((weight - mpmath.mpf(crossed)) / mpmath.mpf(sigma(budget)))
        return -mpmath.expm1(items * mpmath.log1p(-q))


class TestGoldenValues:
    def test_weighted_gaussian(self) -> None:
        budget = Budget(0.1, 1e-5)
        assert sigma(budget) == pytest.approx(2.2361, abs=5e-5)
        assert threshold(budget, 100) == pytest.approx(11.7261, abs=5e-5)

    def test_sips(self) -> None:
        rounds = Budget(0.1, 1e-5).split([1 / 9, 1 / 3, 1])
        found = [threshold(part, 100) for part in rounds]
        assert found == pytest.approx([45.7100, 25.5406, 14.2554], abs=5e-5)


class TestSigma:
    @given(budgets)
    def test_is_just_above_its_exact_value(self, budget: Budget) -> None:
        spent = 2 * Fraction(budget.rho) * Fraction(sigma(budget)) ** 2
        assert 1 <= spent <= 1 + Fraction(1, 10**14)

    @pytest.mark.parametrize("rho", [1e-307, 1e-300, 1e300, 1.7e308])
    def test_extreme_rho(self, rho: float) -> None:
        spent = 2 * Fraction(rho) * Fraction(sigma(Budget(rho, 0.5))) ** 2
        assert 1 <= spent <= 1 + Fraction(1, 10**10)


class TestThreshold:
    @given(budgets, st.integers(1, 3000))
    @settings(deadline=None)
    def test_is_the_maximum_over_every_k(self, budget: Budget, most: int) -> None:
        highest = float(thresholds_of_every_k(budget, most).max())
        room = 1e-11 * (1 + sigma(budget))
        assert highest <= threshold(budget, most) <= highest + room

    @pytest.mark.parametrize("rho", [0.001, 0.1, 10.0, 1000.0])
    @pytest.mark.parametrize("delta", [1e-15, 1e-5, 0.1])
    def test_is_the_maximum_over_a_million(self, rho: float, delta: float) -> None:
        budget = Budget(rho, delta)
        highest = float(thresholds_of_every_k(budget, 10**6).max())
        assert highest <= threshold(budget, 10**6) <= highest * (1 + 1e-12)

    @given(budgets, max_items, st.floats(0, 1))
    @settings(max_examples=200, deadline=None)
    def test_a_lone_user_crosses_with_probability_at_most_delta(
        self, budget: Budget, most: int, where: float
    ) -> None:
        crossed = threshold(budget, most)
        for items in {1, most, math.ceil(most**where)}:
            assert probability_that_one_crosses(budget, crossed, items) <= budget.delta

    @given(budgets, max_items)
    @settings(max_examples=100, deadline=None)
    def test_no_higher_than_it_must_be(self, budget: Budget, most: int) -> None:
        lower = threshold(budget, most) - 1e-9 * (1 + 10 * sigma(budget))
        crossing = [probability_that_one_crosses(budget, lower, items) for items in (1, most)]
        assert max(crossing) > budget.delta

    @given(budgets, max_items, st.floats(1.01, 10))
    def test_monotone(self, budget: Budget, most: int, factor: float) -> None:
        here = threshold(budget, most)
        assert threshold(budget, most + 1) >= here
        more = 1 - (1 - budget.delta) / factor
        assert threshold(Budget(budget.rho, more), most) < here

    @given(st.floats(1e-6, 1e3), st.floats(1e-15, 0.49), max_items, st.floats(1.01, 10))
    def test_falls_with_rho(self, rho: float, delta: float, most: int, factor: float) -> None:
        # Below δ = ½ every quantile is positive; beyond it more noise makes a crossing rarer.
        assert threshold(Budget(rho * factor, delta), most) < threshold(Budget(rho, delta), most)

    def test_a_delta_that_underflows_releases_nothing(self) -> None:
        assert threshold(Budget(0.1, 5e-324), 10**6) == math.inf


class TestLemma:
    """The inequality of the module's proof: A(z) = −log Φ(z) (1 + z Φ(z)/φ(z)) ≥ ½."""

    @staticmethod
    def a(z: Any) -> Any:
        phi = mpmath.ncdf(z)
        u = -mpmath.log1p(-mpmath.ncdf(-z)) if z > 0 else -mpmath.log(phi)
        return u * (1 + z * phi / mpmath.npdf(z))

    def test_on_a_grid(self) -> None:
        with mpmath.workdps(100):
            assert min(self.a(mpmath.mpf(i) / 20) for i in range(-600, 400)) > 0.5

    def test_constants(self) -> None:
        q1, q14 = mpmath.ncdf(-1), mpmath.ncdf(mpmath.mpf("-1.4"))
        assert 0.797 < 2 * mpmath.npdf(0) < 1
        assert -mpmath.log(q1) - mpmath.npdf(1) / q1 > 0.315
        assert mpmath.npdf(1) / q1 > 1.525
        assert q14 / mpmath.npdf(1.4) < 0.55
        assert mpmath.log(mpmath.sqrt(2 * mpmath.pi)) - mpmath.log(0.55) > 1.5
        # The tangents' quadratics are concave, so they are positive between positive ends.
        for ends, at_zero, slope in (((0, 0.8), 0.693, 0.797), ((0.3, 1.4), 0.315, 1.525)):
            assert all(4 * (at_zero + slope * x) > x * x + 2 + 3.16 * x for x in ends)


class TestMaxItems:
    @pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None, math.inf])
    def test_refused(self, value: Any) -> None:
        with pytest.raises(UsageError, match="max_items must be a whole number of at least 1, got"):
            threshold(Budget(0.1, 1e-5), value)

    def test_numpy_integers_are_whole_numbers(self) -> None:
        assert type(check_whole("max_items", np.int32(7))) is int
