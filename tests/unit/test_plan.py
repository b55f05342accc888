"""Plans: the paper's numbers, the chances they promise, and what bad parameters get.

Simulations run the library itself with fresh keys; each of the few has a false-alarm rate of
`ALPHA`, by exact binomial tests.
"""

import math
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dp_sips import (
    Budget,
    Cumulative,
    Plan,
    Sips,
    UsageError,
    WeightedGaussian,
    plan,
    select_partitions,
)
from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.base import EpsilonDelta
from dp_sips.privacy.weights import UNIT, weight

ALPHA = 1e-8
PAPER: dict[str, Any] = {"rho": 0.1, "delta": 1e-5, "max_items": 100}


class TestGoldenValues:
    def test_weighted_gaussian(self) -> None:
        (only,) = plan("weighted-gaussian", **PAPER).rounds
        assert only.sigma == pytest.approx(2.2361, abs=5e-5)
        assert only.threshold == pytest.approx(11.7261, abs=5e-5)
        assert (only.rho, only.delta, only.max_items) == (0.1, 1e-5, 100)

    def test_sips(self) -> None:
        made = plan(Sips(rounds=3, ratio=1 / 3), **PAPER)
        thresholds = [r.threshold for r in made.rounds]
        assert thresholds == pytest.approx([45.7100, 25.5406, 14.2554], abs=5e-5)
        assert [r.rho for r in made.rounds] == pytest.approx([0.1 / 13, 0.3 / 13, 0.9 / 13])
        assert [r.delta for r in made.rounds] == pytest.approx([1e-5 / 13, 3e-5 / 13, 9e-5 / 13])

    def test_the_exact_curve_allows_more(self) -> None:
        made = plan("weighted-gaussian", epsilon=1.765, delta=4.96e-5)
        assert made.guarantee.rho == pytest.approx(0.1145, abs=5e-4)
        assert made.guarantee.threshold_delta == pytest.approx(0.38 * 4.96e-5, rel=0.05)

    def test_defaults_are_the_papers(self) -> None:
        assert plan("sips", rho=0.1, delta=1e-5) == plan(Sips(rounds=3, ratio=1 / 3), **PAPER)

    def test_auto_is_cumulative_evidence(self) -> None:
        made = plan(rho=0.1, delta=1e-5)
        assert made == plan(Cumulative(), rho=0.1, delta=1e-5, max_items=250)

    def test_auto_looks_again_where_few_items_count(self) -> None:
        few: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_items": 79}
        assert plan(**few) == plan("sips-rule", **few)
        few = {"rho": 0.1, "delta": 1e-6, "max_items": 79}
        assert plan(**few) == plan("sips", **few)
        many: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_items": 80}
        assert [branch.mechanism.name for branch in plan(**many).rounds] == [
            "matching",
            "cumulative",
        ]


