"""Plans of matching: seats from the coin's table, chances by hand, and what is refused."""

from typing import Any

import numpy as np
import pytest

from dp_sips import Matching, Single, UsageError, plan

ASKED: dict[str, Any] = {"epsilon": 1.765, "delta": 4.96e-5}


def step(mechanism: Any = None, **asked: Any) -> Any:
    return plan(mechanism or Matching(), **(asked or ASKED)).rounds[0]


class TestDesign:
    def test_seats_are_what_the_coin_needs(self) -> None:
        made = step()
        chances = made.coin.chances(np.arange(20.0))
        assert chances[made.seats - 1] < 0.95 <= chances[made.seats]
        enough = made.seats + made.spare
        assert chances[enough - 1] < 1 <= chances[enough]
        assert (made.seats, made.spare, made.laps) == (8, 5, 3)

    def test_all_of_the_budget_is_the_coins(self) -> None:
        """The very table of Single, with the same guarantee."""
        ours, single = plan(Matching(), **ASKED), plan(Single(), **ASKED)
        assert ours.rounds[0].coin == single.rounds[0].coin
        assert ours.guarantee == single.guarantee

    def test_rho(self) -> None:
        assert step(rho=0.5, delta=1e-5).coin.epsilon == pytest.approx(1.0, rel=1e-12)

    def test_a_sure_thing_needs_no_spare_seats(self) -> None:
        made = step(epsilon=28.0, delta=0.5)
        assert made.seats >= 1
        assert made.spare >= 0
        assert made.coin.chances(np.array([float(made.seats)]))[0] >= 0.95

    @pytest.mark.parametrize("laps", [0, 9, 1.5, True, "3"])
    def test_laps(self, laps: Any) -> None:
        with pytest.raises(UsageError, match="laps must be a whole number from 1 to 8"):
            Matching(laps=laps)

    def test_histogram(self) -> None:
        with pytest.raises(UsageError, match=r"histogram\['tea'\]"):
            Matching(histogram={"tea": -1})
        with pytest.raises(UsageError, match="histogram must be a mapping"):
            Matching(histogram=["tea"])  # type: ignore[arg-type]
        assert repr(Matching(histogram={"tea": 1})) == "Matching(laps=3, min_users=1)"

    def test_max_items_fit_into_a_key_and_a_chunk(self) -> None:
        with pytest.raises(UsageError, match="max_items must be at most 1048576 for matching"):
            plan(Matching(), max_items=2**20 + 1, **ASKED)

    def test_the_table_shows_the_numbers(self) -> None:
        row = plan(Matching(laps=2), **ASKED).table()[0]
        assert row | {"seats": 8, "spare": 5, "laps": 2, "median": 7.0} == row


class TestChances:
    @staticmethod
    def by_hand(users: int, items: int) -> float:
        """Return the mean over items that fill up one after the other."""
        made = step()
        votes = [0] * items
        for size in (made.seats, made.seats + made.spare):
            for item in range(items):
                took = min(users, size - votes[item])
                votes[item] += took
                users -= took
        return float(np.mean(made.coin.chances(np.array(votes, dtype=float))))

    @pytest.mark.parametrize("items", [1, 2, 7])
    @pytest.mark.parametrize("users", [1, 5, 8, 9, 10, 11, 15, 16, 17, 20, 56, 57, 63, 70, 500])
    def test_by_hand(self, users: int, items: int) -> None:
        found = plan(Matching(), **ASKED).release_probability(users, items)
        assert found == pytest.approx(self.by_hand(users, items), rel=1e-12)

    def test_one_item_is_single(self) -> None:
        ours, single = plan(Matching(), **ASKED), plan(Single(), **ASKED)
        for users in range(11):
            assert ours.release_probability(users) == single.release_probability(users)

    def test_a_chance_is_never_above_one(self) -> None:
        assert plan(Matching(), **ASKED).release_probability(10**9, 3) <= 1


def test_words() -> None:
    words = plan(Matching(), **ASKED).mechanism.words([step()])
    assert "one of 8 seats" in " ".join(words.split())
    assert "3 laps" in words
    assert "5 spare seats" in " ".join(words.split())
    assert "one half with 7 users" in " ".join(words.split())
    assert max(map(len, words.splitlines())) <= 80
