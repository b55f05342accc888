"""Small universes without sampling: the probability of every history, and the true δ(ε).

Given the weights, the verdicts of a round are independent coins, so the distribution over all
histories of verdicts can be written down.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from dp_sips.auditing.divergence import true_delta

Sets = list[list[tuple[object, ...]]]
Histories = dict[tuple[Any, ...], float]
Chances = Callable[[Sets, Any], Mapping[Any, float]]
"""The chance of each item in a round, from the users' sets and the round."""


def verdicts(chances: Mapping[Any, float]) -> Iterator[tuple[frozenset[Any], float]]:
    """Return each set of items that coins can release, and its probability."""
    likely = {item: chance for item, chance in chances.items() if chance > 0}
    for heads in product((False, True), repeat=len(likely)):
        released = frozenset(item for item, yes in zip(likely, heads, strict=True) if yes)
        yield released, math.prod(p if i in released else 1 - p for i, p in likely.items())


def histories(sets: Sets, rounds: tuple[Any, ...], chances: Chances) -> Histories:
    """Return the probability of each sequence of released sets."""
    if not rounds:
        return {(): 1.0}
    step, *later = rounds
    found: Histories = {}
    for released, odds in verdicts(chances(sets, step)):
        left = [[item for item in items if item not in released] for items in sets]
        for rest, more in histories(left, tuple(later), chances).items():
            found[(released, *rest)] = odds * more
    return found


def worst_delta(sets: Sets, rounds: tuple[Any, ...], epsilon: float, chances: Chances) -> float:
    """Return the true δ(ε) over all users that can be removed."""
    whole = histories(sets, rounds, chances)
    neighbours = (without(sets, list(kind)) for kind in {tuple(items) for items in sets})
    return max(true_delta(whole, histories(rest, rounds, chances), epsilon) for rest in neighbours)


def without(sets: Sets, one: list[tuple[object, ...]]) -> Sets:
    """Return the sets with one user less."""
    rest = list(sets)
    rest.remove(one)
    return rest


def crowd(*counts: tuple[tuple[int, ...], int]) -> Sets:
    """Return a given number of users with each ordered set of items."""
    return [[(item,) for item in items] for items, count in counts for _ in range(count)]
