"""The mechanisms: frozen values that say how a budget becomes rounds."""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar, Protocol

from dp_sips.errors import UsageError, did_you_mean
from dp_sips.privacy.budget import check_number

# Shares further apart than e⁶⁰⁰ are none, or infinite, as floats.
_LARGEST_LOG = 600


class Mechanism(Protocol):
    """A way to choose items: named, frozen, and free of data."""

    name: ClassVar[str]

    def shares(self) -> tuple[float, ...]:
        """Return the relative share of the budget, ρ and δ alike, that each round gets."""


@dataclass(frozen=True)
class WeightedGaussian:
    """The paper's Algorithm 2: one round with the whole budget.

    Guarantee: δ-approximate ρ-zCDP (thm:naive_priv).
    """

    name: ClassVar[str] = "weighted-gaussian"

    def shares(self) -> tuple[float, ...]:
        """Return the one share."""
        return (1.0,)


@dataclass(frozen=True)
class Sips:
    """The paper's Algorithm 3, DP-SIPS: a few rounds with growing budgets.

    Each round removes what it found from the users' sets, so that the next one spends its weight
    on what is left.

    Guarantee: δ-approximate ρ-zCDP, by composition of its rounds (lem:comp).

    Attributes:
        rounds: I, how many rounds; the paper recommends 3 or more.
        ratio: r, a round's budget relative to the next one's; the paper recommends 0.2 to 0.4.
    """

    rounds: int = 3
    ratio: float = 1 / 3

    name: ClassVar[str] = "sips"

    def __post_init__(self) -> None:
        check_rounds(self.rounds)
        if not 0 < check_number("ratio", self.ratio) < math.inf:
            raise UsageError(f"ratio must be positive and finite, got {self.ratio}")
        if abs(math.log(self.ratio)) * (self.rounds - 1) > _LARGEST_LOG:
            raise UsageError(
                f"ratio must be nearer to 1 for {self.rounds} rounds, got {self.ratio}"
            )

    def shares(self) -> tuple[float, ...]:
        """Return r^(I−1−i) for round i: Algorithm 3, lines 3–6, before they are normalised."""
        return tuple(self.ratio ** (self.rounds - 1 - i) for i in range(self.rounds))


def check_rounds(rounds: object) -> None:
    """Refuse anything but a whole number of at least 1."""
    if isinstance(rounds, bool) or not isinstance(rounds, Integral) or int(rounds) < 1:
        raise UsageError(f"rounds must be a whole number of at least 1, got {rounds!r}")


MECHANISMS: dict[str, type[Mechanism]] = {m.name: m for m in (WeightedGaussian, Sips)}
"""Every mechanism by its name."""


def find_mechanism(mechanism: str | Mechanism) -> Mechanism:
    """Return the mechanism with this name and its defaults, or the mechanism itself."""
    if isinstance(mechanism, str):
        if mechanism not in MECHANISMS:
            raise UsageError(
                f"unknown mechanism {mechanism!r}: {did_you_mean(mechanism, MECHANISMS)}"
            )
        return MECHANISMS[mechanism]()
    if not isinstance(mechanism, tuple(MECHANISMS.values())):
        raise UsageError(
            f"mechanism must be a name or a mechanism such as Sips(rounds=3), got {mechanism!r}"
        )
    return mechanism
