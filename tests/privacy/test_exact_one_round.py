"""The other mechanisms on small universes, without sampling, as test_exact.py does it for SIPS.

Each of them has one round, and given the weights its verdicts are independent coins. The weights
are the reference engine's; the true δ(ε) between neighbours is the hockey-stick divergence.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.privacy.histories import Sets, crowd, verdicts

from dp_sips import Dpsu, Gw, PolicyLaplace, Single, plan
from dp_sips.auditing.divergence import true_delta
from dp_sips.engines.reference import ReferenceContributions
from dp_sips.mechanisms.dpsu import PolicyGaussianRound
from dp_sips.mechanisms.gw import FavouriteRound
from dp_sips.mechanisms.policy_laplace import PolicyLaplaceRound
from dp_sips.mechanisms.turns import Favourite
from dp_sips.privacy.weights import UNIT

EPSILONS = (0.05, 0.3, 1.0, 2.0, 4.0)
ROUNDING = 1e-13
ITEMS = 3
Round = PolicyGaussianRound | PolicyLaplaceRound | FavouriteRound


def coins(sets: Sets, step: Round) -> dict[int, float]:
    """Return the chance of each item, whose users pay in this order."""
    times: Any = [dict.fromkeys(items, 1) for items in sets]
    loaded = ReferenceContributions(sets, times, {}, pa.schema([]))
    pay = loaded.pay_favourites if isinstance(step, FavouriteRound) else loaded.pay_shares
    weights = pay(step.policy, step.max_items)  # type: ignore[arg-type]
    return {item: _chance(step, weights.get((item,), 0)) for item in range(ITEMS)}


def _chance(step: Round, weight: int) -> float:
    if not weight:
        return 0.0
    unit_bits = 0 if isinstance(step, FavouriteRound) else step.policy.unit_bits
    lacks = step.threshold - weight / 2**unit_bits
    if isinstance(step, PolicyGaussianRound):
        return float(ndtr(-lacks / step.sigma))
    tail = math.exp(-abs(lacks) / step.scale) / 2
    return tail if lacks > 0 else 1 - tail


def worst(sets: Sets, step: Any, epsilon: float) -> float:
    """Return the true δ(ε) over all users that can be removed: each has a turn of their own."""
    whole = dict(verdicts(coins(sets, step)))
    return max(
        true_delta(whole, dict(verdicts(coins(sets[:gone] + sets[gone + 1 :], step))), epsilon)
        for gone in range(len(sets))
    )


turns: st.SearchStrategy[Sets] = st.lists(
    st.permutations(range(ITEMS)).flatmap(
        lambda order: st.integers(1, ITEMS).map(lambda most: [(i,) for i in order[:most]])
    ),
    min_size=1,
    max_size=14,
)
mechanisms = st.sampled_from([Dpsu(), Dpsu(0.0), PolicyLaplace(), PolicyLaplace(0.5), Gw(), Gw(0)])
plans = st.builds(
    lambda mechanism, epsilon, delta: plan(
        mechanism, epsilon=epsilon, delta=delta, max_items=ITEMS
    ),
    mechanisms,
    st.floats(0.2, 4),
    st.floats(1e-6, 0.3),
)


class TestPromise:
    @settings(max_examples=150)
    @given(plans, turns)
    def test_every_epsilon(self, made: Any, sets: Sets) -> None:
        for epsilon in (*EPSILONS, made.asked.epsilon):
            promised = made.guarantee.delta(epsilon=epsilon)
            assert worst(sets, made.rounds[0], epsilon) <= promised + ROUNDING

    @settings(max_examples=60)
    @given(plans, st.lists(st.integers(0, 12), min_size=6, max_size=6))
    def test_crowds(self, made: Any, sizes: list[int]) -> None:
        kinds = ((0,), (0, 1), (1, 0), (0, 1, 2), (2,), (2, 0))
        sets = crowd(*zip(kinds, sizes, strict=True)) or crowd(((0,), 1))
        epsilon = made.asked.epsilon
        assert worst(sets, made.rounds[0], epsilon) <= made.asked.delta + ROUNDING


LAPLACE = (PolicyLaplace(), Gw())


class TestTightness:
    """The promise is nearly reached, so that a little less noise or threshold is caught."""

    @staticmethod
    def made(mechanism: Any, items: int = 1) -> Any:
        return plan(mechanism, epsilon=1.0, delta=1e-3, max_items=items)

    @staticmethod
    def worst_of_sizes(step: Any, epsilon: float) -> float:
        return max(worst(crowd(((0,), n)), step, epsilon) for n in range(1, 25))

    @pytest.mark.parametrize("mechanism", LAPLACE)
    def test_all_of_delta_is_the_thresholds(self, mechanism: Any) -> None:
        step = self.made(mechanism).rounds[0]
        assert worst(crowd(((0,), 1)), step, 1.0) == pytest.approx(1e-3, rel=1e-3)

    @pytest.mark.parametrize("mechanism", [*LAPLACE, Dpsu()])
    def test_a_lower_threshold_is_caught(self, mechanism: Any) -> None:
        made = self.made(mechanism)
        step = made.rounds[0]
        broken = replace(step, threshold=step.threshold - 0.05)
        assert worst(crowd(((0,), 1)), broken, 30.0) > made.guarantee.delta(epsilon=30.0)

    @pytest.mark.parametrize("mechanism", [*LAPLACE, Dpsu()])
    def test_less_noise_is_caught(self, mechanism: Any) -> None:
        made = self.made(mechanism)
        step = made.rounds[0]
        name = "sigma" if isinstance(step, PolicyGaussianRound) else "scale"
        broken = replace(step, **{name: 0.8 * getattr(step, name)})
        assert self.worst_of_sizes(step, 1.0) <= 1e-3 + ROUNDING
        assert self.worst_of_sizes(broken, 1.0) > 1e-3

    def test_a_threshold_for_fewer_items_is_caught(self) -> None:
        """Three novel items of a user under a threshold that expects one."""
        sets = crowd(((0, 1, 2), 1))
        for mechanism in (Dpsu(), PolicyLaplace()):
            one, three = self.made(mechanism), self.made(mechanism, 3)
            assert worst(sets, three.rounds[0], 30.0) <= three.guarantee.delta(epsilon=30.0)
            broken = replace(three.rounds[0], threshold=one.rounds[0].threshold - 0.3)
            assert worst(sets, broken, 30.0) > three.guarantee.delta(epsilon=30.0)

    def test_favourites_that_are_paid_twice_are_caught(self) -> None:
        """Weights that count double move by 2."""
        made = self.made(Gw(), 3)
        step = made.rounds[0]
        broken = replace(step, threshold=step.threshold / 2, scale=step.scale / 2)
        assert isinstance(broken.policy, Favourite)
        assert self.worst_of_sizes(broken, 1.0) > 1e-3


class TestSingle:
    """Neighbours have n and n + 1 users of one item: all n are tried."""

    @staticmethod
    def worst(chances: list[float], epsilon: float) -> float:
        releases = [dict(verdicts({0: chance})) for chance in chances]
        return max(true_delta(one, other, epsilon) for one, other in pairwise(releases))

    @staticmethod
    def chances(made: Any, users: int) -> list[float]:
        weights = np.arange(users, dtype=np.uint64) * np.uint64(UNIT)
        found: list[float] = made.rounds[0].coin.odds(weights)[0].tolist()
        return found

    @settings(max_examples=60)
    @given(st.floats(0.05, 5), st.floats(1e-9, 0.4))
    def test_promise(self, epsilon: float, delta: float) -> None:
        made = plan(Single(), epsilon=epsilon, delta=delta)
        chances = self.chances(made, 300)
        for asked in (*EPSILONS, epsilon):
            promised = made.guarantee.delta(epsilon=asked)
            assert self.worst(chances, asked) <= promised + ROUNDING
        assert self.worst(chances, epsilon) == pytest.approx(delta, rel=1e-4)

    @pytest.mark.parametrize("factor", [0.9, 1.1])
    def test_a_table_of_another_epsilon_is_caught(self, factor: float) -> None:
        chances = self.chances(plan(Single(), epsilon=1.0, delta=1e-4), 60)
        assert (self.worst(chances, factor) > 1.01e-4) == (factor < 1)

    def test_no_user_no_release(self) -> None:
        assert self.chances(plan(Single(), epsilon=1.0, delta=1e-4), 1) == [0.0]
