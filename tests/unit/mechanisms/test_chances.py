"""Chances of release, against closed forms and against releases.

Simulations are exact binomial tests with a false-alarm rate of `ALPHA`; there are eighteen.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import ndtr

from dp_sips import Mad, Mad2R, MemoryEngine, Sips, plan, select_partitions
from dp_sips.mechanisms import Cumulative
from dp_sips.mechanisms.chances import binomial

ALPHA = 1e-8
# Half of a lattice step of 0.005 at each of two levels a round, times the density of a Gaussian.
LATTICE = 2e-3


def simulated(mechanism: Any, users: int, items_per_user: int, copies: int, **options: Any) -> int:
    """Return how many of `copies` popular items are released, each held by `users` users.

    Each of the users has items of its own besides.
    """
    held = np.repeat(np.arange(copies), users)
    holder = np.arange(copies * users)
    own = items_per_user - 1
    data = pa.table(
        {
            "u": np.concatenate([holder, np.repeat(holder, own)]),
            "i": np.concatenate([held, copies + np.arange(own * len(holder))]),
        }
    )
    released = select_partitions(
        data, user="u", item="i", mechanism=mechanism, engine=MemoryEngine(threads=1), **options
    ).items["i"]
    return int((released.to_numpy() < copies).sum())


class TestEvidence:
    OPTIONS: Any = {"rho": 0.5, "delta": 1e-6, "max_items": 10}  # noqa: RUF012

    @pytest.mark.fresh
    @pytest.mark.parametrize("rounds", [1, 3, 17])
    @pytest.mark.parametrize("probability", [0.1, 0.5])
    def test_of_items_that_are_all_their_users_have(self, rounds: int, probability: float) -> None:
        mechanism, copies = Cumulative(rounds=rounds), 4000
        made = plan(mechanism, **self.OPTIONS)
        users = made.users_needed(probability)
        chance = made.release_probability(users)
        found = simulated(mechanism, users, 1, copies, **self.OPTIONS)
        low, high = stats.binomtest(found, copies).proportion_ci(1 - ALPHA)
        assert low - LATTICE <= chance <= high + LATTICE

    @pytest.mark.parametrize("rounds", [3, 17])
    def test_at_least_that_where_other_items_are_dropped(self, rounds: int) -> None:
        mechanism, copies, items = Cumulative(rounds=rounds), 600, 5
        made = plan(mechanism, **self.OPTIONS)
        users = made.users_needed(0.3, items)
        chance = made.release_probability(users, items)
        found = simulated(mechanism, users, items, copies, **self.OPTIONS)
        low, high = stats.binomtest(found, copies).proportion_ci(1 - ALPHA)
        assert chance - LATTICE <= high
        if rounds == 17:
            assert low > chance + 0.2  # dropping is what the mechanism is for

    @pytest.mark.fresh
    def test_users_with_too_many_items(self) -> None:
        """One round: nothing is dropped before the only decision, and the chance is exact."""
        mechanism, copies, items = Cumulative(rounds=1), 1500, 15
        made = plan(mechanism, **self.OPTIONS)
        users = made.users_needed(0.3, items)
        found = simulated(mechanism, users, items, copies, **self.OPTIONS)
        low, high = stats.binomtest(found, copies).proportion_ci(1 - ALPHA)
        assert low - LATTICE <= made.release_probability(users, items) <= high + LATTICE

    @pytest.mark.parametrize("users", [1, 2, 5, 7, 9, 20])
    def test_one_round_is_a_gaussian_tail(self, users: int) -> None:
        made = plan(Cumulative(rounds=1), **self.OPTIONS)
        (step,) = made.table()
        expected = ndtr((users - step["threshold"]) / step["sigma"])
        assert made.release_probability(users) == pytest.approx(expected, abs=LATTICE)

    def test_two_rounds_by_integration(self) -> None:
        """Each of the holders has items that keep their whole claims; the item's own may fall."""
        made = plan(Cumulative(rounds=2, first_drop=0.5), **self.OPTIONS)
        first, second = made.table()
        nodes, weights = np.polynomial.legendre.leggauss(100)
        for items, users in [(1, 1), (1, 4), (1, 6), (1, 8), (5, 10), (5, 16), (5, 24)]:
            whole = users / math.sqrt(items)
            exact = float(ndtr((whole - first["threshold"]) / first["sigma"]))
            borders = [*first["edges"], first["threshold"]]
            for side, (low, high) in zip((1 / 4, 1 / 2, 3 / 4, 1), pairwise(borders), strict=True):
                seen = low + (nodes + 1) * (high - low) / 2
                density = stats.norm.pdf(seen, whole, first["sigma"]) * weights * (high - low) / 2
                given = users * side / math.sqrt(side**2 + items - 1)
                total = first["count"] * seen + second["count"] * given
                needed = second["threshold"] * second["counted"] - total
                exact += density @ ndtr(-needed / (second["count"] * second["sigma"]))
            assert made.release_probability(users, items) == pytest.approx(exact, abs=LATTICE)

    def test_grow_with_weight(self) -> None:
        made = plan(Cumulative(), **self.OPTIONS)
        found = [made.release_probability(users, 4) for users in range(1, 51, 4)]
        assert (np.diff(found) >= -1e-12).all()
        assert found[0] < 1e-5
        assert found[-1] > 1 - 1e-3

    def test_nobody_has_no_chance(self) -> None:
        assert plan(Cumulative(), **self.OPTIONS).release_probability(0) == 0.0

    def test_a_novel_item_has_less_than_delta(self) -> None:
        for delta in (1e-5, 0.05):
            made = plan(Cumulative(), rho=0.5, delta=delta, max_items=10)
            assert made.release_probability(1) <= delta

    def test_users_needed(self) -> None:
        made = plan(Cumulative(rounds=3), **self.OPTIONS)
        for items in (1, 4):
            users = made.users_needed(0.9, items)
            assert made.release_probability(users, items) >= 0.9
            assert made.release_probability(users - 1, items) < 0.9


