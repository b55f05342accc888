"""What an item needs, and what would change it: every number is a plan's."""

import re
from typing import Any

import pytest

import dp_sips


def test_numbers_are_those_of_the_plans() -> None:
    plan = dp_sips.plan("sips", epsilon=1, delta=1e-6)
    words = plan.levers()
    for items in (1, 10, 100):
        needed = plan.users_needed(0.95, items)
        assert f"{needed} who have {items} item" in words
    more = dp_sips.plan("sips", epsilon=2, delta=1e-6).users_needed(0.95, 10)
    now = plan.users_needed(0.95, 10)
    assert f"- epsilon 2 instead of 1: {more} instead of {now} users" in words
    looser = dp_sips.plan("sips", epsilon=1, delta=1e-5).users_needed(0.95, 10)
    assert f"- delta 1e-05 instead of 1e-06: {looser} instead of {now} users" in words
    assert "coarser items" in words


def test_rho() -> None:
    words = dp_sips.plan("weighted-gaussian", rho=0.1, delta=1e-5).levers()
    more = dp_sips.plan("weighted-gaussian", rho=0.4, delta=1e-5).users_needed(0.95, 10)
    assert f"- rho 0.4 instead of 0.1: {more} instead of" in words


def test_nothing_unwise_is_advised() -> None:
    words = dp_sips.plan("sips", epsilon=6, delta=5e-4).levers()
    assert "epsilon" not in words
    assert "delta" not in words


def test_min_users_and_public_items() -> None:
    plan = dp_sips.plan("sips", epsilon=1, delta=1e-6, min_users=50)
    now, more = (
        p.users_needed(0.95, 10)
        for p in (plan, dp_sips.plan("sips", epsilon=2, delta=1e-6, min_users=50))
    )
    free = dp_sips.plan("sips", epsilon=1, delta=1e-6).users_needed(0.95, 10)
    words = plan.levers(lambda name: f"<{name}>")
    assert f"- without <min_users> 50: {free} instead of {now} users" in words
    assert f"- <epsilon> 2 instead of 1: {more} instead of {now} users" in words
    assert "- <public_items>: what is public anyway" in words
    assert "min_users" not in dp_sips.plan("sips", epsilon=1, delta=1e-6).levers()


def test_min_users_of_a_mechanism_is_its_own() -> None:
    own = dp_sips.plan(dp_sips.Sips(min_users=50), epsilon=1, delta=1e-6)
    assert own.min_users == 50
    assert "without min_users 50" in own.levers()


def test_few_items_that_count() -> None:
    words = dp_sips.plan("sips", epsilon=1, delta=1e-6, max_items=3).levers()
    assert "for users with 3 items each" in words
    assert "without max_items 3, more items" in words


@pytest.fixture(scope="module")
def counts() -> dp_sips.Counts:
    few = {f"user {n}": ["tea"] for n in range(2)}
    return dp_sips.count_users(few, epsilon=1, delta=1e-6, mechanism="sips", progress=False)


def test_of_counts_the_selection_has_a_part(counts: Any) -> None:
    """Doubling ε doubles the selection's part, not more."""
    said = re.search(r"epsilon 2 instead of 1: (\d+) instead of (\d+)", counts.plan.levers())
    assert said
    more, now = map(int, said.groups())
    twice = dp_sips.count_users({}, epsilon=2, delta=1e-6, mechanism="sips", progress=False)
    assert more == twice.plan.users_needed(0.95, 10)
    assert now == counts.plan.users_needed(0.95, 10)


def test_given_keys_have_no_levers() -> None:
    counts = dp_sips.count_users({}, keys=["tea"], epsilon=1, delta=1e-6, progress=False)
    assert counts.plan.levers().startswith("The items are given; their users are counted.")
