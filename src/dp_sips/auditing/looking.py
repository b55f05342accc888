"""The choice that `auto` makes after a private look, audited exactly, number by number.

The look adds noise to three numbers: of users, of lengths, and a difference of yields. Given what
the others came out as, the choice is a coin whose chance `probing.py` finds from `choose` itself.
The engine measures the numbers on both neighbours. How far the coin's log odds move is that
number's ε, and the ε of an adaptive composition add up: they must not exceed what the look spends.

Rows have δ at ε = 0, of a choice that is e-DP: (e^e − 1)/(e^e + 1) at most, which is tanh(e/2).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dp_sips.auditing.neighbours import Neighbours
from dp_sips.auditing.probing import LARGEST, Dial, chances
from dp_sips.auditing.worlds import Worlds
from dp_sips.engines.base import Engine
from dp_sips.plan import Plan
from dp_sips.privacy.arrays import Blocks, Bools, Weights
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source

_USERS: Final = 40


def _everybody(items: int, extra: int) -> Neighbours:
    """All users have the same items, and the additional one has the first few, or more."""
    return Neighbours((tuple(range(items)),) * _USERS, tuple(range(extra)))


LOOKS: Final = tuple(
    _everybody(*sizes) for sizes in ((3, 1), (3, 200), (8, 1), (8, 64), (64, 64), (64, 200))
)
"""Neighbours with lists of all lengths, and a user who moves lengths down or up, or 64 items."""


@dataclass(frozen=True)
class Sums:
    """What a look measures, as contributions that know nothing else.

    Attributes:
        users: What is measured of users: their number, and their lengths.
        items: What is measured of items: the yields of both branches.
    """

    users: tuple[int, ...]
    items: tuple[int, ...]

    def replayed(self) -> "Replayed":
        """Return contributions that have these sums."""
        return Replayed(iter(self.users), iter(self.items))


@dataclass(frozen=True)
class Replayed:
    """Contributions whose sums are known, in the order in which a look asks for them."""

    users: Iterator[int]
    items: Iterator[int]

    def measure_users(self, measure: Any) -> int:
        """Return the next sum over users."""
        del measure
        return next(self.users)

    def measure_items(self, weights: Any, measure: Any) -> int:
        """Return the next sum over items."""
        del weights, measure
        return next(self.items)

    def __getattr__(self, name: str) -> Callable[..., None]:
        del name
        return _nothing


def _nothing(*args: Any, **options: Any) -> None:
    del args, options


class OneDial(Dial):
    """A dial for one of the numbers of a look; the others have next to no noise."""

    __slots__ = ("_fixed", "_place")

    def __init__(self, place: int) -> None:
        super().__init__()
        self._place = place
        still = Dial()
        still.turn(np.array([LARGEST]), 0)
        self._fixed = still(np.zeros((1, 2), dtype=np.uint64))

    def __call__(self, blocks: Blocks) -> Blocks:
        """Return the bits that were set for this number."""
        return super().__call__(blocks) if blocks[0, 0] == self._place else self._fixed


def look_rows(plan: Plan, engine: Engine) -> Iterator[tuple[str, float, float]]:
    """Return the δ at ε = 0 of early and of late choices: found, and promised."""
    look: Any = plan.look
    pairs = [tuple(measured(plan, engine, n, extra=e) for e in (True, False)) for n in LOOKS]
    found = [max(moved(look, one, other, place) for one, other in pairs) for place in range(3)]
    ends = (("look, two numbers", look.early_short, 2), ("look, all numbers", look.short, 3))
    for name, branch, numbers in ends:
        promised = look.spent(branch) + look.sampler.loss
        yield name, math.tanh(sum(found[:numbers]) / 2), math.tanh(promised / 2)


def measured(plan: Plan, engine: Engine, pair: Neighbours, *, extra: bool) -> Sums:
    """Let an engine measure what the look needs."""
    table = Worlds.of([pair]).table(extra=extra)
    source = open_source(table, user="u", item="i", nulls="error")
    loaded = engine.load(source, plan.bounds, Key.for_tests(1), Progress(show=False))
    with closing(loaded):
        return _recorded(plan.look, loaded)


def _recorded(look: Any, loaded: Any) -> Sums:
    users: list[int] = []
    items: list[int] = []

    class Recorder:
        def measure_users(self, measure: Any) -> int:
            users.append(loaded.measure_users(measure))
            return users[-1]

        def measure_items(self, weights: Any, measure: Any) -> int:
            items.append(loaded.measure_items(weights, measure))
            return items[-1]

        def __getattr__(self, name: str) -> Any:
            return getattr(loaded, name)

    look.measure(Recorder())
    # `measure` asks for lengths first.
    return Sums(tuple(reversed(users)), tuple(items))


def moved(look: Any, one: Sums, other: Sums, place: int) -> float:
    """Return how far a user moves the log odds of a choice, through one number alone."""
    if place >= len(one.users):
        return _apart(look, (one, replace(one, items=other.items)), place, look.short)
    users = list(one.users)
    users[place] = other.users[place]
    pair = one, replace(one, users=tuple(users))
    # As a number grows, each of these begins or ends once; what lies between them does both.
    return max(_apart(look, pair, place, b) for b in (look.early_short, look.early_long))


def _apart(look: Any, pair: tuple[Sums, Sums], place: int, branch: Any) -> float:
    (yes, no), (yes_, no_) = (_chances(look, sums, place, branch) for sums in pair)
    logs = [abs(math.log(a / b)) for a, b in ((yes, yes_), (no, no_)) if a > 0 and b > 0]
    return max(logs, default=0.0)


def _chances(look: Any, sums: Sums, place: int, branch: Any) -> tuple[float, float]:
    dial = OneDial(place)

    def chosen(blocks: Blocks, weights: Weights) -> Bools:
        del blocks, weights
        return np.array([look.choose(sums.replayed(), dial) is branch])

    yes, no = chances(chosen, dial, np.zeros((1, 2), dtype=np.uint64), np.zeros(1, np.uint64))
    return float(yes[0]), float(no[0])
