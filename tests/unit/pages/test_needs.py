"""How many users an item needs: the plan's own answer, in fewer evaluations."""

import pytest

import dp_sips
from dp_sips.errors import UsageError
from dp_sips.pages.needs import HALF, MOST, Needs, check_size, needs_by_size


@pytest.mark.parametrize("mechanism", ["sips", "weighted-gaussian", "gw", "policy-laplace"])
@pytest.mark.parametrize("items", [1, 7, 100])
@pytest.mark.parametrize("guess", [1, 16, 5_000])
def test_is_what_the_plan_says(mechanism: str, items: int, guess: int) -> None:
    plan = dp_sips.plan(mechanism, epsilon=1, delta=1e-6, max_items=100)
    need = Needs(plan, items, guess)
    assert need.half == plan.users_needed(HALF, items)
    assert need.most == plan.users_needed(MOST, items)


def test_it_asks_less_often() -> None:
    need = Needs(dp_sips.plan("sips", epsilon=0.1, delta=1e-9), 100)
    assert (need.half, need.most) == (4234, 5239)
    assert len(need._known) < 26  # doubling and halving asks 26 times for the first alone


def test_the_curve_rises_from_nothing_through_what_is_needed() -> None:
    need = Needs(dp_sips.plan("sips", epsilon=1, delta=1e-6), 10)
    users, chances = zip(*need.curve(), strict=True)
    assert users[0] == chances[0] == 0
    assert list(chances) == sorted(chances)
    assert {need.half, need.most} <= set(users)
    assert chances[-1] > MOST


def test_no_number_is_enough() -> None:
    plan = dp_sips.plan(dp_sips.Gw(buffer=0.01), epsilon=1, delta=1e-6)
    with pytest.raises(UsageError):
        plan.users_needed(MOST)
    need = Needs(plan, 1)
    assert need.most is None
    assert need.curve()


def test_sizes_are_those_that_count() -> None:
    plan = dp_sips.plan("sips", epsilon=1, delta=1e-6, max_items=30)
    assert [need.items for need in needs_by_size(plan, 7, 31)] == [1, 2, 5, 7, 10, 20, 30]


def test_more_items_than_count_are_an_error_in_words() -> None:
    plan = dp_sips.plan("sips", epsilon=1, delta=1e-6, max_items=30)
    assert check_size(plan, 30) == 30
    with pytest.raises(UsageError, match="a user has 31 items, and only 30"):
        check_size(plan, 31)
