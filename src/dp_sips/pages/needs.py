"""How many users an item needs, for many numbers of items a user, in few evaluations.

A chance can take a mechanism hundredths of a second. `Needs` keeps those that it knows, and looks
first where the probits of its neighbours point: the answers are those of `Plan.users_needed`.
"""

from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Final

from dp_sips.errors import UsageError
from dp_sips.plan import Plan

HALF, MOST = 0.5, 0.95
"""The chances that pages show."""

_NORMAL: Final = NormalDist()
_LEAST: Final = 1e-9
_MOST_USERS: Final = 1 << 34
_LARGEST_SIZE: Final = 1000


@dataclass(frozen=True)
class Needs:
    """The chances of items whose holders have `items` items each."""

    plan: Plan
    items: int
    guess: int = 16

    _known: dict[int, float] = field(default_factory=dict, repr=False)

    def chance(self, users: int) -> float:
        """Return `Plan.release_probability`, computed once."""
        if users not in self._known:
            self._known[users] = self.plan.release_probability(users, self.items)
        return self._known[users]

    @cached_property
    def half(self) -> int | None:
        """How many users an item needs for a 50 % chance; None if no number is enough."""
        return self._needed(HALF)

    @cached_property
    def most(self) -> int | None:
        """The same for 95 %."""
        return self._needed(MOST)

    def curve(self, points: int = 24) -> list[tuple[float, float]]:
        """Return numbers of users and their chances, from none to nearly certain."""
        end = 2 * (self.half or self.guess) if self.most is None else round(1.25 * self.most)
        steps = sorted({round(end * n / points) for n in range(points + 1)} | self._found())
        return [(float(users), self.chance(users)) for users in steps]

    def _found(self) -> set[int]:
        return {users for users in (self.half, self.most) if users is not None}

    def _needed(self, probability: float) -> int | None:
        low, high = 0, max(1, self.guess)
        while self.chance(high) < probability:
            if high >= _MOST_USERS:
                return None
            low, high = high, 2 * high
        while high - low > 1:
            middle = self._between(low, high, probability)
            if self.chance(middle) < probability:
                low = max(low, middle)
            else:
                high = middle
        return high

    def _between(self, low: int, high: int, probability: float) -> int:
        """Return a number strictly between two, where their probits meet that of the chance."""
        goal, below, above = (
            _NORMAL.inv_cdf(min(max(chance, _LEAST), 1 - _LEAST))
            for chance in (probability, self.chance(low), self.chance(high))
        )
        share = (goal - below) / (above - below) if above > below else 0.5
        if self.chance(low) <= _LEAST or self.chance(high) >= 1 - _LEAST:
            share = 0.5
        return min(max(round(low + share * (high - low)), low + 1), high - 1)


def needs_by_size(plan: Plan, *more: int) -> list[Needs]:
    """Return the needs for 1, 2, 5, 10 … items a user, as far as they count, and for more."""
    most = min(plan.max_items, _LARGEST_SIZE)
    usual = {step * 10**power for power in range(4) for step in (1, 2, 5)} | {most, *more}
    found: list[Needs] = []
    for size in sorted(size for size in usual if size <= most):
        guess = (found[-1].half if found else None) or 16
        found.append(Needs(plan, size, guess))
    return found


def check_size(plan: Plan, items: int) -> int:
    """Reject more items a user than count: only some of them would, at random."""
    if items > plan.max_items:
        raise UsageError(
            f"a user has {items:,} items, and only {plan.max_items:,} of a user's items count "
            "(max_items): raise max_items, or lower the items a user has"
        )
    return items
