"""Composition across releases: never below exact small cases, never above simple addition."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips import plan
from dp_sips.mechanisms import composition
from dp_sips.mechanisms.composition import Composition, Grid, Losses, Spending
from dp_sips.mechanisms.joint import CoinAndGaussian, GaussianGuarantee
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.privacy.budget import Budget, gaussian_delta
from dp_sips.privacy.guarantee import Guarantee, SamplerCost

FREE = SamplerCost(0.0, 0.0)
Coins = Sequence[tuple[float, float]]


def coin(epsilon: float, delta: float) -> Spending:
    return Spending(epsilon, delta, None, ((epsilon, delta),))


def gaussian(rho: float, delta: float) -> Spending:
    return Spending.of((Guarantee if delta else GaussianGuarantee)(rho, delta, FREE))


def exact_coins(coins: Coins, epsilon: float) -> float:
    """Return the optimal composition of (ε_i, δ_i)-DP, by all outcomes (Murtagh and Vadhan)."""
    told = 1 - math.prod(1 - delta for _, delta in coins)
    finite = 0.0
    for lies in itertools.product((0, 1), repeat=len(coins)):
        loss = sum(-e if lie else e for (e, _), lie in zip(coins, lies, strict=True))
        chance = math.prod(
            1 / (1 + math.exp(e if lie else -e)) for (e, _), lie in zip(coins, lies, strict=True)
        )
        finite += chance * max(0.0, -math.expm1(epsilon - loss))
    return told + (1 - told) * finite


class TestCoins:
    @pytest.mark.parametrize(
        ("coins", "slack"),
        [
            ([(0.3, 1e-7)] * 5, 1e-6),
            ([(0.3, 0.0)] * 8, 1e-6),
            ([(0.2, 1e-3), (0.5, 1e-2), (0.1, 1e-9)], 1e-6),
            ([(0.31234, 1e-6)] * 6, 0.02),
            ([(0.123, 1e-6), (0.456, 1e-8), (0.0711, 1e-5), (0.9017, 1e-7)], 0.02),
        ],
    )
    def test_are_the_optimal_composition(self, coins: Coins, slack: float) -> None:
        whole = Composition(tuple(coin(*one) for one in coins), 1.0)
        total = sum(epsilon for epsilon, _ in coins)
        for epsilon in (0.01, 0.25, 0.6, 0.9 * total):
            exact = exact_coins(coins, epsilon)
            assert exact <= whole.delta(epsilon) <= exact * (1 + slack) + 1e-12

    def test_a_lost_part_would_be_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Power: leave the infinite losses of one release out, or move losses down by a step."""
        coins, one = [(0.3, 1e-3)] * 3, coin(0.3, 1e-3)
        exact = exact_coins(coins, 0.5)
        plus = Losses.plus

        def forgetful(self: Losses, other: Losses) -> Losses:
            return plus(self, replace(other, infinite=0.0))

        def low(self: Losses, other: Losses) -> Losses:
            moved = plus(self, other)
            return replace(moved, chances=moved.chances[[*range(1, len(moved.chances)), 0]])

        for broken in (forgetful, low):
            monkeypatch.setattr(Losses, "plus", broken)
            assert Composition((one,) * 3, 1.0).delta(0.5) < exact


class TestGaussians:
    def test_are_exact(self) -> None:
        parts = [(0.01, 1e-7), (0.05, 3e-7), (0.002, 1e-9)]
        whole = Composition(tuple(gaussian(*part) for part in parts), 1.0)
        rho, own = (sum(column) for column in zip(*parts, strict=True))
        for epsilon in (0.3, 1.0, 2.0):
            exact = own + gaussian_delta(epsilon, math.sqrt(2 * rho))
            assert exact <= whole.delta(epsilon) <= exact * (1 + 1e-9)

    def test_their_curves_compose_to_nearly_the_same(self) -> None:
        """What is known only by points of its curve is bounded from above, and closely."""
        spent = Guarantee(0.02, 1e-8, FREE)
        points = tuple((0.05 * i, spent.delta(epsilon=0.05 * i)) for i in range(1, 61))
        whole = Composition((Spending(1.0, 1e-3, None, points),) * 4, 1.0)
        for epsilon in (0.5, 1.0, 1.5):
            exact = Budget(0.08, 4e-8).delta_at(epsilon, "gaussian")
            assert exact <= whole.delta(epsilon) <= exact * 1.15

    def test_with_a_coin(self) -> None:
        """The pair whose curve `joint.py` has in closed form."""
        exact = CoinAndGaussian(1.0, 1e-6, FREE, 0.4, 0.03)
        whole = Composition((coin(0.4, 1e-6), gaussian(0.01, 0.0), gaussian(0.02, 0.0)), 1.0)
        for epsilon in (0.2, 0.8, 1.0, 1.4):
            found = exact.exact_delta(epsilon, "gaussian")
            assert found * (1 - 1e-9) <= whole.delta(epsilon) <= found * 1.01


