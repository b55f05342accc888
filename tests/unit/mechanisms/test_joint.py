"""Selections and a further Gaussian: the joint curve against others' accountants and exact ones."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, stats

from dp_sips import UsageError, plan
from dp_sips.mechanisms.auto import LookGuarantee
from dp_sips.mechanisms.joint import CoinAndGaussian, joined, paths_of, release_of, whole_of
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.privacy.budget import Budget, gaussian_delta
from dp_sips.privacy.guarantee import Guarantee, SamplerCost

FREE = SamplerCost(0.0, 0.0)


def coin_and_gaussian(epsilon: float, delta: float, rho: float) -> Guarantee:
    return joined(PointGuarantee.of(epsilon, delta, FREE), rho, FREE)


class TestCoins:
    @pytest.mark.parametrize(
        ("pure", "own", "rho"), [(0.5, 7e-7, 0.007), (1.0, 1e-5, 0.02), (0.1, 1e-6, 0.3)]
    )
    @pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.0, 2.5])
    def test_the_curve_is_that_of_the_pair(
        self, *, pure: float, own: float, rho: float, epsilon: float
    ) -> None:
        """The hockey-stick divergence of truthful answers and a Gaussian, by quadrature."""
        mu = math.sqrt(2 * rho)

        def beyond(x: float) -> float:
            total = 0.0
            for chance, other in ((1.0, -pure), (0.0, pure)):
                told = 1 / (1 + math.exp(-pure))
                mine = told if chance else 1 - told
                theirs = mine * math.exp(other)
                gap = mine * stats.norm.pdf(x - mu) - math.exp(epsilon) * theirs * stats.norm.pdf(x)
                total += max(0.0, gap)
            return total

        kinks = [(epsilon + sign * pure) / mu + mu / 2 for sign in (-1, 1)]
        edges = [-30.0, *kinks, 30.0 + mu]
        spare = sum(
            integrate.quad(beyond, low, high, epsabs=1e-15, limit=400)[0]
            for low, high in pairwise(edges)
        )
        exact = own + (1 - own) * spare
        found = coin_and_gaussian(pure, own, rho).delta(epsilon=epsilon)
        assert found == pytest.approx(exact, rel=1e-6, abs=1e-13)

    @pytest.mark.parametrize("epsilon", [0.3, 0.8, 1.2])
    def test_google_agrees(self, epsilon: float) -> None:
        pure, own, rho = 0.5, 7e-7, 0.007
        sigma = 1 / math.sqrt(2 * rho)
        coin = pld.common.DifferentialPrivacyParameters(pure, own)
        steps = {"value_discretization_interval": 1e-4}
        theirs = (
            pld.from_privacy_parameters(coin, **steps)
            .compose(pld.from_gaussian_mechanism(sigma, **steps))
            .get_delta_for_epsilon(epsilon)
        )
        found = coin_and_gaussian(pure, own, rho).delta(epsilon=epsilon)
        assert theirs * (1 - 1e-3) <= found <= theirs * (1 + 1e-9)

    def test_next_to_nothing_changes_nothing(self) -> None:
        coin = PointGuarantee.of(0.5, 1e-6, FREE)
        for epsilon in (0.2, 0.6):
            joint = joined(coin, 1e-12, FREE).delta(epsilon=epsilon)
            assert joint == pytest.approx(coin.delta(epsilon=epsilon), rel=1e-4, abs=1e-9)

    def test_epsilon_undoes_delta(self) -> None:
        joint = coin_and_gaussian(0.5, 1e-6, 0.01)
        epsilon = joint.epsilon(delta=2e-6)
        assert joint.delta(epsilon=epsilon) <= 2e-6
        assert joint.delta(epsilon=epsilon * 0.999) > 2e-6
        assert joint.epsilon(delta=0.9) < 1e-8

    def test_a_delta_that_is_spent_for_sure_is_refused(self) -> None:
        with pytest.raises(UsageError, match="delta is below"):
            coin_and_gaussian(0.5, 1e-6, 0.01).epsilon(delta=1e-7)

    def test_is_never_better_than_either(self) -> None:
        joint = coin_and_gaussian(0.5, 1e-6, 0.02)
        for epsilon in (0.1, 0.5, 1.0):
            assert joint.delta(epsilon=epsilon) >= gaussian_delta(epsilon, math.sqrt(0.04))
            coin = PointGuarantee.of(0.5, 1e-6, FREE)
            assert joint.delta(epsilon=epsilon) >= coin.delta(epsilon=epsilon)


class TestGaussianRounds:
    def test_rho_adds_up_on_the_exact_curve(self) -> None:
        selection = plan("sips", epsilon=0.5, delta=1e-6).guarantee
        joint = joined(selection, 0.02, FREE)
        both = Budget(selection.rho + 0.02, selection.threshold_delta)
        assert joint.exact_delta(1.0, "gaussian") == pytest.approx(both.delta_at(1.0, "gaussian"))
        assert joint.exact_delta(1.0, "gaussian") >= both.delta_at(1.0, "gaussian") * (1 - 1e-15)

    def test_samplers_costs_add_up(self) -> None:
        selection = plan("sips", epsilon=0.5, delta=1e-6).guarantee
        cost = joined(selection, 0.02, SamplerCost(1e-4, 1e-9)).sampler
        assert cost.loss == selection.sampler.loss + 1e-4
        assert cost.tail == selection.sampler.tail + 1e-9


class TestEvidence:
    SELECTION = plan("cumulative", epsilon=0.5, delta=1e-6, max_items=50).guarantee

    def test_nothing_more_changes_nothing(self) -> None:
        joint = joined(self.SELECTION, 1e-300, FREE)
        for epsilon in (0.3, 0.5, 1.0):
            exact = self.SELECTION.exact_delta(epsilon, "gaussian")
            assert joint.exact_delta(epsilon, "gaussian") == pytest.approx(exact, rel=1e-9)

    @pytest.mark.parametrize("rho", [0.001, 0.02, 0.3])
    def test_lies_between_the_gaussian_alone_and_all_of_both(self, rho: float) -> None:
        joint = joined(self.SELECTION, rho, FREE).exact_delta(1.0, "gaussian")
        whole = Budget(self.SELECTION.rho + rho, self.SELECTION.threshold_delta)
        assert gaussian_delta(1.0, math.sqrt(2 * rho)) <= joint <= whole.delta_at(1.0, "gaussian")

    def test_a_user_cannot_use_both_parts_of_delta_up(self) -> None:
        """What joint accounting is worth: thresholds and noise do not share δ."""
        joint = joined(self.SELECTION, 0.02, FREE).exact_delta(1.0, "gaussian")
        whole = Budget(self.SELECTION.rho + 0.02, self.SELECTION.threshold_delta)
        assert joint < 0.95 * whole.delta_at(1.0, "gaussian")

    def test_zcdp_adds_up(self) -> None:
        joint = joined(self.SELECTION, 0.02, FREE)
        assert joint.rho >= self.SELECTION.rho + 0.02
        assert joint.exact_delta(1.0, "zcdp") > joint.exact_delta(1.0, "gaussian")
        assert joint.exact_epsilon(2e-6, "zcdp") > joint.exact_epsilon(2e-6, "gaussian")


class TestRules:
    SELECTION = plan("sips-rule", epsilon=0.5, delta=1e-6).guarantee

    def test_divergences_add_up(self) -> None:
        rules = self.SELECTION.rules  # type: ignore[attr-defined]
        alpha, rho = rules[0].alpha, 0.01
        e = sum(rule.e for rule in rules) + alpha * rho
        own = 1 - math.prod(1 - rule.delta for rule in rules)
        tail = math.exp((alpha - 1) * (e - 1)) / (alpha - 1) * (1 - 1 / alpha) ** alpha
        joint = joined(self.SELECTION, rho, FREE)
        assert joint.exact_delta(1.0, "gaussian") == pytest.approx(own + (1 - own) * tail)
        assert joint.exact_delta(joint.exact_epsilon(1e-6, "zcdp"), "zcdp") <= 1e-6

    def test_it_beats_what_any_coins_would_spend(self) -> None:
        as_coins = coin_and_gaussian(0.5, 1e-6, 0.01).exact_delta(1.0, "gaussian")
        assert joined(self.SELECTION, 0.01, FREE).exact_delta(1.0, "gaussian") < as_coins


class TestLooks:
    SELECTION = plan("auto", epsilon=0.5, delta=1e-6).guarantee

    def test_the_curve_is_the_worst_paths(self) -> None:
        paths = [joined(path, 0.005, FREE) for path in paths_of(self.SELECTION)]
        whole = whole_of(paths)
        assert isinstance(whole, LookGuarantee)
        assert whole.delta(epsilon=1.0) == max(path.delta(epsilon=1.0) for path in paths)

    def test_the_looks_epsilon_is_added(self) -> None:
        for path in paths_of(self.SELECTION):
            joint, release = joined(path, 0.005, FREE), joined(release_of(path), 0.005, FREE)
            look = path.look  # type: ignore[attr-defined]
            assert joint.exact_delta(1.0 + look, "gaussian") == pytest.approx(
                release.exact_delta(1.0, "gaussian"), rel=1e-9
            )

    def test_without_a_look_there_is_one_path(self) -> None:
        selection = plan("matching", epsilon=0.5, delta=1e-6).guarantee
        assert paths_of(selection) == (selection,)
        assert release_of(selection) is selection
        assert whole_of([selection]) is selection


def test_a_smaller_mu_would_be_found_out() -> None:
    """Power: the pair with an eighth less noise is not within what is stated."""
    stated = coin_and_gaussian(0.5, 1e-6, 0.01)
    assert isinstance(stated, CoinAndGaussian)
    louder = replace(stated, more=0.01 * (8 / 7) ** 2)
    assert louder.delta(epsilon=1.0) > 1.1 * stated.delta(epsilon=1.0)
