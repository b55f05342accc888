"""MAD's lemma on random neighbours: one user more moves the weights by an L2 norm of at most 1.

The same check must reject weightings that are broken on purpose: a test that cannot fail shows
nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips.mechanisms.adaptive import (
    WIDE_BITS,
    Spread,
    bias_edges,
    cells,
    sensitivity,
)
from dp_sips.privacy.arrays import Integers, Weights

SETTINGS = settings(max_examples=150, deadline=None)


@dataclass(frozen=True)
class World:
    """Users' sets, and the evidence of each item."""

    sets: list[list[int]]
    evidence: np.ndarray

    def weights(self, spread: Spread) -> np.ndarray:
        """Return the weight of each item, in whole budgets."""
        sizes = np.array([len(one) for one in self.sets])
        items = np.array([item for one in self.sets for item in one], dtype=np.int64)
        initial = self._sums(items, spread.first(sizes, np.zeros(len(items), np.int64)))
        signals = spread.signal(initial, self.evidence)
        final = self._sums(items, spread.second(sizes, signals[items]))
        return np.asarray(final / 2.0**WIDE_BITS)

    def _sums(self, items: Integers, given: Weights) -> Weights:
        sums = np.zeros(len(self.evidence), dtype=np.uint64)
        np.add.at(sums, items, given)
        return sums


def move(spread: Spread, world: World, newcomer: list[int]) -> float:
    """Return how far a new user moves the weights."""
    after = replace(world, sets=[*world.sets, newcomer])
    return float(np.linalg.norm(after.weights(spread) - world.weights(spread)))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Spread, World, list[int]]:
    """A crowd that makes some items popular, a few other users, and one more."""
    items = draw(st.integers(4, 40))
    largest = draw(st.integers(2, 30))
    lowest = draw(st.sampled_from([1.0, 0.75, 0.5, 0.3]))
    highest = 1.0 if lowest == 1 else draw(st.sampled_from([1.0, 1.5, 2.0, 4.0]))
    target = draw(st.floats(1, 40))
    edges = () if lowest == 1 else bias_edges(1.0, 3.0, lowest)
    spread = Spread(target, largest, lowest, highest, edges)
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    crowd = [
        random.choice(items, size=random.integers(1, min(items, largest + 3) + 1), replace=False)
        for _ in range(draw(st.integers(1, 60)))
    ]
    popular = list(range(draw(st.integers(1, min(items, largest)))))
    sets = [one.tolist() for one in crowd] + [popular] * draw(st.integers(0, 200))
    newcomer = draw(st.sets(st.integers(0, items - 1), min_size=1, max_size=min(items, 34)))
    evidence = random.uniform(0, 10, items) if edges else np.zeros(items)
    return spread, World(sets, evidence), sorted(newcomer)


@SETTINGS
@given(worlds())
def test_one_user_moves_the_weights_by_at_most_1(drawn: tuple[Spread, World, list[int]]) -> None:
    spread, world, newcomer = drawn
    assert move(spread, world, newcomer) <= sensitivity(spread.largest)


@SETTINGS
@given(worlds())
def test_what_only_one_user_holds_is_bounded(drawn: tuple[Spread, World, list[int]]) -> None:
    """Of t such items each weighs at most b_max/√t, and every item of everybody has weight."""
    spread, world, newcomer = drawn
    after = replace(world, sets=[*world.sets, newcomer])
    weights = after.weights(spread)
    novel = set(newcomer) - {item for one in world.sets for item in one}
    bound = spread.highest / math.sqrt(max(1, len(novel)))
    assert all(weights[item] <= bound * (1 + 1e-9) for item in novel)
    assert all(weights[item] > 0 for one in after.sets for item in one)


@SETTINGS
@given(worlds())
def test_own_weights_meet_the_lemma(drawn: tuple[Spread, World, list[int]]) -> None:
    """Norm 1, where b_max allows it, and never more; each between b_min/√d and b_max/√d."""
    spread, world, newcomer = drawn
    levels = 8 - np.searchsorted(spread.edges, world.evidence[newcomer], side="right")
    size = np.array([len(newcomer)])
    own = spread._own(size, levels, np.zeros(len(newcomer), dtype=np.int64))
    root = math.sqrt(len(newcomer))
    norm = float(own @ own)
    assert norm <= 1
    assert (own >= spread.lowest / root * (1 - 1e-9)).all()
    assert (own <= spread.highest / root * (1 + 1e-9)).all()
    if spread.highest >= 1:
        assert norm == pytest.approx(1)


class ReturnsTooMuch(Spread):
    """Gives back half as much again as the lemma allows."""

    @property
    def returned(self) -> float:
        return 1.5 * super().returned


class LosesNothing(Spread):
    """Adds the bonus, but takes nothing from popular items."""

    def second(self, sizes: Integers, signals: Integers) -> Weights:
        kept = super().second(sizes, signals & 15)
        return kept + (super().second(sizes, signals) if signals.any() else kept * np.uint64(0))


class TooHeavy(Spread):
    """Own weights of a norm above 1."""

    def _own(self, sizes: Integers, levels: Integers, users: Integers) -> Any:
        return super()._own(sizes, levels, users) * 1.05


@pytest.mark.parametrize("broken", [ReturnsTooMuch, LosesNothing, TooHeavy])
def test_a_broken_weighting_is_caught(broken: Callable[..., Spread]) -> None:
    """Where all hold the same popular items, what a user adds comes back to where it was taken."""
    largest = 16
    everybody = list(range(largest))
    world = World([everybody] * 400, np.zeros(largest))
    assert move(Spread(10.0, largest), world, everybody) <= sensitivity(largest)
    assert move(broken(10.0, largest), world, everybody) > sensitivity(largest) + 0.01


def test_edges_are_where_the_bias_falls() -> None:
    edges = bias_edges(2.0, 7.0, 0.5)
    assert len(edges) == 4
    for edge, eighths in zip(edges, (7, 6, 5, 4), strict=True):
        assert 7.0 / (edge - 2.0) == pytest.approx(eighths / 8)
    assert bias_edges(2.0, 7.0, 1.0) == ()


@given(
    st.lists(st.floats(-50, 50), min_size=2, max_size=6, unique=True),
    st.floats(0.5, 20),
    st.floats(-60, 60),
)
def test_intervals_have_enough_odds(levels: list[float], sigma: float, weight: float) -> None:
    """Each interval's odds are at least 2/cells times the smaller of the tails around it."""
    from scipy.special import ndtr

    factor = cells(levels, sigma)
    for low, high in pairwise(sorted(levels)):
        width = min((high - low) / sigma, 1.0)
        if width < 1e-6:
            continue
        a, b = (low - weight) / sigma, (high - weight) / sigma
        if min(abs(a), abs(b)) > 30:
            continue
        odds = ndtr(b) - ndtr(a) if a < 0 else ndtr(-a) - ndtr(-b)
        tail = min(ndtr(-a), ndtr(b))
        assert odds >= 2 / factor * tail * (1 - 1e-6)
