"""The noise of counts: a discrete Gaussian as a function of a Gaussian, and what is calibrated."""

import math
from dataclasses import asdict
from typing import Any

import mpmath
import pytest
from opendp.combinators import make_zCDP_to_approxDP
from opendp.mod import GLOBAL_FEATURES

from dp_sips import UsageError, plan
from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.base import Asked, EpsilonDelta, RhoDelta
from dp_sips.mechanisms.counting import (
    SMOOTHING,
    Counting,
    GivenKeys,
    check_share,
    rounding_cost,
    selection_part,
)
from dp_sips.mechanisms.discrete import measurement
from dp_sips.mechanisms.joint import NOTHING
from dp_sips.privacy.guarantee import Guarantee


def counting_after(name: str, asked: Asked, share: float = 0.5, max_items: int = 10) -> Counting:
    selection = plan(name, **asdict(selection_part(asked, share))).guarantee
    return Counting.within(asked, selection, max_items, share)


def theta(r2: float) -> mpmath.mpf:
    return 2 * mpmath.nsum(lambda k: mpmath.exp(-2 * mpmath.pi**2 * r2 * k**2), [1, mpmath.inf])


class TestSmoothing:
    """The lemma in counting.py, with numbers of twenty digits."""

    @pytest.mark.parametrize(("variance", "n"), [(1.6, 0), (2.5, 1), (4.0, -3), (40.0, 11)])
    def test_odds_agree_as_far_as_is_charged_for(self, variance: float, n: int) -> None:
        with mpmath.workdps(20):
            total = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / (2 * variance)), [-60, 60])
            exact = mpmath.exp(-(mpmath.mpf(n) ** 2) / (2 * variance)) / total
            off = mpmath.log(_by_way_of_a_gaussian(variance, n) / exact)
        assert abs(off) <= rounding_cost(1).loss / 2

    def test_a_sharper_function_of_a_gaussian_would_not_do(self) -> None:
        with mpmath.workdps(20):
            total = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / 5), [-60, 60])
            off = mpmath.log(_by_way_of_a_gaussian(2.5, 0, r2=0.25) * total)
        assert abs(off) > rounding_cost(1).loss / 2

    def test_the_cost_is_that_of_the_bound(self) -> None:
        with mpmath.workdps(20):
            eta = mpmath.log((1 + theta(SMOOTHING)) / (1 - theta(SMOOTHING)))
            assert 2 * 7 * eta <= rounding_cost(7).loss <= 2.5 * 7 * eta
        assert eta < 6e-13
        assert rounding_cost(7).tail == 0


def _by_way_of_a_gaussian(variance: float, n: int, r2: float = SMOOTHING) -> mpmath.mpf:
    """Return the odds of n, rounded at random from a Gaussian of the rest of the variance."""
    rest = mpmath.mpf(variance) - r2

    def joint(y: mpmath.mpf) -> mpmath.mpf:
        at = round(y)
        near = [mpmath.exp(-((k - y) ** 2) / (2 * r2)) for k in range(at - 10, at + 11)]
        density = mpmath.exp(-(y**2) / (2 * rest)) / mpmath.sqrt(2 * mpmath.pi * rest)
        return density * mpmath.exp(-((n - y) ** 2) / (2 * r2)) / mpmath.fsum(near)

    middle = n * rest / variance
    return mpmath.quad(joint, [middle + step for step in range(-12, 13, 6)])


