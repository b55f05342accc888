"""What a mechanism is: a frozen value that turns privacy parameters into rounds and a guarantee.

A new mechanism is one file here and one line in the registry (`__init__.py`); CONTRIBUTING.md walks
through it. Mechanisms from elsewhere are accepted where they implement the protocol.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import Budget, calibrate, check_delta, check_epsilon, check_rho
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.guarantee import LARGEST_EPSILON, Guarantee, SamplerCost, shown
from dp_sips.privacy.noise import Scrambler

# Above this, weights of cumulative evidence and shares of Policy Laplace would be zero on their
# lattices, and a user's set would not fit into a chunk of the Spark engine.
_MOST_ITEMS: Final = 1 << 20


class Round(Protocol):
    """One round: public numbers, computed before any data is touched, and how to run them."""

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Weigh the items, decide about them, and take what is found out of the users' sets."""

    def row(self) -> dict[str, Any]:
        """Return the round's public numbers by name, for `Plan.table` and the certificate."""


@dataclass(frozen=True)
class Design:
    """What a mechanism makes of its parameters.

    Attributes:
        rounds: What will be done, in order.
        guarantee: What the release spends, all rounds together.
        bounds: How users' sets are bounded.
        look: What decides, by a private look at the data, which of `rounds` run; mostly nothing.
    """

    rounds: tuple[Any, ...]
    guarantee: Guarantee
    bounds: Bounds
    look: "Look | None" = None


class Look(Protocol):
    """A private look at the data, which decides what runs; `auto.py` has the only one."""

    def choose(self, contributions: Contributions, noise: Scrambler) -> "Branch":
        """Look at the data, and return what to run: the choice is all that leaves."""

    @property
    def branches(self) -> "Sequence[Branch]":
        """Every branch that may be chosen."""

    def spent(self, branch: "Branch") -> float:
        """Return the ε that was spent to choose a branch."""


@dataclass(frozen=True)
class Branch:
    """A mechanism that a look may choose.

    Attributes:
        mechanism: Which one.
        design: Its rounds, guarantee and bounds, for what the look leaves of the budget.
    """

    mechanism: "Mechanism"
    design: Design

    def row(self) -> dict[str, Any]:
        """Return the public numbers of the rounds, if this is what runs."""
        return {
            "if_chosen": self.mechanism.name,
            "rounds": [step.row() for step in self.design.rounds],
        }


@dataclass(frozen=True)
class EpsilonDelta:
    """(ε, δ)-differential privacy, as the caller asked for it."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))

    def budget(self, sampler: SamplerCost, threshold: Callable[[Budget], float]) -> Budget:
        """Return the budget with the lowest threshold, less the sampler's part."""
        return calibrate(*self.point(sampler), threshold)

    def point(self, sampler: SamplerCost) -> tuple[float, float]:
        """Return the ε and δ that are left for exact arithmetic, after the sampler's part."""
        epsilon = min(self.epsilon, LARGEST_EPSILON)
        for name, value, part in (
            ("epsilon", epsilon, sampler.loss),
            ("delta", self.delta, sampler.tail),
        ):
            if value <= part:
                raise UsageError(
                    f"{name} must be above {part:.3g}, which the noise generator's rounding may "
                    f"cost, got {value:g}"
                )
        return (
            epsilon - sampler.loss,
            (self.delta - sampler.tail) / (1 + sampler.loss) * (1 - 2.0**-50),
        )

    def about(self, spent: Guarantee) -> Guarantee:
        """Return a guarantee that states what is spent at the ε that was asked for."""
        return replace(spent, asked_epsilon=min(self.epsilon, LARGEST_EPSILON))

    def stated(self, spent: Guarantee) -> tuple[float, float]:
        """Return the ε and δ that a release must keep: what was asked for."""
        del spent
        return self.epsilon, self.delta

    def implied(self) -> "EpsilonDelta":
        """Return the (ε, δ)-DP that follows: itself."""
        return self

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-differentially private"


