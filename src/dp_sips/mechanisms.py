"""The mechanisms: frozen values that say how a budget becomes rounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Protocol

from dp_sips.errors import UsageError, did_you_mean
from dp_sips.privacy.adaptive import MOST_ADAPTIVE
from dp_sips.privacy.budget import check_number
from dp_sips.privacy.evidence import Schedule

# Shares further apart than e⁶⁰⁰ are none, or infinite, as floats.
_LARGEST_LOG = 600
# Rounds of cumulative evidence further apart than a factor of e²⁵ are none beside each other.
_LARGEST_GROWTH = 25
_LARGEST_BUFFER = 1_000_000


class Mechanism(Protocol):
    """A way to choose items: named, frozen, and free of data.

    Attributes:
        name: What `mechanism=` calls it.
        default_max_items: Δ0 where none is given.
        sequential: Whether users take turns, so that a cluster is of no use.
        noise: What hides a user.
        good_for: When to choose it, in a few words.
    """

    name: ClassVar[str]
    default_max_items: ClassVar[int]
    sequential: ClassVar[bool]
    noise: ClassVar[str]
    good_for: ClassVar[str]


@dataclass(frozen=True)
class WeightedGaussian:
    """The paper's Algorithm 2: one round with the whole budget.

    Guarantee: δ-approximate ρ-zCDP (thm:naive_priv).
    """

    name: ClassVar[str] = "weighted-gaussian"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "one round: the simplest, and the paper's baseline"

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
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "the paper's mechanism: a few rounds, on any cluster"

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
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "most items from users with many items each"

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
    noise: ClassVar[str] = "coins"
    good_for: ClassVar[str] = "most items where few items of a user count"


@dataclass(frozen=True)
class Mad:
    """MAD, max-adaptive-degree weighting (Chen et al. 2025): DPSU's idea, in parallel.

    What popular items have above their need goes to the other items of their holders.

    Guarantee: δ-approximate ρ-zCDP. To prove: one user more moves the weights by an L2 norm of at
    most 1, through others too (privacy/adaptive.py).

    Attributes:
        buffer: An item needs the threshold plus so many σ.
        largest: d_max: users with more items than this do not adapt.
    """

    buffer: float = 2.0
    largest: int = 50

    name: ClassVar[str] = "mad"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "one adaptive round, on any cluster"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)
        largest: object = self.largest
        whole = isinstance(largest, Integral) and not isinstance(largest, bool)
        if not whole or not 1 < self.largest <= MOST_ADAPTIVE:
            raise UsageError(
                f"largest must be a whole number from 2 to {MOST_ADAPTIVE}, got {largest!r}"
            )


@dataclass(frozen=True)
class Mad2R(Mad):
    """MAD2R: a first round of MAD tells the second where weight is needed (Chen et al. 2025).

    Items that the first round shows to be hopeless are given up, and those that will do well anyway
    get less of a user's weight.

    Guarantee: δ-approximate ρ-zCDP, or (ε, δ)-DP, by adaptive composition of its two rounds.

    Attributes:
        share: The first round's share of the budget: of ρ and δ, or with "basic" of ε and δ.
        lowest: b_min: no item gets less of a user's weight, relative to an equal split …
        highest: b_max: … and none more.
        lower: C_lb: an item does well if its noisy weight less so many σ is above the threshold.
        upper: C_ub: it is hopeless if its noisy weight plus so many σ is below it.
        composition: "exact", or "basic" as published: ε and δ of the rounds add up.
    """

    share: float = 0.1
    lowest: float = 0.5
    highest: float = 2.0
    lower: float = 1.0
    upper: float = 3.0
    composition: str = "exact"

    name: ClassVar[str] = "mad2r"
    good_for: ClassVar[str] = "two adaptive rounds, on any cluster"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, low, high in (("share", 0, 1), ("lowest", 0, 1), ("highest", 1, math.inf)):
            value = check_number(name, getattr(self, name))
            inside = low < value < high or (value == 1 and name != "share")
            if not inside:
                raise UsageError(f"{name} must be between {low} and {high}, got {value}")
        for name in ("lower", "upper"):
            if not math.isfinite(check_number(name, getattr(self, name))):
                raise UsageError(f"{name} must be finite, got {getattr(self, name)}")
        if self.composition not in {"exact", "basic"}:
            raise UsageError(f"composition must be 'exact' or 'basic', got {self.composition!r}")


@dataclass(frozen=True)
class Dpsu:
    """DPSU, the Policy Gaussian of Gopi et al. 2020: users fill up items, one after the other.

    Each user pays its items in proportion to what they still lack, up to a little above the
    threshold, so that no weight is wasted on items that are safe.

    Guarantee: δ-approximate ρ-zCDP, as recalibrated in the paper. To prove: one user more moves the
    weights by an L2 norm of at most 1, whatever the others do (privacy/policy.py).

    Attributes:
        buffer: An item is full at the threshold plus so many σ.
    """

    buffer: float = 5.0

    name: ClassVar[str] = "dpsu"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = True
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "short lists, on one machine: a strong baseline"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)


@dataclass(frozen=True)
class PolicyLaplace:
    """Policy Laplace, the L1 twin of DPSU, with Laplace noise (Gopi et al. 2020).

    Guarantee: (ε, δ)-DP, with all of ε for the noise and all of δ for the threshold. To prove: one
    user more moves the weights by an L1 norm of at most 1 (privacy/policy.py).

    Attributes:
        buffer: An item is full at the threshold plus so many scales of the noise.
    """

    buffer: float = 5.0

    name: ClassVar[str] = "policy-laplace"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = True
    noise: ClassVar[str] = "Laplace"
    good_for: ClassVar[str] = "comparison: DPSU with the noise of classic DP"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)


@dataclass(frozen=True)
class Gw:
    """GW, greedy updates without sampling (Carvalho et al. 2022): each user backs one favourite.

    A user's favourite is the item that it has most often, among those that are not full; repeated
    rows count. Weights are whole numbers here, which the published threshold needs in order to hold
    (privacy/policy.py shows why).

    Guarantee: (ε, δ)-DP, with all of ε for the noise and all of δ for the threshold. To prove: one
    user more changes one weight, by 1 (privacy/policy.py).

    Attributes:
        buffer: An item is full at the threshold plus so many scales of the noise, rounded.
        ties: What decides between items that a user has equally often: "items", an order of all
            items that is the same for everyone, or "rows", the order of the user's rows, as
            published. With "rows", the guarantee holds for data in which one user more leaves the
            order of the others' rows as it was: not for a query whose order nobody promises.
        histogram: Public frequencies of items (of tuples, for several columns): a user's favourite
            is then its publicly most frequent item. Items that it lacks come last. This must not
            come from the data that is protected.
    """

    buffer: float = 3.0
    histogram: Mapping[Any, int] | None = field(default=None, repr=False, hash=False)
    ties: str = "items"

    name: ClassVar[str] = "gw"
    default_max_items: ClassVar[int] = 1_000_000
    sequential: ClassVar[bool] = True
    noise: ClassVar[str] = "Laplace"
    good_for: ClassVar[str] = "small vocabularies, and lists with telling repeats"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)
        if self.histogram is not None:
            check_histogram(self.histogram)
        if self.ties not in ("items", "rows"):
            raise UsageError(f"ties must be 'items' or 'rows', got {self.ties!r}")


def check_histogram(histogram: object) -> None:
    """Refuse anything but a mapping from items to whole numbers that fit into 32 bits."""
    if not isinstance(histogram, Mapping):
        raise UsageError(f"histogram must be a mapping of items to counts, got {histogram!r}")
    for item, count in histogram.items():
        whole = isinstance(count, Integral) and not isinstance(count, bool)
        if not whole or not 0 <= int(count) < 1 << 32:
            raise UsageError(
                f"histogram must have counts from 0 to 2³²−1, got {count!r} for {item!r}"
            )


def check_buffer(buffer: float) -> None:
    """Refuse anything but a number that makes sense: no noise comes near so many deviations."""
    if not 0 <= check_number("buffer", buffer) <= _LARGEST_BUFFER:
        raise UsageError(f"buffer must be from 0 to {_LARGEST_BUFFER}, got {buffer}")


@dataclass(frozen=True)
class Single:
    """The optimal rule for users with one item each (Desfontaines et al. 2022).

    Guarantee: (ε, δ)-DP; no mechanism releases an item of such users with a higher probability. To
    prove: each two neighbouring entries of its table are (ε, δ)-indistinguishable coins
    (privacy/single.py).
    """

    name: ClassVar[str] = "single"
    default_max_items: ClassVar[int] = 1
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "coins"
    good_for: ClassVar[str] = "users with one item each: nothing can be better"


MECHANISMS: dict[str, type[Mechanism]] = {
    m.name: m
    for m in (
        Cumulative,
        SipsRule,
        Sips,
        WeightedGaussian,
        Mad2R,
        Mad,
        Dpsu,
        PolicyLaplace,
        Gw,
        Single,
    )
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