@pytest.mark.parametrize("mechanism", ["sips", "sips-rule", "mad", "mad2r", "cumulative"])
@pytest.mark.parametrize("users", [2**33, 2**34, 2**60])
def test_more_users_than_a_word_has_room_for(mechanism: str, users: int) -> None:
    made = plan(mechanism, epsilon=1, delta=1e-6, max_items=10)
    assert made.release_probability(users) > 0.99


def test_what_is_read_off_is_what_is_worked_out() -> None:
    """Users with more than max_items: a sum over hundreds of numbers of holders."""
    made = plan(Cumulative(rounds=4), rho=0.5, delta=1e-6, max_items=10)
    for users in (20, 60, 200):
        holders, odds = binomial(users, 0.5)
        each = [made.release_probability(int(n), 10) for n in holders]
        assert made.release_probability(users, 20) == pytest.approx(float(odds @ each), abs=1e-11)


def test_rounds_of_their_own_are_independent() -> None:
    made = plan(Sips(rounds=3), rho=0.5, delta=1e-6, max_items=10)
    for users in (1, 3, 9):
        missed = math.prod(
            float(ndtr((step["threshold"] - users) / step["sigma"])) for step in made.table()
        )
        assert made.release_probability(users) == pytest.approx(1 - missed)


@pytest.mark.parametrize(("trials", "chance"), [(0, 0.3), (1, 0.5), (30, 0.01), (10**6, 0.2)])
def test_binomial(trials: int, chance: float) -> None:
    values, odds = binomial(trials, chance)
    assert odds.sum() == pytest.approx(1)
    assert odds == pytest.approx(stats.binom.pmf(values, trials, chance), rel=1e-6, abs=1e-300)


@pytest.mark.fresh
@pytest.mark.parametrize("mechanism", [Mad(), Mad2R(), Mad2R(share=0.4)], ids=repr)
@pytest.mark.parametrize("users", [18, 25, 60])
def test_adaptive_rounds_of_users_with_one_item(mechanism: Mad, users: int) -> None:
    copies = 4000
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
    found = simulated(mechanism, users, 1, copies, **budget)
    chance = plan(mechanism, **budget).release_probability(users)
    assert stats.binomtest(found, copies, chance).pvalue > ALPHA


def test_adaptive_rounds_of_users_with_more_items() -> None:
    """Dropping what is hopeless only helps the others: the chance is a lower bound."""
    made = plan("mad2r", epsilon=1.0, delta=1e-5)
    found = [made.release_probability(users, 9) for users in (10, 40, 80, 160, 320)]
    assert found == sorted(found)
    assert 0 < found[0] < 0.05
    assert found[-1] > 0.99
