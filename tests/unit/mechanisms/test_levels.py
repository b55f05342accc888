"""Levels: the composition against exact curves and another accountant, and the split."""

import math

import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as losses

from dp_sips import UsageError, plan
from dp_sips.mechanisms.base import EpsilonDelta, RhoDelta
from dp_sips.mechanisms.levels import LevelsGuarantee, check_shares, parts_of
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.privacy.budget import Budget, gaussian_delta
from dp_sips.privacy.guarantee import Guarantee, SamplerCost

FREE = SamplerCost(0.0, 0.0)


def gaussian(rho: float, delta: float) -> Guarantee:
    return Guarantee(rho, delta, FREE)


class TestComposition:
    @pytest.mark.parametrize("rhos", [(0.007, 0.02), (0.01, 0.01, 0.01), (0.3, 0.001)])
    def test_of_gaussians_is_that_of_one(self, rhos: tuple[float, ...]) -> None:
        """Thresholds' δ add up, and Gaussians are one Gaussian: an exact curve."""
        own = 1e-7
        whole = Budget(sum(rhos), own).epsilon(1e-6, "gaussian")
        composed = LevelsGuarantee.of([gaussian(rho, own / len(rhos)) for rho in rhos], whole)
        for epsilon in (whole / 3, whole, 1.2 * whole):
            exact = own + gaussian_delta(epsilon, math.sqrt(2 * sum(rhos)))
            assert exact * (1 - 1e-9) <= composed.delta(epsilon=epsilon) <= exact * (1 + 1e-6)

    @pytest.mark.parametrize("epsilon", [0.3, 0.7, 0.9, 0.99, 1.2])
    def test_of_coins_is_that_of_another_accountant(self, epsilon: float) -> None:
        parts = [(0.5, 4e-7), (0.3, 3e-7), (0.15, 2e-7)]
        composed = LevelsGuarantee.of([PointGuarantee.of(*part, FREE) for part in parts], 1.0)
        pairs = [
            losses.from_privacy_parameters(
                common.DifferentialPrivacyParameters(*part), value_discretization_interval=1e-4
            )
            for part in parts
        ]
        other = pairs[0].compose(pairs[1]).compose(pairs[2]).get_delta_for_epsilon(epsilon)
        assert other * 0.99 - 2e-4 <= composed.delta(epsilon=epsilon)
        assert composed.delta(epsilon=epsilon) <= other * 1.01 + 1e-3 * (epsilon < 0.95) + 1e-9

    def test_coins_add_up(self) -> None:
        """Pure ε of levels that lie within what was asked cost no more than the sum of δ."""
        shares = [0.2] * 5
        parts = [
            PointGuarantee.of(part.epsilon, part.delta, FREE)
            for part in parts_of(EpsilonDelta(1.0, 1e-6), shares)
            if isinstance(part, EpsilonDelta)
        ]
        composed = LevelsGuarantee.of(parts, 1.0)
        assert 0.97e-6 < composed.delta(epsilon=1.0) <= 1e-6
        assert composed.delta(epsilon=0.9) > 1e-4

    def test_of_one_curve_is_that_curve(self) -> None:
        for name in ("sips", "cumulative", "matching", "sips-rule"):
            own = plan(name, epsilon=1, delta=1e-6, max_items=100).guarantee
            composed = LevelsGuarantee.of([own], 1.0)
            assert own.delta(epsilon=1.001) <= composed.delta(epsilon=1.001)
            assert composed.delta(epsilon=1.001) <= 1.03 * own.delta(epsilon=1)

    def test_a_part_less_is_less(self) -> None:
        """So that the bounds above would notice a level that is left out."""
        both = LevelsGuarantee.of([gaussian(0.01, 1e-7)] * 2, 1.0).delta(epsilon=0.5)
        assert LevelsGuarantee.of([gaussian(0.01, 1e-7)], 1.0).delta(epsilon=0.5) < both / 4

    def test_epsilon_and_delta_belong_together(self) -> None:
        composed = LevelsGuarantee.of([gaussian(0.01, 1e-7)] * 2, 1.0)
        epsilon = composed.epsilon(delta=1e-6)
        assert composed.delta(epsilon=epsilon) <= 1e-6 < composed.delta(epsilon=epsilon * 0.999)
        assert composed.epsilon(delta=1e-7) == math.inf
        assert composed.epsilon(delta=0.9) == pytest.approx(1e-9)

    def test_the_papers_statement_adds_up(self) -> None:
        composed = LevelsGuarantee.of_budgets([gaussian(0.01, 1e-7), gaussian(0.02, 2e-7)])
        assert composed.rho == pytest.approx(0.03)
        assert composed.threshold_delta == pytest.approx(3e-7)
        assert composed.delta(epsilon=1, accounting="zcdp") >= composed.delta(epsilon=1)
        assert composed.epsilon(delta=1e-6, accounting="zcdp") > 0

    def test_the_sampler_is_paid_for(self) -> None:
        dear = Guarantee(0.01, 1e-7, SamplerCost(0.05, 1e-8))
        free = LevelsGuarantee.of([gaussian(0.01, 1e-7)] * 2, 1.0)
        paid = LevelsGuarantee.of([dear] * 2, 1.0)
        assert paid.delta(epsilon=0.8) > free.delta(epsilon=0.7)


class TestParts:
    def test_shares_add_up(self) -> None:
        assert check_shares([1, 3]) == (0.25, 0.75)
        for bad in ([1], [1] * 17, [1, 0], [1, -1]):
            with pytest.raises(UsageError):
                check_shares(bad)

    def test_parts_of_rho_are_exact(self) -> None:
        parts = parts_of(RhoDelta(0.1, 1e-6), (0.25, 0.75))
        assert [part.delta for part in parts] == pytest.approx([2.5e-7, 7.5e-7])
        assert all(isinstance(part, RhoDelta) for part in parts)

    def test_parts_of_epsilon_are_below(self) -> None:
        parts = parts_of(EpsilonDelta(1.0, 1e-6), (0.5, 0.5))
        assert sum(part.delta for part in parts) < 1e-6