class TestReleases:
    @pytest.mark.parametrize("name", ["sips", "gw", "cumulative", "sips-rule", "auto"])
    def test_one_spends_what_it_says(self, name: str) -> None:
        spent = plan(name, epsilon=0.8, delta=1e-6).guarantee
        whole = Composition((Spending.of(spent),), 2.0)
        assert whole.delta(0.8) <= 1e-6
        assert whole.delta(0.8) == pytest.approx(spent.delta(epsilon=0.8), rel=1e-6)

    def test_more_spend_more_and_less_than_the_sum(self) -> None:
        one = Spending.of(plan("sips", epsilon=0.5, delta=1e-6).guarantee)
        epsilons = [Composition((one,) * n, 3.0).epsilon(1e-5) for n in (1, 2, 4, 8)]
        assert epsilons == sorted(epsilons)
        assert epsilons[-1] < 8 * 0.5 / 2

    def test_nothing_costs_nothing(self) -> None:
        assert Composition((), 1.0).delta(1.0) == 0.0
        assert Composition((), 1.0).epsilon(1e-6) == 0.0

    def test_the_samplers_add_up(self) -> None:
        spent = Guarantee(0.02, 1e-8, SamplerCost(0.01, 1e-9))
        whole = Composition((Spending.of(spent),) * 3, 1.0)
        exact = Budget(0.06, 3e-8).delta_at(1.0 - 0.03, "gaussian") * 1.03 + 3e-9
        assert whole.delta(1.0) == pytest.approx(exact, rel=1e-8)

    @settings(max_examples=15, deadline=None)
    @given(
        st.lists(
            st.one_of(
                st.builds(coin, st.floats(0.01, 1), st.floats(1e-10, 1e-3)),
                st.builds(gaussian, st.floats(1e-4, 0.1), st.floats(1e-10, 1e-3)),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_never_above_addition(self, parts: list[Spending]) -> None:
        epsilon = sum(one.epsilon for one in parts) * (1 + 1e-12)
        whole = Composition(tuple(parts), 1.0)
        assert whole.delta(epsilon) <= sum(one.delta for one in parts) * (1 + 1e-12)

    @settings(max_examples=10, deadline=None)
    @given(st.floats(0.05, 1), st.floats(1e-10, 1e-3), st.floats(0.1, 3))
    def test_a_grid_is_never_below_the_curve(self, pure: float, own: float, reach: float) -> None:
        spent = PointGuarantee.of(pure, own, FREE)
        grid = Grid((3 * reach + 1) / 3000)
        losses = grid.losses(grid.from_points([(pure, spent.delta(epsilon=pure))]))
        for epsilon in (0.1 * pure, 0.77 * pure, pure, 1.3 * pure):
            assert losses.delta(epsilon) >= spent.exact_delta(epsilon, "gaussian") * (1 - 1e-11)

    def test_the_hull_is_below_and_convex(self) -> None:
        x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
        y = np.array([1.0, 0.9, 0.2, 0.15, 0.0])
        corners = composition._hull(x, y)
        assert corners.tolist() == [0, 2, 4]
        assert (np.interp(x, x[corners], y[corners]) <= y + 1e-15).all()


class TestAdaptive:
    def test_adds_up_as_written(self) -> None:
        whole = Composition((coin(0.1, 1e-7),) * 10, 1.0, adaptive=True)
        assert whole.delta(1.0) == pytest.approx(1e-6)
        assert whole.delta(0.999) == 1.0
        assert whole.epsilon(1e-6) == pytest.approx(1.0)

    def test_why_parameters_must_not_depend_on_releases(self) -> None:
        """Choose what comes second by what came first: more is spent than either pair spends."""
        first, second = (1.0, 0.0), (0.1, 0.0)
        spent = exact_coins([first, second], 1.0)
        either: list[list[Any]] = [[first, second], [first, (0.0, spent)]]
        assert all(exact_coins(pair, 1.0) <= spent * (1 + 1e-12) for pair in either)
        # After the truth, the coin; after a lie, what tells all with probability `spent`.
        lie = 1 / (1 + math.e)
        assert spent + lie * spent > 1.2 * spent