class TestRounds:
    def test_a_ratio_of_one_gives_equal_shares(self) -> None:
        made = plan(Sips(rounds=4, ratio=1), **PAPER)
        assert len(set(made.rounds)) == 1
        assert made.rounds[0].rho == pytest.approx(0.025)

    @pytest.mark.parametrize("asked", [{"rho": 0.1}, {"epsilon": 1.0}])
    def test_one_round_of_sips_is_weighted_gaussian(self, asked: dict[str, Any]) -> None:
        one = plan(Sips(rounds=1), delta=1e-6, **asked)
        assert one.rounds == plan("weighted-gaussian", delta=1e-6, **asked).rounds

    @settings(max_examples=30)
    @given(
        st.builds(Sips, st.integers(1, 12), st.floats(0.05, 5)),
        st.floats(1e-4, 10),
        st.floats(1e-12, 0.5),
        st.integers(1, 10**6),
    )
    def test_spend_no_more_than_was_asked(
        self, mechanism: Sips, rho: float, delta: float, most: int
    ) -> None:
        made = plan(mechanism, rho=rho, delta=delta, max_items=most)
        assert made.guarantee.rho <= rho
        assert made.guarantee.threshold_delta <= delta
        assert made.guarantee.rho == pytest.approx(rho)
        assert len(made.rounds) == mechanism.rounds

    @settings(max_examples=15)
    @given(st.floats(0.05, 8), st.floats(1e-12, 0.1), st.integers(1, 1000))
    def test_epsilon_is_kept_with_the_samplers_part(
        self, epsilon: float, delta: float, most: int
    ) -> None:
        made = plan("sips", epsilon=epsilon, delta=delta, max_items=most)
        assert made.guarantee.delta(epsilon=epsilon) <= delta
        assert made.guarantee.epsilon(delta=delta) <= epsilon * (1 + 1e-12)
        assert made.asked == EpsilonDelta(epsilon, delta)

    def test_the_last_threshold_is_lowest_where_delta_is_split_well(self) -> None:
        """No split of δ in a grid of them gives a lower one."""
        best = plan("sips", epsilon=1.0, delta=1e-6).rounds[-1].threshold
        for share in np.linspace(0.05, 0.95, 19):
            budget = Budget.from_epsilon(1.0, 1e-6, threshold_delta=share * 1e-6)
            other = plan("sips", rho=budget.rho, delta=budget.delta).rounds[-1].threshold
            assert best <= other * (1 + 1e-9)

    def test_table(self) -> None:
        made = plan("sips", **PAPER)
        rows = made.table()
        assert [row["round"] for row in rows] == [1, 2, 3]
        assert set(rows[0]) == {"round", "rho", "delta", "sigma", "threshold"}
        assert [row["threshold"] for row in rows] == [r.threshold for r in made.rounds]

    def test_is_frozen(self) -> None:
        made: Any = plan("sips", **PAPER)
        with pytest.raises(AttributeError):
            made.max_items = 5
        with pytest.raises(AttributeError):
            made.rounds[0].sigma = 0.0


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "got neither"),
    ({"epsilon": 1, "rho": 1, "delta": 1e-6}, "got both"),
    ({"delta": 1e-6}, "got neither"),
    ({"epsilon": 1}, "delta is missing"),
    ({"rho": 1}, "delta is missing"),
    *(
        ({"rho": 1, "delta": bad}, f"delta must be .* got {bad!r}")
        for bad in (0, 1, 1.5, -0.1, "x")
    ),
    *(
        ({"rho": bad, "delta": 0.1}, f"rho must be .* got {bad!r}")
        for bad in (0, -1, math.inf, True)
    ),
    ({"rho": math.nan, "delta": 0.1}, "rho must be .* got nan"),
    *(({"epsilon": bad, "delta": 0.1}, f"epsilon must be .* got {bad!r}") for bad in (0, -1, "1")),
    ({"epsilon": math.inf, "delta": 0.1}, "epsilon must be .* got inf"),
    ({"epsilon": 1e-12, "delta": 0.1}, "epsilon must be above .*, got 1e-12"),
    (
        {"mechanism": "cumulative", "epsilon": 1e-6, "delta": 0.1},
        "epsilon=1e-06 and delta=0.1 need more noise .* try max_items=100, or mechanism='sips'",
    ),
    *(
        ({"rho": 1, "delta": 0.1, "max_items": bad}, f"max_items must be .* got {bad!r}")
        for bad in (0, -1, 2.5, "9", True)
    ),
    ({"mechanism": "sipps", "rho": 1, "delta": 0.1}, "'sipps': did you mean 'sips'"),
    ({"mechanism": 5, "rho": 1, "delta": 0.1}, "mechanism must be .* got 5"),
    ({"mechanism": Sips, "rho": 1, "delta": 0.1}, "mechanism must be .* got <class"),
    ({"rho": 1, "delta": 0.1, "max_partitions_contributed": 5}, "here it is called max_items"),
    ({"rho": 1, "delta": 0.1, "max_itms": 5}, "'max_itms': did you mean 'max_items'"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(**parameters)


class TestChances:
    MADE = plan("sips", rho=0.5, delta=1e-6, max_items=8)

    def test_one_round_is_the_gaussians_tail(self) -> None:
        made = plan("weighted-gaussian", **PAPER)
        (only,) = made.rounds
        exact = stats.norm.sf((only.threshold - 70 * weight(3) / UNIT) / only.sigma)
        assert made.release_probability(70, 3) == pytest.approx(float(exact))

    def test_rounds_multiply_what_is_missed(self) -> None:
        missed = math.prod(
            float(stats.norm.cdf((r.threshold - 9 * weight(2) / UNIT) / r.sigma))
            for r in self.MADE.rounds
        )
        assert self.MADE.release_probability(9, 2) == pytest.approx(1 - missed)

    @given(st.integers(0, 400), st.integers(1, 40))
    def test_grow_with_users_and_fall_with_items(self, users: int, items: int) -> None:
        chance = self.MADE.release_probability(users, items)
        assert 0 <= chance <= 1
        assert self.MADE.release_probability(users + 1, items) >= chance * (1 - 1e-12)
        assert self.MADE.release_probability(users, items + 1) <= chance * (1 + 1e-9)

    def test_nobody_and_everybody(self) -> None:
        for items in (1, 8, 30):
            assert self.MADE.release_probability(0, items) == 0
            assert self.MADE.release_probability(10**6, items) == pytest.approx(1)
        assert 0 < self.MADE.release_probability(1) < 1e-6

    @settings(max_examples=30)
    @given(st.floats(1e-6, 0.999999), st.integers(1, 50))
    def test_users_needed_is_the_least(self, probability: float, items: int) -> None:
        users = self.MADE.users_needed(probability, items)
        assert self.MADE.release_probability(users, items) >= probability
        assert self.MADE.release_probability(users - 1, items) < probability

    @pytest.mark.parametrize("users", [-1, 2.5, "9", None, True, math.inf])
    def test_bad_users(self, users: Any) -> None:
        with pytest.raises(UsageError, match=f"users must be .* got {users!r}"):
            self.MADE.release_probability(users)

    @pytest.mark.parametrize("items", [0, -1, 1.5, "9", None])
    def test_bad_items(self, items: Any) -> None:
        with pytest.raises(UsageError, match=f"items_per_user must be .* got {items!r}"):
            self.MADE.release_probability(5, items)

    @pytest.mark.parametrize("probability", [0, 1, -0.5, math.nan, "0.5", True, None])
    def test_bad_probability(self, probability: Any) -> None:
        with pytest.raises(UsageError, match=f"probability must be .* got {probability!r}"):
            self.MADE.users_needed(probability)


def found_items(made: Plan, users: int, items_per_user: int, runs: int, shared: int) -> int:
    """Run the library; return how many of the shared items were released, of runs · shared.

    Each shared item has `users` users of its own, who hold nothing else in common.
    """
    count = shared * users
    user = np.repeat(np.arange(count), items_per_user)
    item = 10**6 + np.arange(count * items_per_user)
    item[::items_per_user] = np.repeat(np.arange(shared), users)
    data = pa.table({"u": pa.array(user), "i": pa.array(item)})
    asked: dict[str, Any] = asdict(made.asked)
    released = 0
    for _ in range(runs):
        selection = select_partitions(
            data,
            user="u",
            item="i",
            mechanism=made.mechanism,
            max_items=made.max_items,
            **asked,
        )
        released += sum(value < 10**6 for value in selection.items["i"].to_pylist())
    return released


@pytest.mark.fresh
class TestSimulation:
    """4,000 items each: the standard error is at most 0.8 %.

    The power is shown beside: with one user more or less than there are, the same outcome would
    be seen as wrong.
    """

    @pytest.mark.parametrize(
        "mechanism", [WeightedGaussian(), Sips(rounds=3), Sips(rounds=4, ratio=1.0)]
    )
    @pytest.mark.parametrize("items", [1, 5, 30])
    def test_chances_come_true(self, mechanism: Any, items: int) -> None:
        made = plan(mechanism, rho=2.0, delta=1e-7, max_items=5)
        users = made.users_needed(0.5, items)
        found = found_items(made, users, items, runs=10, shared=400)

        def p(holders: int) -> float:
            chance = made.release_probability(holders, items)
            return float(stats.binomtest(found, 4000, chance).pvalue)

        assert p(users) > ALPHA
        if items < 30:
            assert p(users - 1) < ALPHA
            assert p(users + 1) < ALPHA
        assert p(math.ceil(users * 1.2)) < ALPHA


def test_needs_neither_data_nor_arrow() -> None:
    script = (
        "import sys, dp_sips\n"
        "p = dp_sips.plan('sips', epsilon=1, delta=1e-6)\n"
        "p.release_probability(50, 200); p.users_needed(0.9); p.explain(); p.table()\n"
        "p.guarantee.epsilon(delta=1e-5)\n"
        "heavy = {'pyarrow', 'pandas', 'polars', 'duckdb', 'tqdm', 'cryptography'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class TestSmallBudgets:
    """Where the budget is too small for one mechanism, `auto` takes one that works."""

    @pytest.mark.parametrize("epsilon", [1e-4, 0.005])
    @pytest.mark.parametrize("max_items", [None, 10, 300])
    def test_auto_finds_a_mechanism(self, epsilon: float, max_items: int | None) -> None:
        made = plan(epsilon=epsilon, delta=1e-6, max_items=max_items)
        assert made.mechanism.name == "sips"
        assert made.guarantee.delta(epsilon=epsilon) <= 1e-6

    @pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS])
    def test_a_delta_below_the_samplers_part(self, mechanism: str) -> None:
        with pytest.raises(UsageError, match=r"delta must be above .* got 1e-300"):
            plan(mechanism, epsilon=1, delta=1e-300)

    def test_errors_show_what_was_typed(self) -> None:
        with pytest.raises(
            UsageError, match=r"at least 0\.0138 .* got 0\.01: try mechanism='sips'"
        ):
            plan("sips-rule", epsilon=0.01, delta=1e-6)


