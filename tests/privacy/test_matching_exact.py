"""Matching on small universes, without sampling: the theorem, the true δ(ε), and broken variants.

Given the votes, verdicts are independent coins, so the true δ(ε) between neighbours is a
hockey-stick divergence over all releases. Votes are the reference engine's; a variant is broken if
some neighbours exceed the promise, which is what the tests look for in each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.privacy.histories import verdicts

from dp_sips import Matching, plan
from dp_sips.auditing.divergence import true_delta
from dp_sips.engines.reference import ReferenceContributions
from dp_sips.mechanisms.matching import MatchingRound
from dp_sips.mechanisms.single import SingleRule
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.weights import UNIT

EPSILON, DELTA = 1.0, 0.05
ROUNDING = 1e-13
ITEMS = 4
Lists = list[list[int]]
"""The users' items in bounding order, users in the order of their turns."""

Votes = list[int]
Rule = Callable[[Lists, tuple[int, int, int]], Votes]
"""Votes of each item, given lists, and seats, spare seats and laps."""


def matched(lists: Lists, seating: tuple[int, int, int], items: int = ITEMS) -> Votes:
    """Return the votes as the mechanism has them; users whose first item is odd are loyal to it."""
    blocks: Any = {(i,): np.array([0, i + 1 << 56], dtype=np.uint64) for i in range(items)}
    sets: Any = [[(i,) for i in items] for items in lists]
    words = np.array([0 if mine[0] % 2 else 2**64 - 1 for mine in lists], dtype=np.uint64)
    loaded = ReferenceContributions(sets, [], blocks, pa.schema([]), user_words=words)
    weights = loaded.settle(*seating, items)
    return [weights.get((item,), 0) // UNIT for item in range(items)]


@dataclass(frozen=True)
class Neighbours:
    """Random lists, and the number of the user who is there in one data set only."""

    lists: Lists
    seating: tuple[int, int, int]
    gone: int

    @classmethod
    def draw(cls, random: Any, items: int, users: int) -> "Neighbours":
        sizes = random.integers(1, items + 1, random.integers(1, users))
        lists = [random.permutation(items)[:size].tolist() for size in sizes]
        seating = (
            int(random.integers(1, 4)),
            int(random.integers(0, 2)),
            int(random.integers(1, 3)),
        )
        return cls(lists, seating, int(random.integers(len(lists))))

    def votes(self, rule: Rule) -> tuple[Votes, Votes]:
        rest = self.lists[: self.gone] + self.lists[self.gone + 1 :]
        return rule(self.lists, self.seating), rule(rest, self.seating)


def neighbours(count: int, items: int = ITEMS, users: int = 12) -> list[Neighbours]:
    random = np.random.default_rng(1)
    return [Neighbours.draw(random, items, users) for _ in range(count)]


def delta_of(pair: tuple[Votes, Votes], chances: Floats, epsilon: float) -> float:
    """Return the true δ(ε) of two neighbours' votes."""
    one, other = (
        dict(verdicts({item: chances[min(vote, len(chances) - 1)] for item, vote in enumerate(v)}))
        for v in pair
    )
    return true_delta(one, other, epsilon)


def table(epsilon: float = EPSILON, delta: float = DELTA) -> Floats:
    return SingleRule(epsilon, delta).chances(np.arange(60.0))


def worst(rule: Rule, chances: Floats, count: int = 400) -> float:
    return max(delta_of(each.votes(rule), chances, EPSILON) for each in neighbours(count))


def largest_step(rule: Rule, drawn: list[Neighbours]) -> int:
    """Return by how much an additional user changes all votes together."""
    return max(sum(abs(a - b) for a, b in zip(*each.votes(rule), strict=True)) for each in drawn)


class TestPromise:
    def test_one_vote_at_most(self) -> None:
        for each in neighbours(600):
            steps = [a - b for a, b in zip(*each.votes(matched), strict=True)]
            assert min(steps) >= 0
            assert sum(steps) <= 1

    def test_delta_is_reached_and_not_exceeded(self) -> None:
        found = worst(matched, table())
        assert found <= DELTA + ROUNDING
        assert found == pytest.approx(DELTA, rel=1e-6)

    @pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.0, 4.0])
    def test_every_epsilon(self, epsilon: float) -> None:
        made = plan(Matching(), epsilon=EPSILON, delta=DELTA)
        step: MatchingRound = made.rounds[0]
        chances, promised = (
            step.coin.chances(np.arange(60.0)),
            made.guarantee.delta(epsilon=epsilon),
        )
        for each in neighbours(200):
            assert delta_of(each.votes(matched), chances, epsilon) <= promised + ROUNDING


