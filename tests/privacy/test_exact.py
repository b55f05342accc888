"""The whole mechanism on a small universe, without sampling: every history and its probability.

The users' sets, their weights and removals are those of the reference engine; only the noise is
replaced by its probabilities (`histories.py`). The true δ(ε) between neighbours is then the
hockey-stick divergence, and it must be within the promise.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.privacy.histories import Sets, crowd, histories, worst_delta

from dp_sips import Guarantee, Sips, WeightedGaussian, plan
from dp_sips.engines.reference import ReferenceContributions
from dp_sips.mechanisms.weighted_gaussian import GaussianRound
from dp_sips.privacy.weights import UNIT

EPSILONS = (0.01, 0.1, 0.3, 1.0, 2.0, 4.0)
# Sums of a few hundred products, each as good as ndtr.
ROUNDING = 1e-13


def chances(sets: Sets, step: GaussianRound) -> dict[Any, float]:
    """Return the chance of each item in a round."""
    loaded = ReferenceContributions(sets, [], {}, pa.schema([]))
    return {
        item: float(ndtr((weight / UNIT - step.threshold) / step.sigma))
        for item, weight in loaded.weigh(step.max_items).items()
    }


worst = partial(worst_delta, chances=chances)


def orders(items: int) -> list[tuple[int, ...]]:
    """Return all sets of up to two of the items, in each order: bounding may choose any."""
    singles = [(i,) for i in range(items)]
    return singles + [(i, j) for i in range(items) for j in range(items) if i != j]


def crowds(items: int, most: int) -> st.SearchStrategy[Sets]:
    """Return users with all kinds of sets, one of them at least."""
    count = st.integers(0, most) | st.just(0)
    counts = st.fixed_dictionaries(dict.fromkeys(orders(items), count))
    return counts.map(lambda found: crowd(*found.items()) or crowd(((0,), 1)))


plans = st.builds(
    lambda mechanism, rho, delta, most: plan(mechanism, rho=rho, delta=delta, max_items=most),
    st.sampled_from([WeightedGaussian(), Sips(2), Sips(2, 1.0), Sips(2, 2.0)]),
    st.floats(0.02, 3),
    st.floats(1e-6, 0.3),
    st.integers(1, 2),
)


class TestPromise:
    @settings(max_examples=400)
    @given(plans, crowds(2, 8))
    def test_two_items(self, made: Any, sets: Sets) -> None:
        for epsilon in EPSILONS:
            assert worst(sets, made.rounds, epsilon) <= made.guarantee.delta(epsilon=epsilon) + (
                ROUNDING
            )

    @settings(max_examples=40)
    @given(plans, crowds(3, 3))
    def test_three_items(self, made: Any, sets: Sets) -> None:
        for epsilon in EPSILONS[::2]:
            assert worst(sets, made.rounds, epsilon) <= made.guarantee.delta(epsilon=epsilon) + (
                ROUNDING
            )

    @settings(max_examples=40)
    @given(crowds(2, 8), st.floats(0.1, 3), st.floats(1e-6, 0.2), st.integers(1, 2))
    def test_epsilon_as_it_was_asked(
        self, sets: Sets, epsilon: float, delta: float, most: int
    ) -> None:
        made = plan(Sips(2), epsilon=epsilon, delta=delta, max_items=most)
        assert worst(sets, made.rounds, epsilon) <= delta + ROUNDING

    @settings(max_examples=40)
    @given(plans, crowds(2, 6))
    def test_the_papers_conversion_as_well(self, made: Any, sets: Sets) -> None:
        for epsilon in EPSILONS:
            promised = made.guarantee.delta(epsilon=epsilon, accounting="zcdp")
            assert worst(sets, made.rounds, epsilon) <= promised + ROUNDING

    @pytest.mark.parametrize("rounds", [1, 2])
    def test_an_item_that_others_hold_but_do_not_count(self, rounds: int) -> None:
        """Bounding leaves the second item of all others out: only the one user gives it weight."""
        sets = crowd(((0, 1), 9), ((1,), 1))
        made = plan(Sips(rounds), rho=0.5, delta=0.05, max_items=1)
        for epsilon in EPSILONS:
            assert worst(sets, made.rounds, epsilon) <= made.guarantee.delta(epsilon=epsilon)


class TestTightness:
    """The promise is nearly reached, so a little less noise or threshold is caught."""

    MADE = plan("weighted-gaussian", rho=0.2, delta=1e-3, max_items=1)
    SETS = staticmethod(lambda n: crowd(((0,), n)))

    def worst_of_sizes(self, rounds: tuple[GaussianRound, ...], epsilon: float) -> float:
        return max(worst(self.SETS(n), rounds, epsilon) for n in range(2, 25))

    def test_a_novel_item_spends_the_thresholds_delta(self) -> None:
        spent = worst(self.SETS(1), self.MADE.rounds, 30.0)
        assert spent == pytest.approx(1e-3, rel=1e-6)

    @pytest.mark.parametrize("epsilon", [0.3, 1.0])
    def test_a_popular_item_spends_the_noises_delta(self, epsilon: float) -> None:
        noise = self.MADE.guarantee.delta(epsilon=epsilon) - 1e-3
        assert 0.8 * noise <= self.worst_of_sizes(self.MADE.rounds, epsilon) <= noise

    def test_less_noise_is_caught(self) -> None:
        broken = tuple(replace(r, sigma=0.8 * r.sigma) for r in self.MADE.rounds)
        assert self.worst_of_sizes(broken, 1.0) > self.MADE.guarantee.delta(epsilon=1.0)

    def test_a_lower_threshold_is_caught(self) -> None:
        broken = tuple(replace(r, threshold=r.threshold - 0.05) for r in self.MADE.rounds)
        assert worst(self.SETS(1), broken, 30.0) > self.MADE.guarantee.delta(epsilon=30.0)

    def test_a_threshold_for_fewer_items_is_caught(self) -> None:
        """Two novel items under a threshold that expects one."""
        sets = crowd(((0, 1), 1))
        two = plan("weighted-gaussian", rho=0.2, delta=1e-3, max_items=2)
        assert worst(sets, two.rounds, 30.0) <= two.guarantee.delta(epsilon=30.0)
        broken = tuple(replace(r, max_items=2) for r in self.MADE.rounds)
        assert worst(sets, broken, 30.0) > self.MADE.guarantee.delta(epsilon=30.0)

    def test_a_round_too_many_is_caught(self) -> None:
        """Two rounds, each with the whole budget."""
        twice = self.MADE.rounds * 2
        assert worst(self.SETS(1), twice, 30.0) > self.MADE.guarantee.delta(epsilon=30.0)
        assert self.worst_of_sizes(twice, 1.0) > self.MADE.guarantee.delta(epsilon=1.0)


def test_probabilities_add_up() -> None:
    made = plan(Sips(2), rho=0.5, delta=0.1, max_items=2)
    found = histories(crowd(((0,), 3), ((0, 1), 2), ((1,), 1)), made.rounds, chances)
    assert sum(found.values()) == pytest.approx(1)
    assert isinstance(made.guarantee, Guarantee)
