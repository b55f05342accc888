"""Reduced weights: the lemma, on random lists, and what it says about broken variants."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.errors import UsageError
from dp_sips.mechanisms.min_users import check_min_users, counted_holders, reduced

lists = st.lists(st.integers(0, 40), max_size=12)
least = st.integers(1, 6)
Reduced = Callable[[list[int], int], int]


class TestLemma:
    @given(lists, st.integers(0, 40), least)
    def test_a_user_who_joins_adds_at_most_their_own(
        self, given_: list[int], own: int, m: int
    ) -> None:
        assert 0 <= reduced([*given_, own], m) - reduced(given_, m) <= own

    @given(lists, least)
    def test_fewer_than_m_users_are_nothing(self, given_: list[int], m: int) -> None:
        assert reduced(given_[: m - 1], m) == 0

    @given(lists)
    def test_of_one_user_all_counts(self, given_: list[int]) -> None:
        assert reduced(given_, 1) == sum(given_)

    def test_all_lists_of_small_numbers(self) -> None:
        assert not any(breaks(reduced, m) for m in (1, 2, 3))


def without_smallest(given_: list[int], m: int) -> int:
    return sum(sorted(given_)[m - 1 :])


def if_enough(given_: list[int], m: int) -> int:
    return sum(given_) if len(given_) >= m else 0


def without_first(given_: list[int], m: int) -> int:
    return sum(given_[m - 1 :])


def without_average(given_: list[int], m: int) -> int:
    return sum(given_) * (len(given_) - m + 1) // len(given_) if len(given_) >= m else 0


def breaks(rule: Reduced, m: int) -> bool:
    """Whether some user, who may come anywhere, moves the rule by more than they give."""
    return any(
        not 0 <= rule([*given_[:place], own, *given_[place:]], m) - rule([*given_], m) <= own
        for size in range(5)
        for given_ in itertools.product((1, 2, 4), repeat=size)
        for own in (1, 2, 4)
        for place in range(size + 1)
    )


@pytest.mark.parametrize("rule", [without_smallest, if_enough, without_first, without_average])
def test_other_rules_break_the_lemma(rule: Reduced) -> None:
    assert breaks(rule, 3)


@given(lists, least)
def test_no_rule_with_the_lemma_is_larger(given_: list[int], m: int) -> None:
    """Let the smallest leave one by one: each takes at most their own, and 0 is left at the end."""
    smallest = sorted(given_)[: max(0, len(given_) - m + 1)]
    assert reduced(given_, m) == sum(smallest)


def test_holders_who_count() -> None:
    assert counted_holders(np.array([0.0, 4.0, 5.0, 9.0]), 5).tolist() == [0, 0, 1, 5]


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "3", 1_000_001])
def test_what_m_may_be(wrong: object) -> None:
    with pytest.raises(UsageError, match="min_users must be a whole number from 1 to 1000000, got"):
        check_min_users(wrong)