class TestCalibration:
    @pytest.mark.parametrize(
        "name",
        ["auto", *MECHANISMS],
    )
    def test_spends_what_was_asked_and_no_more(self, name: str) -> None:
        spent = counting_after(name, EpsilonDelta(1.5, 1e-5)).guarantee
        assert spent.delta(epsilon=1.5) <= 1e-5
        assert spent.delta(epsilon=1.49) > 0.99e-5

    @pytest.mark.parametrize("name", ["cumulative", "sips", "mad2r"])
    def test_gaussians_compose_better_than_their_epsilons_add(self, name: str) -> None:
        asked = EpsilonDelta(1.0, 1e-6)
        (rho,) = counting_after(name, asked).rhos.values()
        alone = Counting.within(EpsilonDelta(0.5, 0.25e-6), NOTHING, 10, 1.0).rhos[NOTHING]
        assert rho > 2.5 * alone  # that is what would be left of ε₁ + ε₂ and δ₁ + δ₂

    def test_each_path_of_a_look_has_noise_of_its_own(self) -> None:
        deviations = [
            counting.deviation(release, 100)
            for counting in [counting_after("auto", EpsilonDelta(1.0, 1e-6))]
            for release in counting.rhos
        ]
        assert len(deviations) == 4
        assert max(deviations) > 1.5 * min(deviations)

    def test_a_larger_share_has_less_noise(self) -> None:
        rhos = [
            next(iter(counting_after("sips", EpsilonDelta(1, 1e-6), share).rhos.values()))
            for share in (0.2, 0.5, 0.8)
        ]
        assert rhos == sorted(rhos)

    def test_rho_is_split(self) -> None:
        counting = counting_after("sips", RhoDelta(0.1, 1e-6), share=0.25)
        (rho,) = counting.rhos.values()
        assert rho == pytest.approx(0.025)
        assert rho <= 0.025
        assert counting.guarantee.rho <= 0.1
        assert counting.guarantee.threshold_delta <= 1e-6

    def test_given_keys_leave_all_of_it(self) -> None:
        spent = Counting.within(EpsilonDelta(1.0, 1e-6), NOTHING, 4, 1.0)
        assert spent.guarantee.delta(epsilon=1.0) <= 1e-6
        assert spent.guarantee.epsilon(delta=1e-6) == pytest.approx(1.0)
        assert spent.guarantee.epsilon(delta=1e-6, accounting="zcdp") > 1.0
        assert str(spent.guarantee).endswith("-zCDP")

    def test_the_deviation_follows_the_sensitivity(self) -> None:
        counting = Counting(10, NOTHING, {NOTHING: 0.01})
        for keys, norm in ((0, 1), (1, 1), (7, 7), (10, 10), (5000, 10)):
            exact = math.sqrt(norm / 0.02 + SMOOTHING)
            assert exact <= counting.deviation(NOTHING, keys) <= exact * (1 + 1e-12)

    @pytest.mark.parametrize("keys", [1, 3, 100])
    @pytest.mark.fresh
    def test_opendp_agrees_about_rho(self, keys: int) -> None:
        counting = Counting.within(EpsilonDelta(1.0, 1e-6), NOTHING, 5, 1.0)
        rho, norm = counting.rhos[NOTHING], min(keys, 5)
        sigma = counting.deviation(NOTHING, keys)
        assert measurement(sigma).map(math.sqrt(norm)) <= rho
        without_smoothing = math.sqrt(sigma**2 - SMOOTHING)
        assert measurement(without_smoothing).map(math.sqrt(norm)) == pytest.approx(rho)

    @pytest.mark.fresh
    def test_opendps_conversion_to_epsilon_is_looser_and_near(self) -> None:
        counting = Counting.within(EpsilonDelta(1.0, 1e-6), NOTHING, 5, 1.0)
        features = set(GLOBAL_FEATURES)
        GLOBAL_FEATURES.add("contrib")
        try:
            theirs: Any = make_zCDP_to_approxDP(measurement(counting.deviation(NOTHING, 5)))
            assert 1.0 < theirs.map(math.sqrt(5)).epsilon(1e-6) < 1.2
        finally:
            GLOBAL_FEATURES.intersection_update(features)

    def test_a_budget_that_is_too_small_is_refused(self) -> None:
        with pytest.raises(UsageError, match="too small for counts"):
            Counting.within(EpsilonDelta(1e-7, 1e-6), NOTHING, 10, 1.0)

    @pytest.mark.parametrize("most", [0, 1.5, 1 << 20])
    def test_max_items_is_checked(self, most: int) -> None:
        with pytest.raises(UsageError, match="max_items must be"):
            Counting.within(EpsilonDelta(1, 1e-6), NOTHING, most, 1.0)

    @pytest.mark.parametrize("share", [0, 1, -0.1, math.nan])
    def test_share_is_checked(self, share: float) -> None:
        with pytest.raises(UsageError, match=r"share must be in \(0, 1\)"):
            check_share(share)

    def test_others_curves_are_not_guessed(self) -> None:
        class Own(Guarantee):
            """Somebody's guarantee, whose curve nobody knows."""

        with pytest.raises(UsageError, match="choose another mechanism"):
            Counting.within(EpsilonDelta(1, 1e-6), Own(0.1, 1e-7, NOTHING.sampler), 10, 0.5)


def test_given_keys_are_a_mechanism_that_spends_nothing() -> None:
    design = GivenKeys().design(EpsilonDelta(1, 1e-6), 3)
    assert design.rounds == ()
    assert design.guarantee is NOTHING
    assert "given" in GivenKeys().words(design.rounds)
