"""What counts spend, by exact distributions: of noise alone, and together with a selection."""

import math
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from dp_sips import plan
from dp_sips.mechanisms.base import EpsilonDelta
from dp_sips.mechanisms.counting import Counting, selection_part
from dp_sips.mechanisms.joint import NOTHING
from dp_sips.privacy.arrays import Floats

ASKED = [(1.0, 1e-6, 5), (0.2, 1e-6, 20), (3.0, 1e-5, 1), (6.0, 1e-4, 3)]


def discrete_gaussian(sigma: float) -> Floats:
    """Return the odds of −reach … reach."""
    reach = math.ceil(14 * sigma)
    odds = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2))
    return np.asarray(odds / odds.sum())


def exact_delta(epsilon: float, sigma: float, touched: int) -> float:
    """Return δ(ε) of counts of which an additional user moves some by one.

    The privacy loss is a function of the sum of their noise.
    """
    odds, total = discrete_gaussian(sigma), np.ones(1)
    for _ in range(touched):
        total = np.convolve(total, odds)
    sums = np.arange(len(total)) - len(total) // 2
    losses = (touched + 2 * sums) / (2 * sigma**2)
    return float(total @ np.maximum(0.0, -np.expm1(epsilon - losses)))


def counting(epsilon: float, delta: float, max_items: int) -> tuple[Counting, float]:
    found = Counting.within(EpsilonDelta(epsilon, delta), NOTHING, max_items, 1.0)
    return found, found.deviation(NOTHING, 1000)


class TestCountsAlone:
    @pytest.mark.parametrize(("epsilon", "delta", "max_items"), ASKED)
    def test_spend_no_more_than_asked(self, epsilon: float, delta: float, max_items: int) -> None:
        found, sigma = counting(epsilon, delta, max_items)
        for touched in range(1, max_items + 1):
            assert exact_delta(epsilon, sigma, touched) <= delta
        assert exact_delta(epsilon / 2, sigma, max_items) <= found.guarantee.delta(
            epsilon=epsilon / 2
        )

    @pytest.mark.parametrize(("epsilon", "delta", "max_items"), ASKED[:2])
    def test_spend_nearly_all_of_it(self, epsilon: float, delta: float, max_items: int) -> None:
        _, sigma = counting(epsilon, delta, max_items)
        assert exact_delta(epsilon, sigma, max_items) > 0.8 * delta

    @pytest.mark.parametrize(("epsilon", "delta", "max_items"), ASKED[:2])
    def test_without_the_cap_they_would_spend_more(
        self, epsilon: float, delta: float, max_items: int
    ) -> None:
        _, sigma = counting(epsilon, delta, max_items)
        assert exact_delta(epsilon, sigma, max_items + 1) > delta

    @pytest.mark.parametrize(("epsilon", "delta", "max_items"), ASKED[:3])
    def test_with_less_noise_they_would_spend_more(
        self, epsilon: float, delta: float, max_items: int
    ) -> None:
        _, sigma = counting(epsilon, delta, max_items)
        assert exact_delta(epsilon, 0.7 * sigma, max_items) > delta


def joint_delta(epsilon: float, chances: Floats, sigma: float) -> float:
    """Return δ(ε) of one item's verdict and count, with n users and with n + 1, both ways."""
    odds = discrete_gaussian(sigma)
    worst = 0.0
    for few, many in pairwise(chances.tolist()):
        # Outcomes: nothing, or a count from n − reach to n + 1 + reach.
        without = np.concatenate(([1 - few], few * odds, [0.0]))
        within = np.concatenate(([1 - many, 0.0], many * odds))
        for one, other in ((without, within), (within, without)):
            worst = max(worst, float(np.maximum(0.0, one - math.exp(epsilon) * other).sum()))
    return worst


class Joint:
    """A selection and counts where there is one item, and the chance of each number of users."""

    ASKED = EpsilonDelta(1.0, 1e-5)

    def __init__(self, mechanism: str, share: float = 0.5) -> None:
        part = asdict(selection_part(self.ASKED, share))
        made = plan(mechanism, **part, max_items=1)
        self.counting = Counting.within(self.ASKED, made.guarantee, 1, share)
        self.sigma = self.counting.deviation(made.guarantee, 1)
        self.chances = made.mechanism.chances(made.rounds, np.arange(150.0), 1)
        self.chances[0] = 0.0

    def delta(self, epsilon: float = 1.0, sigma: float | None = None) -> float:
        return joint_delta(epsilon, self.chances, sigma or self.sigma)


class TestSelectionAndCounts:
    @pytest.mark.parametrize(
        "mechanism", ["single", "sips-rule", "weighted-gaussian", "sips", "cumulative"]
    )
    def test_spend_no_more_than_asked(self, mechanism: str) -> None:
        joint = Joint(mechanism)
        assert joint.chances[-1] > 0.99
        assert joint.delta() <= joint.ASKED.delta
        for epsilon in (0.6, 0.9):
            assert joint.delta(epsilon) <= joint.counting.guarantee.delta(epsilon=epsilon)

    @pytest.mark.parametrize("mechanism", ["single", "weighted-gaussian", "cumulative"])
    def test_with_much_less_noise_they_would_spend_more(self, mechanism: str) -> None:
        joint = Joint(mechanism)
        assert joint.delta(sigma=0.6 * joint.sigma) > joint.ASKED.delta

    def test_the_optimal_rule_nearly_meets_the_worst_case_of_coins(self) -> None:
        joint = Joint("single")
        assert joint.delta() > 0.5 * joint.ASKED.delta

    def test_counts_that_ignore_the_selection_would_spend_more(self) -> None:
        _, alone = counting(1.0, 1e-5, 1)
        assert Joint("single").delta(sigma=alone) > Joint.ASKED.delta
