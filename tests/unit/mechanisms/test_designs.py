"""Plans of the whole field: what was asked is what is spent, and bad parameters name themselves."""

import json
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dp_sips import (
    Dpsu,
    Gw,
    Mad,
    Mad2R,
    Matching,
    PolicyLaplace,
    Single,
    UsageError,
    WeightedGaussian,
    plan,
    select_partitions,
)
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.mechanisms.turns import Favourite
from dp_sips.privacy.guarantee import SamplerCost, cascade_loss
from dp_sips.privacy.noise import SAMPLER_ERROR, SAMPLER_TAIL

FIELD = (Dpsu(), Dpsu(0.0), PolicyLaplace(), Gw(), Gw(0.0), Matching(), Single())
PLAIN = (PolicyLaplace(), Gw(), Matching(), Single())
epsilons = st.floats(math.log(1e-2), math.log(50)).map(math.exp)
deltas = st.floats(math.log(1e-10), math.log(0.5)).map(math.exp)


class TestSpending:
    @settings(max_examples=80)
    @given(st.sampled_from(FIELD), epsilons, deltas)
    def test_what_was_asked_is_kept(self, mechanism: Any, epsilon: float, delta: float) -> None:
        spent = plan(mechanism, epsilon=epsilon, delta=delta).guarantee
        assert spent.delta(epsilon=epsilon) <= delta
        assert spent.epsilon(delta=delta) <= epsilon * (1 + 1e-9)

    @given(st.sampled_from(FIELD), st.floats(1e-4, 10), st.floats(1e-9, 0.5))
    def test_rho(self, mechanism: Any, rho: float, delta: float) -> None:
        spent = plan(mechanism, rho=rho, delta=delta).guarantee
        assert rho * (1 - 1e-12) <= spent.rho <= rho
        assert spent.threshold_delta == delta
        if isinstance(spent, PointGuarantee):
            assert spent.pure**2 / 2 <= rho

    @pytest.mark.parametrize("mechanism", [Dpsu(), PolicyLaplace(), Gw(), Matching()])
    def test_extremes_make_a_plan_that_runs(self, mechanism: Any) -> None:
        data = {user: ["a", "b"] for user in range(30)}
        budgets: list[dict[str, Any]] = [{"epsilon": 1e-3}, {"epsilon": 1000.0}, {"rho": 1e-3}]
        for asked in budgets:
            for delta in (1e-9, 0.9):
                found = [
                    select_partitions(
                        data, mechanism=mechanism, delta=delta, engine=engine, max_items=1,
                        seed=1, insecure_test=True, **asked,
                    ).items
                    for engine in ("memory", "reference")
                ]  # fmt: skip
                assert found[0] == found[1]

    def test_a_huge_buffer_fills_no_item(self) -> None:
        made = plan(Gw(buffer=1e6), epsilon=1e-4, delta=1e-6)
        assert made.rounds[0].policy.target == 2**32
        with pytest.raises(UsageError, match="larger epsilon"):
            plan(Dpsu(buffer=1e6), epsilon=0.01, delta=1e-6)

    @given(
        st.sampled_from([Dpsu(), PolicyLaplace()]),
        st.floats(-4, 1.4),
        st.floats(-12, -1),
        st.integers(1, 2**32) | st.integers(0, 32).map(lambda n: 2**n),
    )
    @example(Dpsu(), -2.0, -6.0, 2**20)
    @example(Dpsu(), -1.0, -6.0, 2**32)
    @example(PolicyLaplace(), -2.0, -6.0, 2**20)
    def test_sums_of_gaps_fit_into_their_words(
        self, mechanism: Any, epsilon: float, delta: float, items: int
    ) -> None:
        """A sum that wraps around would make payments, and so the sensitivity, far too large."""
        try:
            made = plan(mechanism, epsilon=10**epsilon, delta=10**delta, max_items=items)
        except UsageError as error:
            assert "max_items" in str(error)  # noqa: PT017 (most plans do not fail)
            return
        policy = made.rounds[0].policy
        assert policy.target < 2**63
        assert items * policy.target**policy.power < 2**127

    def test_dpsu_has_the_noise_and_threshold_of_weighted_gaussian(self) -> None:
        dpsu, weighted = (plan(m, rho=0.1, delta=1e-5) for m in (Dpsu(), WeightedGaussian()))
        assert dpsu.rounds[0].sigma == pytest.approx(weighted.rounds[0].sigma, rel=1e-4)
        assert dpsu.rounds[0].threshold == pytest.approx(weighted.rounds[0].threshold, rel=1e-4)
        assert dpsu.rounds[0].sigma > weighted.rounds[0].sigma

    def test_gw_has_the_published_threshold(self) -> None:
        step = plan(Gw(), epsilon=1.7, delta=8.1142e-5).rounds[0]
        assert step.threshold == pytest.approx(1 - math.log(2 * 8.1142e-5) / 1.7, rel=1e-6)
        assert step.policy.target == round(step.threshold + 3 / 1.7)

    def test_single_is_for_one_item(self) -> None:
        with pytest.raises(UsageError, match="single is for max_items=1, got 2"):
            plan(Single(), epsilon=1.0, delta=1e-6, max_items=2)

    @pytest.mark.parametrize("name", ["dpsu", "policy-laplace", "gw"])
    def test_turns_are_not_for_a_cluster(self, name: str) -> None:
        with pytest.raises(UsageError, match=f"{name} goes through the users one after the other"):
            select_partitions({1: ["a"]}, mechanism=name, engine="spark", epsilon=1.0, delta=1e-6)

    @pytest.mark.parametrize("name", ["policy-laplace", "mad", "mad2r", "cumulative"])
    def test_shares_of_too_many_items(self, name: str) -> None:
        with pytest.raises(UsageError, match=f"at most 1048576 for {name}, got 2000000"):
            plan(name, epsilon=1.0, delta=1e-6, max_items=2_000_000)

    @pytest.mark.parametrize("mechanism", [Mad(buffer=0), Mad2R(buffer=0)])
    @pytest.mark.parametrize("delta", [0.9, 0.999])
    def test_a_threshold_below_zero(self, mechanism: Any, delta: float) -> None:
        """An item needs a weight of 1 all the same, and every item is released that does well."""
        made = plan(mechanism, rho=0.1, delta=delta, max_items=1)
        assert made.rounds[-1].threshold < 0
        assert all(step.spread.target >= 1 for step in made.rounds)
        data = {n: ["tea"] for n in range(300)}
        options: dict[str, Any] = {"rho": 0.1, "delta": delta, "max_items": 1}
        assert select_partitions(data, mechanism=mechanism, **options).items == ["tea"]


