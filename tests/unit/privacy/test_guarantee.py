"""What a release says it has spent: the budget's numbers, with the sampler's part on top."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips import plan
from dp_sips.errors import UsageError
from dp_sips.mechanisms import MECHANISMS
from dp_sips.privacy.budget import Accounting, Budget
from dp_sips.privacy.guarantee import Guarantee, SamplerCost, shown
from dp_sips.privacy.noise import SAMPLER_ERROR

SPENT = Guarantee(0.1, 1e-5, SamplerCost.of(3, 100))


def test_the_samplers_part_covers_every_verdict_that_a_user_touches() -> None:
    for rounds, items in ((1, 1), (3, 100), (10, 10**6)):
        verdicts = rounds * items
        exact = verdicts * (math.log1p(SAMPLER_ERROR) - math.log1p(-SAMPLER_ERROR))
        assert exact <= SamplerCost.of(rounds, items).loss <= 2 * exact
    assert SamplerCost.of(3, 100).loss < 1e-9


@pytest.mark.parametrize("accounting", ["gaussian", "zcdp"])
def test_epsilon_and_delta_are_the_budgets_plus_the_samplers(accounting: Accounting) -> None:
    budget = Budget(0.1, 1e-5)
    assert SPENT.epsilon(delta=1e-4, accounting=accounting) == pytest.approx(
        budget.epsilon(1e-4, accounting)
    )
    assert SPENT.epsilon(delta=1e-4, accounting=accounting) > budget.epsilon(1e-4, accounting)
    assert SPENT.delta(epsilon=1.0, accounting=accounting) == pytest.approx(
        budget.delta_at(1.0, accounting)
    )
    assert SPENT.delta(epsilon=1.0, accounting=accounting) >= budget.delta_at(1.0, accounting)


@given(st.floats(1.1e-5, 0.9))
def test_there_and_back_is_private(delta: float) -> None:
    assert SPENT.delta(epsilon=SPENT.epsilon(delta=delta) * (1 + 1e-12)) <= delta


def test_no_epsilon_beyond_the_samplers_tails() -> None:
    """Of so large a ρ, some numbers that the one neighbour draws are none that the sampler has."""
    made = [
        plan(name, rho=100, delta=1e-6, max_items=1) for name in ("weighted-gaussian", "cumulative")
    ]
    made += [plan(name, epsilon=40, delta=1e-6, max_items=1) for name in ("gw", "sips-rule")]
    for spent in (one.guarantee for one in made[:2]):
        assert spent.epsilon(delta=1e-5) == math.inf
        assert spent.delta(epsilon=1000) == spent.delta(epsilon=28) > 1e-5
    for spent in (one.guarantee for one in made[2:]):
        assert 27 < spent.epsilon(delta=1e-6) <= 28 * (1 + 1e-9)


def test_a_delta_that_the_sampler_uses_up() -> None:
    with pytest.raises(UsageError, match=r"delta must be above 6.*e-23, the sampler's part, got"):
        SPENT.epsilon(delta=1e-30)


@pytest.mark.parametrize("mechanism", ["sips-rule", "gw", "single"])
def test_rho_is_true_of_mechanisms_that_have_an_epsilon(mechanism: str) -> None:
    """(ε, δ)-DP is δ-approximate ε²/2-zCDP (Bun and Steinke 2016), and that is what is said."""
    spent = plan(mechanism, epsilon=1.5, delta=1e-5, max_items=1).guarantee
    assert spent.rho == pytest.approx(1.5**2 / 2)
    assert spent.rho >= (1.5 - spent.sampler.loss) ** 2 / 2
    assert spent.threshold_delta == pytest.approx(1e-5)


def test_more_rounds_and_items_cost_more() -> None:
    dear = Guarantee(0.1, 1e-5, SamplerCost(0.01, 0.0))
    assert dear.epsilon(delta=1e-4) == pytest.approx(SPENT.epsilon(delta=1e-4 / 1.01) + 0.01)
    assert dear.delta(epsilon=1.0) > SPENT.delta(epsilon=1.0)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1"])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(UsageError, match=r"epsilon must be .*, got"):
        SPENT.delta(epsilon=epsilon)


def test_an_epsilon_that_the_sampler_uses_up() -> None:
    with pytest.raises(UsageError, match=r"epsilon must be above 0\.01, the sampler's part, got"):
        Guarantee(0.1, 1e-5, SamplerCost(0.01, 0.0)).delta(epsilon=0.01)


@pytest.mark.parametrize("delta", [0, 1, 1e-5, 1e-6, -1])
def test_bad_delta(delta: float) -> None:
    with pytest.raises(UsageError, match=r"delta must be .*, got"):
        SPENT.epsilon(delta=delta)


def test_says_epsilon_and_delta_first() -> None:
    assert str(SPENT) == "(1.761, 1.992e-05)-DP; weaker corollary: 1e-05-approximate 0.1-zCDP"


@pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS])
@pytest.mark.parametrize("asked", [{"epsilon": 0.7, "delta": 3e-7}, {"rho": 0.2, "delta": 1e-5}])
def test_states_what_is_asked_and_no_more(mechanism: str, asked: dict[str, float]) -> None:
    if mechanism.endswith("-rule") and "rho" in asked:
        return
    spent = plan(mechanism, **asked).guarantee  # type: ignore[arg-type]
    epsilon, delta = spent.stated()
    assert spent.delta(epsilon=epsilon) == delta
    assert str(spent).startswith(f"({epsilon:g}, ")
    if "epsilon" in asked:
        assert epsilon == 0.7
        assert 0.99 * 3e-7 < delta <= 3e-7
    else:
        assert delta <= 2.001e-5


def test_shown_numbers_are_never_smaller() -> None:
    assert [shown(value) for value in (0.12341, 1e-6, 9.9991e-7)] == [0.1235, 1e-6, 1e-6]


def test_the_corollary_is_weaker() -> None:
    """What the issue is about: converted back, the zCDP of (1, 1e-6)-DP looks overspent."""
    spent = plan("sips", epsilon=1.0, delta=1e-6).guarantee
    assert spent.stated()[1] <= 1e-6
    assert spent.delta(epsilon=1.0, accounting="zcdp") > 1e-6
