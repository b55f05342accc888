"""Reduced weights over sets as arrays: the largest contributions to each item, taken out again.

For one item, users whose claims have the least total give most (`weights.claimed_weight` falls with
the total, and so does the weight of one of k items with k). So users come in the order of their
totals, and the first m − 1 who give to an item are those who give most to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.memory import reducing
from dp_sips.engines.memory.sets import cuts
from dp_sips.privacy.arrays import Claims, Weights

_SHORT: Final = 1 << 16
NO_TABLE: Final[Weights] = np.empty(0, dtype=np.uint64)

ForAll = Callable[[Callable[[tuple[int, int]], None], list[tuple[int, int]]], Any]
"""Calls a function for each of these ranges, side by side."""


@dataclass(frozen=True)
class Givers:
    """Users, their sets, and what they give by.

    Attributes:
        items: Numbers of items.
        ends: The items of user u are items[ends[u − 1] : ends[u]].
        claims: The claim of each item; 0 where it is in nobody's set.
        max_items: How many items of a user count.
        table: What each of k items gets, where all claims are 1; empty where claims decide.
        step_bits: The lattice of weights by claims.
    """

    items: NDArray[np.uint32]
    ends: NDArray[np.uint64]
    claims: Claims
    max_items: int
    table: Weights
    step_bits: int

    def reduce(self, weights: Weights, min_users: int, threads: int, for_all: ForAll) -> None:
        """Take the min_users − 1 largest contributions from the weight of each item.

        Each thread goes through all users, and has some of the items.
        """
        totals = np.zeros(len(self.ends), dtype=np.uint32)

        def add(share: tuple[int, int]) -> None:
            reducing.add_claims(self.items, self.ends, self.claims, self.max_items, totals, *share)

        for_all(add, cuts(self.ends, threads))
        order, taken = _by_total(totals), np.zeros(len(weights), dtype=np.uint32)

        def take(share: tuple[int, int]) -> None:
            reducing.take_largest(
                self.items,
                self.ends,
                self.claims,
                totals,
                order,
                self.table,
                self.step_bits,
                min_users - 1,
                taken,
                weights,
                *share,
            )

        edges = np.linspace(0, len(weights), threads + 1).astype(int).tolist()
        for_all(take, list(pairwise(edges)))


def _by_total(totals: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return users in the order of their totals; 16 bits sort faster."""
    small = len(totals) and int(totals.max()) < _SHORT
    keys = totals.astype(np.uint16) if small else totals
    return np.argsort(keys, kind="stable").astype(np.uint32)