class TestPointGuarantee:
    """(ε, δ)-DP at one point gives the curve of randomised response that tells all at times."""

    @staticmethod
    def direct(pure: float, own: float, epsilon: float) -> float:
        """Return the hockey-stick divergence of four answers: told 0, told 1, coin 0, coin 1."""
        with mpmath.workdps(40):
            told = mpmath.mpf(own)
            yes = (1 - told) / (1 + mpmath.exp(-mpmath.mpf(pure)))
            one, other = (told, 0, yes, 1 - told - yes), (0, told, 1 - told - yes, yes)
            factor = mpmath.exp(mpmath.mpf(epsilon))
            return float(sum(max(0, p - factor * q) for p, q in zip(one, other, strict=True)))

    @given(st.floats(0.01, 8), st.floats(1e-9, 0.5), st.floats(0.001, 10))
    def test_is_the_curve_of_its_worst_mechanism(
        self, pure: float, own: float, epsilon: float
    ) -> None:
        spent = PointGuarantee.of(pure, own, SamplerCost(0.0, 0.0))
        exact = self.direct(pure, own, epsilon)
        found = spent.delta(epsilon=epsilon)
        assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9) + 1e-14

    @given(st.sampled_from(PLAIN), st.floats(0.05, 20), st.floats(1e-9, 0.2), st.floats(0, 1))
    def test_there_and_back(
        self, mechanism: Any, epsilon: float, delta: float, where: float
    ) -> None:
        spent = plan(mechanism, epsilon=epsilon, delta=delta).guarantee
        asked = delta + where * (0.99 - delta)
        assert spent.delta(epsilon=spent.epsilon(delta=asked)) <= asked * (1 + 1e-9)

    def test_less_than_the_threshold_spends(self) -> None:
        spent = plan(Gw(), epsilon=1.0, delta=1e-5).guarantee
        with pytest.raises(UsageError, match=r"delta must be at least .* got"):
            spent.epsilon(delta=1e-6)

    def test_words(self) -> None:
        assert str(plan(Gw(), epsilon=1.0, delta=1e-5).guarantee) == (
            "(1, 1e-05)-DP; weaker corollary: 1e-05-approximate 0.5-zCDP"
        )


class TestCascade:
    def test_covers_hoeffdings_bound_of_two_neighbours(self) -> None:
        """README.md, "The sampler": n = 2³⁶ independent errors, a miss of e^(−270)."""
        n, error = 2**36, -math.log1p(-SAMPLER_ERROR)
        spread = error * math.sqrt(2 * n * 270)
        assert 2 * (spread + n * error**2) <= cascade_loss(1) <= 2.05 * spread
        assert cascade_loss(1) < 1.2e-5

    def test_tails(self) -> None:
        assert SamplerCost.of_cascade(1).tail == 2 * 2**36 * SAMPLER_TAIL
        assert SamplerCost.of_cascade(1).tail < 3e-14

    def test_the_factor_of_delta_covers_one_neighbours_half(self) -> None:
        assert math.exp(cascade_loss(1) / 2) <= 1 + cascade_loss(1)

    def test_errors_of_many_verdicts_do_average_out(self) -> None:
        """Simulated with large errors: the sum stays below the bound of 2,000 verdicts.

        Hoeffding's bound of a miss is e^(−20) for each of 200 sums: a false alarm of 5e-7.
        """
        random, n, error = np.random.default_rng(), 2000, 0.01
        chance = random.uniform(0.05, 0.95, n)
        shifted = chance * (1 + error * random.choice([-1, 1], n) * np.minimum(1, 1 / chance - 1))
        bound = 1.01 * error * math.sqrt(2 * n * 20) + 2 * n * error**2
        yes = random.random((200, n)) < chance
        loss = np.where(yes, np.log(chance / shifted), np.log((1 - chance) / (1 - shifted)))
        assert loss.sum(axis=1).max() <= bound