class TestWords:
    """A plan's own words hold its numbers. How they are put is free to change."""

    def test_rho(self) -> None:
        made = plan("sips", rho=0.1, delta=1e-5)
        words = made.explain()
        assert words.startswith(
            "sips with rho = 0.1, delta = 1e-05, at most 100 items of each user."
        )
        assert "1e-05-approximate 0.1-zCDP" in words
        for number in ("45.7100", "25.5406", "14.2554"):
            assert number in words
        for r in made.rounds:
            assert f"{r.sigma:.4f}" in words
            assert f"{r.rho:.4g}" in words
            assert f"{r.delta:.3g}" in words

    def test_epsilon(self) -> None:
        made = plan("weighted-gaussian", epsilon=1.5, delta=1e-6)
        words = made.explain()
        assert "(1.5, 1e-06)-" in words
        assert all(part in words for part in str(made.guarantee).split("; "))

    @pytest.mark.parametrize(
        ("max_items", "sizes"),
        [(100, [1, 10, 100]), (1, [1]), (7, [1, 7]), (10, [1, 10]), (500, [1, 10, 100])],
    )
    def test_chances(self, max_items: int, sizes: list[int]) -> None:
        made = plan(Sips(rounds=2), epsilon=1.0, delta=1e-6, max_items=max_items)
        words = " ".join(made.explain().split())
        assert words.count("With these settings") == len(sizes)
        for size in sizes:
            half, most = (f"{made.users_needed(p, size):,}" for p in (0.5, 0.95))
            plural = "" if size == 1 else "s"
            assert (
                f"needs about {half} users (each holding {size} item{plural}) for a 50 % chance, "
                f"{most} for 95 %." in words
            )

    def test_fits_a_terminal(self) -> None:
        for line in plan("sips", epsilon=1.0, delta=1e-6).explain().splitlines():
            assert len(line) <= 80
