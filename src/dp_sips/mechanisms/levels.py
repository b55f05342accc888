"""Releases one after the other, each among what the earlier ones left, under one guarantee.

    for level = 1 … L:
        keep the rows whose parts were released at the level before
        release_level ← a mechanism of this package, with noise and bounding bits of its own

Guarantee: the list of all L releases has the curve of `LevelsGuarantee`, and is (ε, δ)-DP, or
δ-approximate ρ-zCDP, where that was asked for.

Proof. Which rows of a user count at a level is a rule for each row by itself, given the releases
before, which are public. So on neighbouring data sets the rows that count differ by one user, and
given the releases before, level i has the guarantee of its mechanism. The whole is an adaptive
composition of curves that do not depend on what was released: `composition.py` bounds it. (The last
level's part depends on the curves before it, which are the same whatever was released.)

ρ adds up, and δ = 1 − Π(1 − δ_i) (Bun and Steinke's Lemma 8.2): the paper's statement.

A look. Where a level's mechanism is chosen by a look at the data, which path is taken may depend on
what earlier levels released. A product of curves bounds no such choice, so levels with looks spend
their parts (ε_i, δ_i) and no more: level i, with its look, is (ε_i, δ_i)-DP whatever came before
(`auto.py`), and these add up to at most the point (ε, δ), which is all that is stated. ∎

Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final, Self

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design, EpsilonDelta, Mechanism, RhoDelta
from dp_sips.mechanisms.composition import Composition, Spending
from dp_sips.mechanisms.point import PointGuarantee
from dp_sips.privacy.budget import Accounting, Budget, compose, rounded_up
from dp_sips.privacy.guarantee import LARGEST_EPSILON, Guarantee, SamplerCost
from dp_sips.validation import check_positive

MOST_LEVELS: Final = 16
"""With more levels than this, each would have too little to release anything."""

# What every level leaves of its part: sums of all stay below the whole, however they are rounded.
_ROOM: Final = 5 * 2.0**-11
# What the last level leaves of its δ, for the tails of the composition.
_LAST_DELTA: Final = 0.9
# How often the last level's ε is halved towards the largest that is left.
_TRIALS: Final = 6


def check_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """Return the levels' parts of the budget, as numbers that add up to one."""
    if not 1 < len(shares) <= MOST_LEVELS:
        raise UsageError(f"levels are 2 to {MOST_LEVELS}, got {len(shares)}")
    parts = [check_positive("a level's share", share) for share in shares]
    return tuple(part / math.fsum(parts) for part in parts)


def parts_of(asked: Asked, shares: Sequence[float]) -> list[Asked]:
    """Return what each level may spend, so that all levels stay within what was asked."""
    if isinstance(asked, RhoDelta):
        whole = Budget.from_rho(asked.rho, asked.delta)
        return [RhoDelta(part.rho, part.delta) for part in whole.split(shares)]
    epsilon = min(asked.epsilon, LARGEST_EPSILON) * (1 - _ROOM)
    deltas = [asked.delta * (1 - _ROOM) * share for share in shares]
    deltas[-1] *= _LAST_DELTA
    return [EpsilonDelta(epsilon * s, d) for s, d in zip(shares, deltas, strict=True)]


@dataclass(frozen=True)
class LevelsGuarantee(Guarantee):
    """The guarantee of releases that follow each other: the composition of their curves.

    Attributes:
        parts: The guarantee of each.
        reach: The ε that matters most.
    """

    parts: tuple[Guarantee, ...]
    reach: float

    @classmethod
    def of(cls, parts: Sequence[Guarantee], reach: float) -> Self:
        """Return the guarantee of these releases, tight for ε up to about `reach`."""
        whole = compose(Budget(part.rho, part.threshold_delta) for part in parts)
        cost = SamplerCost(
            rounded_up(math.fsum(part.sampler.loss for part in parts)),
            rounded_up(math.fsum(part.sampler.tail for part in parts)),
        )
        return cls(whole.rho, whole.delta, cost, tuple(parts), min(reach, LARGEST_EPSILON))

    @classmethod
    def of_budgets(cls, parts: Sequence[Guarantee]) -> Self:
        """Return the guarantee of releases that were asked for in ρ."""
        whole = compose(Budget(part.rho, part.threshold_delta) for part in parts)
        return cls.of(parts, whole.epsilon(min(2 * whole.delta, (1 + whole.delta) / 2)))

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the releases are (ε, δ)-DP, rounded up."""
        if accounting == "zcdp":
            return super().epsilon(delta=delta, accounting=accounting)
        return self._composed.epsilon(delta)

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return a δ for which the releases are (ε, δ)-DP, rounded up."""
        if accounting == "zcdp":
            return super().delta(epsilon=epsilon, accounting=accounting)
        return self._composed.delta(epsilon)

    @cached_property
    def _composed(self) -> Composition:
        return Composition(tuple(_spending(part, self.reach) for part in self.parts), self.reach)


_spending = lru_cache(maxsize=64)(Spending.of)


def _point_of(asked: EpsilonDelta) -> PointGuarantee:
    """Return what is stated of levels whose mechanisms were chosen by looks: what was asked."""
    epsilon = min(asked.epsilon, LARGEST_EPSILON)
    return PointGuarantee.of(epsilon, asked.delta, SamplerCost(0.0, 0.0))


def promised_by(asked: Asked, planned: Sequence[Guarantee]) -> Guarantee:
    """Return what levels with these plans will have spent at most: what was asked for."""
    return LevelsGuarantee.of_budgets(planned) if isinstance(asked, RhoDelta) else _point_of(asked)


def whole_of(asked: Asked, spent: Sequence[Guarantee], *, looked: bool) -> Guarantee:
    """Return the guarantee of all levels, which spent this, after looks or without any."""
    if isinstance(asked, RhoDelta):
        return LevelsGuarantee.of_budgets(spent)
    if looked:
        return _point_of(asked)
    return asked.about(LevelsGuarantee.of(spent, asked.epsilon))


def with_the_rest(
    asked: Asked, spent: Sequence[Guarantee], part: Asked, mechanism: Mechanism, max_items: int
) -> Design | None:
    """Return the last level's design for the largest ε that composition leaves.

    None, where nothing is to be gained beyond its part.

    Guarantee: all levels together have δ(ε) ≤ δ, in floats.
    """
    if isinstance(asked, RhoDelta) or isinstance(part, RhoDelta):
        return None
    found, epsilon = None, min(asked.epsilon, LARGEST_EPSILON)
    low, high = part.epsilon, epsilon
    for _ in range(_TRIALS):
        middle = (low + high) / 2
        design = _design(mechanism, EpsilonDelta(middle, part.delta), max_items)
        if design and _delta(spent, design, epsilon) <= asked.delta:
            low, found = middle, design
        else:
            high = middle
    return found


def _design(mechanism: Mechanism, asked: EpsilonDelta, max_items: int) -> Design | None:
    try:
        design = mechanism.design(asked, max_items)
    except UsageError:
        return None
    return replace(design, guarantee=asked.about(design.guarantee))


def _delta(spent: Sequence[Guarantee], last: Design, epsilon: float) -> float:
    return LevelsGuarantee.of([*spent, last.guarantee], epsilon).delta(epsilon=epsilon)