class TestParameters:
    @pytest.mark.parametrize("kind", [Dpsu, PolicyLaplace, Gw])
    @pytest.mark.parametrize("buffer", [-1, math.nan, math.inf, "3", None, True])
    def test_bad_buffer(self, kind: Any, buffer: Any) -> None:
        with pytest.raises(UsageError, match=f"buffer must be .* got {buffer!r}"):
            kind(buffer=buffer)

    @pytest.mark.parametrize("largest", [1, 2**15 + 1, 2.5, True, None])
    def test_bad_largest(self, largest: Any) -> None:
        """More of it would make sums of 48-bit shares wrap around."""
        with pytest.raises(
            UsageError, match=f"largest must be .* from 2 to 32768, got {largest!r}"
        ):
            Mad(largest=largest)

    @pytest.mark.parametrize("count", [-1, 2**32, 1.5, True, None, "7"])
    def test_bad_counts(self, count: Any) -> None:
        with pytest.raises(UsageError, match=rf"histogram\['tea'\] must be .* got {count!r}"):
            Gw(histogram={"jam": 1, "tea": count})

    def test_a_histogram_is_a_mapping(self) -> None:
        wrong: Any = ["tea"]
        with pytest.raises(UsageError, match=r"histogram must be a mapping .* got \['tea'\]"):
            Gw(histogram=wrong)

    def test_a_histogram_is_not_shown(self) -> None:
        assert repr(Gw(histogram={"tea": 1})) == "Gw(buffer=3.0, ties='items')"

    def test_bad_ties(self) -> None:
        with pytest.raises(UsageError, match="ties must be 'items' or 'rows', got 'users'"):
            Gw(ties="users")


def full(step: Any) -> float:
    """Return the target as a weight."""
    policy = step.policy
    return float(policy.target if isinstance(policy, Favourite) else policy.full)


class TestChances:
    @pytest.mark.parametrize("mechanism", [Dpsu(), PolicyLaplace(), Gw()])
    def test_of_an_item_that_is_all_its_users_have(self, mechanism: Any) -> None:
        made = plan(mechanism, epsilon=1.0, delta=1e-4)
        step = made.rounds[0]
        weight = min(full(step), 9)
        noise: Any = stats.norm if isinstance(mechanism, Dpsu) else stats.laplace
        scale = step.sigma if isinstance(mechanism, Dpsu) else step.scale
        chance = made.release_probability(9)
        assert chance == pytest.approx(noise.sf((step.threshold - weight) / scale), rel=1e-9)
        assert made.release_probability(0) == 0
        assert made.release_probability(10**6) > 0.9

    def test_of_users_with_the_same_items(self) -> None:
        dpsu, laplace = (plan(m, epsilon=1.0, delta=1e-4) for m in (Dpsu(), PolicyLaplace()))
        assert dpsu.release_probability(40, 16) == pytest.approx(dpsu.release_probability(10))
        assert laplace.release_probability(40, 4) == pytest.approx(laplace.release_probability(10))

    def test_some_chances_cannot_be_had(self) -> None:
        made = plan(Dpsu(buffer=0), epsilon=1.0, delta=1e-4)
        with pytest.raises(UsageError, match=r"no number of users gives .* chance of 0\.95"):
            made.users_needed(0.95)
        assert "more than 2³⁴ for 95 %" in made.explain()

    def test_of_single(self) -> None:
        made = plan(Single(), epsilon=1.0, delta=1e-4)
        assert made.release_probability(1) == pytest.approx(1e-4, rel=1e-6)
        assert made.users_needed(0.5) == made.rounds[0].coin.median


class TestWords:
    @pytest.mark.parametrize("mechanism", [Dpsu(), PolicyLaplace(), Gw(), Single()], ids=str)
    def test_hold_the_numbers_and_fit_a_terminal(self, mechanism: Any) -> None:
        made = plan(mechanism, epsilon=1.0, delta=1e-6)
        words = made.explain()
        assert "(1, 1e-06)-differentially private" in words
        assert max(len(line) for line in words.splitlines()) <= 80
        if not isinstance(mechanism, Single):
            step = made.rounds[0]
            assert f"{step.threshold:.4f}" in words
            assert f"{full(step):.4f}" in words

    @pytest.mark.parametrize("mechanism", [*FIELD, Gw(histogram=dict.fromkeys(range(5000), 1))])
    def test_certificates_are_json_of_a_decent_length(self, mechanism: Any) -> None:
        data = {user: [1, 2] for user in range(50)}
        selection = select_partitions(data, mechanism=mechanism, epsilon=2.0, delta=1e-4)
        text = selection.to_json()
        assert json.loads(text) == selection.certificate
        assert len(text) < 3000
        if isinstance(mechanism, Gw):
            size = None if mechanism.histogram is None else 5000
            assert selection.certificate["mechanism"]["parameters"]["histogram"] == size