@dataclass(frozen=True)
class RhoDelta:
    """δ-approximate ρ-zCDP, the paper's statement, as the caller asked for it."""

    rho: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_rho(self.rho))
        object.__setattr__(self, "delta", check_delta(self.delta))

    def budget(self, sampler: SamplerCost, threshold: Callable[[Budget], float]) -> Budget:
        """Return the budget itself: ρ is stated for exact arithmetic."""
        del sampler, threshold
        return Budget.from_rho(self.rho, self.delta)

    def point(self, sampler: SamplerCost) -> tuple[float, float]:
        """Return an ε and a δ: what is (ε, δ)-DP is δ-approximate ε²/2-zCDP, too."""
        del sampler
        return math.sqrt(2 * self.rho) * (1 - 2.0**-50), self.delta

    def about(self, spent: Guarantee) -> Guarantee:
        """Return the guarantee: no ε was asked for."""
        return spent

    def stated(self, spent: Guarantee) -> tuple[float, float]:
        """Return the ε and δ that a release must keep: what its guarantee states."""
        return spent.stated()

    def implied(self) -> EpsilonDelta:
        """Return the (ε, 2δ)-DP that follows, by the paper's conversion, ε rounded up."""
        both = min(2 * self.delta, (1 + self.delta) / 2)
        return EpsilonDelta(shown(Budget(self.rho, self.delta).epsilon(both)), both)

    def __str__(self) -> str:
        return f"{self.delta:g}-approximate {self.rho:g}-zCDP"


Asked = EpsilonDelta | RhoDelta
"""The privacy parameters as they were given."""


def asked_for(
    epsilon: float | None, delta: float | None, rho: float | None, budget: Budget | None = None
) -> Asked:
    """Return the privacy parameters, checked."""
    if budget is not None:
        if (epsilon, delta, rho) != (None, None, None):
            raise UsageError("give either a budget, or epsilon or rho with delta; got both")
        if not isinstance(budget, Budget):
            raise UsageError(f"budget must be a Budget, got {type(budget).__name__}")
        return RhoDelta(budget.rho, budget.delta)
    if (epsilon is None) == (rho is None):
        given = "both" if epsilon is not None else "neither"
        raise UsageError(f"give either epsilon or rho, together with delta; got {given}")
    if delta is None:
        raise UsageError(
            "delta is missing: give one well below 1 / (number of users), such as 1e-6"
        )
    return EpsilonDelta(epsilon, delta) if epsilon is not None else RhoDelta(rho or 0.0, delta)


@runtime_checkable
class Mechanism(Protocol):
    """A way to choose items: named, frozen, and free of data. Parameters are dataclass fields.

    Attributes:
        name: What `mechanism=` calls it.
        default_max_items: Δ0 where none is given.
        sequential: Whether users take turns, so that a cluster cannot help.
        noise: What hides a user.
        good_for: When to choose it, in a few words.
    """

    name: ClassVar[str]
    default_max_items: ClassVar[int]
    sequential: ClassVar[bool]
    noise: ClassVar[str]
    good_for: ClassVar[str]

    def design(self, asked: Asked, max_items: int) -> Design:
        """Return the rounds, the guarantee and the bounds, from public parameters alone."""

    def chances(self, rounds: Sequence[Any], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders.

        Each of them has `items` items, of which no other is found or dropped; where users look at
        what others paid, all of them hold the same items.
        """

    def words(self, rounds: Sequence[Any]) -> str:
        """Say in plain words what the rounds do, for `Plan.explain`."""


def table_of_rounds(rows: Sequence[dict[str, Any]], columns: dict[str, tuple[str, str]]) -> str:
    """Return rows as lines of text; `columns` maps a name to its heading and format."""
    headings = {name: f"{heading:>{_width(style)}}" for name, (heading, style) in columns.items()}
    lines = [f"{'round':>5}  " + "  ".join(headings.values())]
    for number, row in enumerate(rows, start=1):
        cells = (f"{row[name]:>{style}}" for name, (_, style) in columns.items())
        lines.append(f"{number:>5}  " + "  ".join(cells))
    return "\n".join(lines)


def _width(style: str) -> str:
    return style.partition(".")[0]


def without_bounds(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return a round's numbers without those that are the same for the whole plan."""
    return {name: n for name, n in numbers.items() if name not in {"max_items", "min_users"}}


def check_few_items(name: str, max_items: int) -> None:
    """Reject a Δ0 that is too large for weights on a lattice."""
    if max_items > _MOST_ITEMS:
        raise UsageError(f"max_items must be at most {_MOST_ITEMS} for {name}, got {max_items}")
