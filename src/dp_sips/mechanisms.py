"""The mechanisms: frozen values that say how a budget becomes rounds."""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar, Protocol

from dp_sips.errors import UsageError, did_you_mean
from dp_sips.privacy.budget import check_number
from dp_sips.privacy.evidence import Schedule

# Shares further apart than e⁶⁰⁰ are none, or infinite, as floats.
_LARGEST_LOG = 600
# Rounds of cumulative evidence further apart than a factor of e²⁵ are none beside each other.
_LARGEST_GROWTH = 25


class Mechanism(Protocol):
    """A way to choose items: named, frozen, and free of data."""

    name: ClassVar[str]
    default_max_items: ClassVar[int]


@dataclass(frozen=True)
class WeightedGaussian:
    """The paper's Algorithm 2: one round with the whole budget.

    Guarantee: δ-approximate ρ-zCDP (thm:naive_priv).
    """

    name: ClassVar[str] = "weighted-gaussian"
    default_max_items: ClassVar[int] = 100

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
    default_max_items: ClassVar[int] = 100

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


@dataclass(frozen=True)
class Cumulative:
    """Cumulative evidence: SIPS that forgets nothing, and gives up on the hopeless.

    Each round adds its noisy weights to what earlier rounds learnt about an item, so that the whole
    budget speaks for every borderline item. Items whose evidence is hopeless leave the users' sets
    without being released, and their weight moves to items that still have a chance. Users' sets
    are cut to max_items once, for all rounds.

    Guarantee: (ε, δ)-DP, or δ-approximate ρ-zCDP, by the theorem in privacy/evidence.py. This
    mechanism is not the paper's.

    Attributes:
        rounds: I, how many rounds.
        growth: How much more of the budget each round gets than the one before.
        first_drop: Evidence below so many deviations of its noise is hopeless after round 1 …
        last_drop: … and after the last round but one; rounds in between go evenly.
    """

    rounds: int = 12
    growth: float = 1.2
    first_drop: float = -2.0
    last_drop: float = 3.0

    name: ClassVar[str] = "cumulative"
    default_max_items: ClassVar[int] = 300

    def __post_init__(self) -> None:
        check_rounds(self.rounds)
        if not 0 < check_number("growth", self.growth) < math.inf:
            raise UsageError(f"growth must be positive and finite, got {self.growth}")
        if abs(math.log(self.growth)) * (self.rounds - 1) > _LARGEST_GROWTH:
            raise UsageError(
                f"growth must be nearer to 1 for {self.rounds} rounds, got {self.growth}"
            )
        for name in ("first_drop", "last_drop"):
            if not math.isfinite(check_number(name, getattr(self, name))):
                raise UsageError(f"{name} must be finite, got {getattr(self, name)}")

    def schedule(self) -> Schedule:
        """Return the constants of the mechanism as its accounting wants them."""
        step = (self.last_drop - self.first_drop) / max(1, self.rounds - 1)
        return Schedule(
            shares=tuple(self.growth**i for i in range(self.rounds)),
            drops=tuple(self.first_drop + step * i for i in range(self.rounds)),
            margin=0.2,
            patience=8.0,
        )


@dataclass(frozen=True)
class SipsRule(Sips):
    """SIPS with a release rule instead of noise and a threshold.

    Only verdicts leave, so each item gets a coin instead of noise: its chance of release is as
    high as privacy allows for its weight. Like SIPS it removes what it found, and re-truncates.

    Guarantee: (ε, δ)-DP, by the proof in privacy/rule.py. The idea of such rules is Harrison and
    Manurangsi's; `rho=` has no meaning here.
    """

    name: ClassVar[str] = "sips-rule"


MECHANISMS: dict[str, type[Mechanism]] = {
    m.name: m for m in (WeightedGaussian, Sips, SipsRule, Cumulative)
}
"""Every mechanism by its name."""


def find_mechanism(mechanism: str | Mechanism) -> Mechanism:
    """Return the mechanism with this name and its defaults, or the mechanism itself."""
    if isinstance(mechanism, str):
        if mechanism not in MECHANISMS:
            known = ("auto", *MECHANISMS)
            raise UsageError(f"unknown mechanism {mechanism!r}: {did_you_mean(mechanism, known)}")
        return MECHANISMS[mechanism]()
    if not isinstance(mechanism, tuple(MECHANISMS.values())):
        raise UsageError(
            f"mechanism must be a name or a mechanism such as Sips(rounds=3), got {mechanism!r}"
        )
    return mechanism
