"""Budgets and conversions: exact sums, the paper's tables; witnesses: mpmath, dp-accounting."""

import itertools
import math
import subprocess
import sys
from fractions import Fraction
from typing import Any, cast, get_args

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dp_sips.errors import UsageError
from dp_sips.privacy.budget import (
    Accounting,
    Budget,
    calibrate,
    check_delta,
    check_epsilon,
    check_rho,
    compose,
    gaussian_delta,
    zcdp_alpha,
    zcdp_delta,
)
from dp_sips.privacy.threshold import threshold

ACCOUNTINGS: tuple[Accounting, ...] = get_args(Accounting)

accountings = st.sampled_from(ACCOUNTINGS)
# Spread over orders of magnitude, where plain floats would crowd around one.
epsilons = st.floats(math.log(0.01), math.log(20)).map(math.exp)
deltas = st.floats(math.log(1e-15), math.log(0.1)).map(math.exp)
rhos = st.floats(math.log(1e-6), math.log(50)).map(math.exp)
parts = st.floats(0.01, 0.99)
budgets = st.builds(Budget, rhos, deltas)
shares = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8)


def exact_gaussian_delta(epsilon: float, mu: float) -> Any:
    """δ_G as it is defined, with digits to spare for the cancellation."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def exact_zcdp_delta(epsilon: float, rho: float, alpha: float) -> Any:
    with mpmath.workdps(60):
        e, r, a = mpmath.mpf(epsilon), mpmath.mpf(rho), mpmath.mpf(alpha)
        return mpmath.exp((a - 1) * (a * r - e)) / (a - 1) * (1 - 1 / a) ** a


def mu_of(epsilon: float, delta: float) -> float:
    """The μ whose curve passes near (ε, δ)."""
    return math.sqrt(2 * Budget.from_epsilon(epsilon, 2 * delta, threshold_delta=delta).rho)


class TestGaussianDelta:
    @pytest.mark.parametrize("epsilon", [0.01, 0.03, 0.1, 0.5, 1, 3, 10, 20])
    @pytest.mark.parametrize("delta", [1e-15, 1e-12, 1e-9, 1e-6, 0.01, 0.1])
    def test_is_just_above_the_true_value(self, epsilon: float, delta: float) -> None:
        mu = mu_of(epsilon, delta)
        true = exact_gaussian_delta(epsilon, mu)
        assert true <= gaussian_delta(epsilon, mu) <= true * (1 + 1e-8)

    @given(epsilons, st.floats(-7, 4).map(math.exp))
    @settings(max_examples=200, deadline=None)
    def test_never_below_the_true_value(self, epsilon: float, mu: float) -> None:
        computed = gaussian_delta(epsilon, mu)
        assume(computed > sys.float_info.min)
        assert exact_gaussian_delta(epsilon, mu) <= computed

    @pytest.mark.parametrize("mu", [1e-150, 1e-9, 1e9, 1e150, math.inf])
    @pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e9])
    def test_extremes_are_probabilities(self, epsilon: float, mu: float) -> None:
        assert 0 <= gaussian_delta(epsilon, mu) <= 1

    @given(epsilons, rhos)
    def test_no_greater_than_the_zcdp_bound(self, epsilon: float, rho: float) -> None:
        assert gaussian_delta(epsilon, math.sqrt(2 * rho)) <= zcdp_delta(epsilon, rho) * (1 + 1e-9)

    @pytest.mark.parametrize("sigma", [0.3, 1.0, 2.2361, 30.0])
    @pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
    def test_agrees_with_dp_accounting(self, sigma: float, delta: float) -> None:
        epsilon = dp_accounting.get_epsilon_gaussian(sigma, delta)
        assert gaussian_delta(epsilon, 1 / sigma) == pytest.approx(delta, rel=1e-6)


class TestZcdpDelta:
    @given(epsilons, rhos)
    @settings(max_examples=200, deadline=None)
    def test_is_the_infimum_rounded_up(self, epsilon: float, rho: float) -> None:
        computed = zcdp_delta(epsilon, rho)
        assume(sys.float_info.min < computed < 1)
        beta = zcdp_alpha(epsilon, rho) - 1
        assume(beta > 1e-3)  # nearer to one, α itself has too few digits to recompute from
        around = [1 + beta * f for f in (0.5, 0.9, 0.999, 1.001, 1.1, 2)]
        assert computed <= min(exact_zcdp_delta(epsilon, rho, alpha) for alpha in around)
        best = exact_zcdp_delta(epsilon, rho, 1 + beta)
        assert best * (1 - 1e-12) <= computed <= best * (1 + 1e-9)

    def test_rounding_covers_the_formula_at_its_own_alpha(self) -> None:
        for epsilon, rho in itertools.product([0.01, 0.1, 1, 5, 20], [1e-6, 1e-4, 0.01, 0.1, 1]):
            true = exact_zcdp_delta(epsilon, rho, zcdp_alpha(epsilon, rho))
            if true > sys.float_info.min:
                assert true <= zcdp_delta(epsilon, rho)

    @pytest.mark.parametrize("rho", [1e-320, 1e-9, 800.0, 1e9, 1e300])
    @pytest.mark.parametrize("epsilon", [1e-9, 1.0, 1e9, 1e300])
    def test_extremes_are_probabilities(self, epsilon: float, rho: float) -> None:
        assert 0 <= zcdp_delta(epsilon, rho) <= 1

    @pytest.mark.parametrize("rho", [0.001, 0.1, 1.0])
    @pytest.mark.parametrize("delta", [1e-12, 1e-5])
    def test_dp_accounting_on_a_grid_of_orders_comes_near_from_above(
        self, rho: float, delta: float
    ) -> None:
        epsilon = Budget(rho, 1e-15).epsilon(delta, "zcdp")
        orders = 1 + (zcdp_alpha(epsilon, rho) - 1) * np.geomspace(0.1, 10, 201)
        accountant = rdp.RdpAccountant(orders)
        accountant.compose(dp_accounting.ZCDpEvent(rho))
        ours = zcdp_delta(epsilon, rho)
        assert ours * (1 - 1e-9) <= accountant.get_delta(epsilon) <= ours * 1.02


# ρ, δ_CDP, ε, δ_DP, α of the paper's Tables vary_eps and vary_delta.
VARY_EPS = [
    (0.001, 1e-5, 0.14, 5.00e-5, 77.033),
    (0.005, 1e-5, 0.338, 5.08e-5, 37.037),
    (0.01, 1e-5, 0.495, 4.99e-5, 27.128),
    (0.05, 1e-5, 1.2, 4.99e-5, 13.283),
    (0.1, 1e-5, 1.765, 4.96e-5, 9.86),
    (0.5, 1e-5, 4.41, 4.90e-5, 5.127),
]
VARY_DELTA = [
    (0.005, 1e-9, 0.62, 1.04e-9, 64.073),
    (0.0055, 1e-8, 0.62, 1.02e-8, 58.433),  # printed 58.443: two digits changed places
    (0.006, 1e-7, 0.62, 1.01e-7, 53.732),
    (0.007, 1e-6, 0.62, 1.01e-6, 46.344),  # printed 46.334: likewise
    (0.0083, 1e-5, 0.62, 1.01e-5, 39.398),
    (0.01, 1e-4, 0.62, 1.01e-4, 33.037),
    (0.013, 1e-3, 0.62, 1.01e-3, 25.863),
]


class TestThePapersTables:
    @pytest.mark.parametrize(("rho", "own", "epsilon", "delta", "alpha"), VARY_EPS + VARY_DELTA)
    def test_alpha(
        self, rho: float, own: float, epsilon: float, delta: float, alpha: float
    ) -> None:
        assert own < delta
        assert zcdp_alpha(epsilon, rho) == pytest.approx(alpha, abs=0.0005)

    @pytest.mark.parametrize(("rho", "own", "epsilon", "delta", "alpha"), VARY_EPS)
    def test_delta_of_vary_eps(
        self, rho: float, own: float, epsilon: float, delta: float, alpha: float
    ) -> None:
        assert alpha > 1
        assert Budget(rho, own).delta_at(epsilon, "zcdp") == pytest.approx(delta, rel=0.002)

    @pytest.mark.parametrize(("rho", "own", "epsilon", "delta", "alpha"), VARY_DELTA)
    def test_delta_of_vary_delta(
        self, rho: float, own: float, epsilon: float, delta: float, alpha: float
    ) -> None:
        """δ is printed with three digits, some of them cut off: half a unit is already 0.5 %."""
        assert alpha > 1
        assert Budget(rho, own).delta_at(epsilon, "zcdp") == pytest.approx(delta, rel=0.005)


class TestConversions:
    @given(budgets, epsilons)
    def test_delta_is_the_sum_of_its_parts_rounded_up(self, budget: Budget, epsilon: float) -> None:
        own = Fraction(budget.delta)
        mu = math.sqrt(2 * budget.rho) * (1 + 2.0**-49)  # rounded up, as delta_at does
        gaussian = own + Fraction(gaussian_delta(epsilon, mu))
        corollary_1 = own + (1 - own) * Fraction(zcdp_delta(epsilon, budget.rho))
        exact = budget.delta_at(epsilon, "gaussian")
        assert min(gaussian, Fraction(1)) <= exact <= gaussian * (1 + 1e-9)
        computed = budget.delta_at(epsilon, "zcdp")
        assert min(corollary_1, Fraction(1)) <= computed <= corollary_1 * (1 + 1e-13)

    @given(epsilons, deltas, parts, accountings)
    @settings(max_examples=150, deadline=None)
    def test_from_epsilon_keeps_its_promise_and_wastes_nothing(
        self, epsilon: float, delta: float, part: float, accounting: Accounting
    ) -> None:
        budget = Budget.from_epsilon(
            epsilon, delta, threshold_delta=part * delta, accounting=accounting
        )
        assert budget.delta == part * delta
        assert budget.delta_at(epsilon, accounting) <= delta
        more = Budget(budget.rho * (1 + 1e-9), budget.delta)
        assert more.delta_at(epsilon, accounting) > delta

    @given(budgets, st.floats(1.001, 1e6), accountings)
    @settings(max_examples=150, deadline=None)
    def test_epsilon_keeps_its_promise_and_wastes_nothing(
        self, budget: Budget, factor: float, accounting: Accounting
    ) -> None:
        delta = min(budget.delta * factor, 0.5)
        epsilon = budget.epsilon(delta, accounting)
        assert budget.delta_at(epsilon, accounting) <= delta
        if epsilon > 1e-6:
            assert budget.delta_at(epsilon * (1 - 1e-8), accounting) > delta

    @given(epsilons, deltas, accountings)
    @settings(max_examples=100, deadline=None)
    def test_round_trip(self, epsilon: float, delta: float, accounting: Accounting) -> None:
        budget = Budget.from_epsilon(epsilon, delta, accounting=accounting)
        assert budget.delta == delta / 2
        assert budget.epsilon(delta, accounting) == pytest.approx(epsilon, rel=1e-9)
        assert budget.delta_at(epsilon, accounting) == pytest.approx(delta, rel=1e-9)

    @given(epsilons, deltas)
    @settings(max_examples=50, deadline=None)
    def test_true_delta_of_the_gaussian_accounting(self, epsilon: float, delta: float) -> None:
        budget = Budget.from_epsilon(epsilon, delta)
        with mpmath.workdps(60):
            mu = mpmath.sqrt(2 * mpmath.mpf(budget.rho))
            true = exact_gaussian_delta(epsilon, mu) + mpmath.mpf(budget.delta)
            assert true <= mpmath.mpf(delta)

    @given(epsilons, deltas, parts)
    @settings(max_examples=50, deadline=None)
    def test_the_gaussian_accounting_never_allows_less(
        self, epsilon: float, delta: float, part: float
    ) -> None:
        gaussian, zcdp = (
            Budget.from_epsilon(epsilon, delta, threshold_delta=part * delta, accounting=a)
            for a in ACCOUNTINGS
        )
        assert gaussian.rho >= zcdp.rho

    @given(budgets, epsilons, st.floats(1.01, 3), accountings)
    def test_delta_falls_with_epsilon_and_grows_with_rho(
        self, budget: Budget, epsilon: float, factor: float, accounting: Accounting
    ) -> None:
        here = budget.delta_at(epsilon, accounting)
        assert budget.delta_at(epsilon * factor, accounting) <= here
        assert Budget(budget.rho * factor, budget.delta).delta_at(epsilon, accounting) >= here

    @given(rhos, deltas, st.floats(1.01, 3), accountings)
    @settings(max_examples=50, deadline=None)
    def test_epsilon_grows_with_rho_and_falls_with_delta(
        self, rho: float, own: float, factor: float, accounting: Accounting
    ) -> None:
        small, large = Budget(rho, own), Budget(rho * factor, own)
        assert small.epsilon(2 * own, accounting) <= large.epsilon(2 * own, accounting)
        assert small.epsilon(2 * factor * own, accounting) <= small.epsilon(2 * own, accounting)

    def test_budget_too_small_to_notice(self) -> None:
        assert Budget(1e-20, 1e-6).epsilon(0.5) == 1e-9

    @pytest.mark.parametrize("accounting", ACCOUNTINGS)
    def test_one_float_of_room_is_enough(self, accounting: Accounting) -> None:
        own = 1e-6
        delta = math.nextafter(own, 1)
        epsilon = Budget(0.1, own).epsilon(delta, accounting)
        assert Budget(0.1, own).delta_at(epsilon, accounting) <= delta
        budget = Budget.from_epsilon(1, delta, threshold_delta=own, accounting=accounting)
        assert budget.delta_at(1, accounting) <= delta

    def test_agrees_with_dp_accounting(self) -> None:
        budget = Budget.from_epsilon(1.0, 1e-6, threshold_delta=4e-7, accounting="gaussian")
        sigma = dp_accounting.get_sigma_gaussian(1.0, 6e-7)
        assert 1 / math.sqrt(2 * budget.rho) == pytest.approx(sigma, rel=1e-6)


class TestSplitAndCompose:
    @given(budgets, shares)
    def test_parts_are_never_more_than_the_whole(self, budget: Budget, shares: list[float]) -> None:
        split = budget.split(shares)
        assert math.fsum(part.rho for part in split) <= budget.rho
        assert math.fsum(part.delta for part in split) <= budget.delta
        spent = compose(split)
        assert spent.rho <= budget.rho
        assert spent.delta <= budget.delta

    @given(budgets, shares)
    def test_parts_follow_the_shares(self, budget: Budget, shares: list[float]) -> None:
        for part, share in zip(budget.split(shares), shares, strict=True):
            fraction = share / math.fsum(shares)
            assert part.rho == pytest.approx(budget.rho * fraction, rel=1e-14)
            assert part.delta == pytest.approx(budget.delta * fraction, rel=1e-14)

    @given(st.lists(budgets, min_size=1, max_size=6))
    def test_composition_is_exact_and_rounded_up(self, parts: list[Budget]) -> None:
        spent = compose(parts)
        rho = sum((Fraction(part.rho) for part in parts), Fraction(0))
        delta = 1 - math.prod((1 - Fraction(part.delta) for part in parts), start=Fraction(1))
        assert Fraction(math.nextafter(spent.rho, 0)) < rho <= Fraction(spent.rho)
        assert Fraction(math.nextafter(spent.delta, 0)) < delta <= Fraction(spent.delta)

    def test_tiny_deltas_survive(self) -> None:
        assert compose([Budget(0.1, 1e-15)] * 3).delta == pytest.approx(3e-15, rel=1e-12)

    def test_one_part_is_the_whole(self) -> None:
        assert Budget(0.1, 1e-5).split([7]) == (Budget(0.1, 1e-5),)

    def test_no_shares(self) -> None:
        with pytest.raises(UsageError, match="at least one part, got none"):
            Budget(0.1, 1e-5).split([])

    @pytest.mark.parametrize("share", [0, -1, math.nan, math.inf])
    def test_bad_share(self, share: float) -> None:
        with pytest.raises(UsageError, match=f"share must be positive and finite, got {share}"):
            Budget(0.1, 1e-5).split([1, share])

    def test_nothing_to_compose(self) -> None:
        with pytest.raises(UsageError, match="at least one budget"):
            compose([])


class TestCalibrate:
    def test_golden_value(self) -> None:
        budget = calibrate(1.765, 4.96e-5, lambda part: threshold(part, 100))
        assert budget.rho == pytest.approx(0.1145, abs=1e-4)
        assert budget.delta / 4.96e-5 == pytest.approx(0.38, abs=0.005)

    @pytest.mark.parametrize("accounting", ACCOUNTINGS)
    @pytest.mark.parametrize("max_items", [1, 100, 10**6])
    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(0.01, 1e-15), (1, 1e-6), (3, 0.1), (20, 1e-15)]
    )
    def test_no_other_division_of_delta_is_better(
        self, accounting: Accounting, max_items: int, epsilon: float, delta: float
    ) -> None:
        budget = calibrate(epsilon, delta, lambda part: threshold(part, max_items), accounting)
        assert budget.delta_at(epsilon, accounting) <= delta
        others = [
            Budget.from_epsilon(epsilon, delta, threshold_delta=own, accounting=accounting)
            for own in [
                *np.geomspace(1e-5, 0.9, 40) * delta,
                *(budget.delta * (1 + h) for h in (-0.01, 0.01)),
            ]
        ]
        lowest = min(threshold(other, max_items) for other in others)
        assert threshold(budget, max_items) <= lowest * (1 + 1e-6)

    def test_for_the_last_round_of_sips(self) -> None:
        def last(budget: Budget) -> float:
            return threshold(budget.split([1 / 9, 1 / 3, 1])[-1], 100)

        budget = calibrate(1.765, 4.96e-5, last)
        assert budget.delta_at(1.765, "gaussian") <= 4.96e-5
        assert last(budget) < last(Budget(0.1, 1e-5))


class TestChecks:
    @pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
    def test_numbers_become_floats(self, value: float) -> None:
        for check in (check_rho, check_epsilon, check_delta):
            assert type(check(value)) is float
            assert check(value) == 0.5

    def test_numpy_integers_are_numbers(self) -> None:
        assert check_epsilon(cast("float", np.int64(2))) == 2.0

    def test_a_budget_holds_floats(self) -> None:
        budget = Budget(np.float64(0.5), cast("float", np.float32(0.25)))
        assert repr(budget) == "Budget(rho=0.5, delta=0.25)"

    @pytest.mark.parametrize("delta", [0, 1, 1.5, -1e-6, math.nan, math.inf, np.float64(1.5)])
    def test_delta_out_of_range(self, delta: float) -> None:
        with pytest.raises(UsageError) as error:
            Budget.from_rho(0.1, delta)
        assert str(error.value) == f"delta must be in (0, 1), got {delta}"

    @pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf])
    def test_rho_and_epsilon_out_of_range(self, value: float) -> None:
        with pytest.raises(UsageError, match=f"rho must be positive and finite, got {value}"):
            Budget.from_rho(value, 1e-5)
        with pytest.raises(UsageError, match=f"epsilon must be positive and finite, got {value}"):
            Budget.from_epsilon(value, 1e-5)

    def test_integers_beyond_floats(self) -> None:
        with pytest.raises(UsageError, match="rho must be positive and finite"):
            check_rho(10**400)

    @pytest.mark.parametrize("value", [True, "1e-6", None, 1j, np.True_, [0.5]])
    def test_not_a_number(self, value: Any) -> None:
        for check in (check_rho, check_epsilon, check_delta):
            with pytest.raises(UsageError, match="must be a number, got"):
                check(value)

    def test_delta_must_exceed_the_budgets_own(self) -> None:
        with pytest.raises(UsageError, match=r"delta must be above 1e-05.*got 1e-06"):
            Budget(0.1, 1e-5).epsilon(1e-6)

    @pytest.mark.parametrize("part", [0, 1e-6, 2e-6, -1])
    def test_threshold_delta_must_be_a_part_of_delta(self, part: float) -> None:
        with pytest.raises(
            UsageError, match=rf"threshold_delta must be in \(0, 1e-06\).*got {part}"
        ):
            Budget.from_epsilon(1, 1e-6, threshold_delta=part)

    def test_unknown_accounting(self) -> None:
        with pytest.raises(UsageError, match=r"got 'gausian'; did you mean 'gaussian'\?"):
            Budget(0.1, 1e-5).delta_at(1, cast("Accounting", "gausian"))


def test_scipy_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, dp_sips.privacy.threshold; print('scipy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