class TestCoins:
    def test_a_coin_of_twice_the_slope_is_caught(self) -> None:
        assert worst(matched, table(2 * EPSILON)) > 1.5 * DELTA

    def test_a_table_that_is_one_vote_too_generous_is_caught(self) -> None:
        assert worst(matched, np.append(0.0, table()[2:])) > 1.5 * DELTA


def fullest_first(lists: Lists, seating: tuple[int, int, int]) -> Votes:
    """Users prefer the fullest of their items that has a free seat."""
    votes = [0] * ITEMS
    for items in lists:
        free = [item for item in items if votes[item] < seating[0]]
        if free:
            votes[max(free, key=lambda item: votes[item])] += 1
    return votes


def turns_that_change(lists: Lists, seating: tuple[int, int, int]) -> Votes:
    """Turns are shuffled anew for each number of users."""
    order = np.random.default_rng(len(lists)).permutation(len(lists))
    return matched([lists[n] for n in order], seating)


def lists_by_appearance(lists: Lists, seating: tuple[int, int, int]) -> Votes:
    """The items' order is that of their first rows, which a user can change for all others."""
    seen = list(dict.fromkeys(item for items in lists for item in items))
    names = {item: place for place, item in enumerate(seen)}
    votes = matched([sorted(names[item] for item in items) for items in lists], seating)
    return [votes[names[item]] if item in names else 0 for item in range(ITEMS)]


def votes_given_back(lists: Lists, seating: tuple[int, int, int]) -> Votes:
    """Items with a single vote give it back, and are taken from all lists."""
    hopeless = {item for item, votes in enumerate(matched(lists, seating)) if votes == 1}
    left = [[item for item in items if item not in hopeless] for items in lists]
    return matched([items for items in left if items], seating)


class TestOtherRules:
    @pytest.mark.parametrize(
        "rule", [fullest_first, turns_that_change, lists_by_appearance, votes_given_back]
    )
    def test_votes_that_move_further_are_caught(self, rule: Rule) -> None:
        assert largest_step(rule, neighbours(400)) > 1
        assert worst(rule, table()) > 1.2 * DELTA


class TestEnd:
    """Rounds in which all who stand ask once: only larger universes show that all must end."""

    @staticmethod
    def rounds(lists: Lists, keys: Lists, seats: int, most: int) -> dict[int, int]:
        places = [0] * len(lists)
        seated: dict[int, list[tuple[int, int]]] = {}
        standing = set(range(len(lists)))
        for _ in range(most):
            for user in sorted(standing):
                if places[user] < len(lists[user]):
                    item, key = lists[user][places[user]], keys[user][places[user]]
                    seated.setdefault(item, []).append((key, user))
                    places[user] += 1
                    standing.discard(user)
            for item, row in seated.items():
                kept = sorted(row)[:seats]
                standing |= {user for _, user in set(row) - set(kept)}
                seated[item] = kept
        return {item: len(row) for item, row in seated.items()}

    def largest_steps(self, most: int, trials: int) -> set[int]:
        random = np.random.default_rng(5)
        found = set()
        for _ in range(trials):
            users, items = int(random.integers(3, 14)), int(random.integers(3, 9))
            seats = int(random.integers(1, 3))
            lists: Lists = [
                random.permutation(items)[: random.integers(1, items + 1)].tolist()
                for _ in range(users)
            ]
            keys: Lists = [random.integers(0, 10**6, len(x)).tolist() for x in lists]
            one = self.rounds(lists, keys, seats, most)
            other = self.rounds(lists[1:], keys[1:], seats, most)
            found.add(sum(abs(one.get(i, 0) - other.get(i, 0)) for i in range(items)))
        return found

    def test_stopping_early_is_caught(self) -> None:
        assert max(self.largest_steps(most=4, trials=4000)) > 1

    def test_until_nobody_stands(self) -> None:
        assert self.largest_steps(most=200, trials=300) == {0, 1}
