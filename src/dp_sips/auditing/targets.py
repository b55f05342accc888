"""What is audited: a mechanism, its parameters, and what it promises."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

from dp_sips.engines.base import Engine
from dp_sips.mechanisms import MECHANISMS, Mechanism, find_mechanism
from dp_sips.mechanisms.base import Asked, Branch, Design
from dp_sips.plan import Plan
from dp_sips.plan import plan as make_plan
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.guarantee import LARGEST_EPSILON

_GRID: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The ε at which a promise is checked, relative to the one that was asked for."""


@dataclass(frozen=True)
class Prepared:
    """A mechanism whose rounds have been worked out, so that a thousand runs need not do it again.

    Attributes:
        mechanism: The mechanism.
        made: Its rounds, guarantee and bounds.
        title: What to call it.
    """

    mechanism: Mechanism
    made: Design = field(repr=False)
    title: str

    default_max_items: ClassVar[int] = 1
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = ""
    good_for: ClassVar[str] = "audits"

    @property
    def name(self) -> str:
        """What it is called."""
        return self.title

    def design(self, asked: Asked, max_items: int) -> Design:
        """Return what was made."""
        del asked, max_items
        return self.made

    def chances(self, rounds: Sequence[Any], holders: Floats, items: int) -> Floats:
        """Return the mechanism's chances."""
        return self.mechanism.chances(rounds, holders, items)

    def words(self, rounds: Sequence[Any]) -> str:
        """Return the mechanism's words."""
        return self.mechanism.words(rounds)


@dataclass(frozen=True)
class Target:
    """A mechanism at parameters.

    Attributes:
        plan: What it will do, and what it promises.
        options: ε, δ and max_items, as select_partitions takes them.
    """

    plan: Plan
    options: dict[str, Any]

    @property
    def prepared(self) -> Any:
        """The mechanism, ready to run."""
        made = Design(self.plan.rounds, self.plan.guarantee, self.plan.bounds)
        return Prepared(self.plan.mechanism, made, self.plan.mechanism.name)


def targets(mechanism: Any, engine: Engine, **options: Any) -> list[Target]:
    """Return what runs at these parameters: where a look chooses, each of its choices.

    None, if the engine cannot run it.
    """
    plan = make_plan(mechanism, **options)
    if plan.mechanism.sequential and not engine.takes_turns:
        return []
    if plan.look is None:
        return [Target(plan, options)]
    return [Target(_chosen(plan, branch), options) for branch in plan.rounds]


def _chosen(plan: Plan, branch: Branch) -> Plan:
    """Return what `auto` runs when its look has chosen, with what the look leaves of ε."""
    made, title = branch.design, f"auto: {branch.mechanism.name}"
    mechanism: Any = Prepared(branch.mechanism, made, title)
    return Plan(mechanism, plan.asked, made.rounds, made.guarantee, made.bounds)


@lru_cache(maxsize=64)
def promise(plan: Plan, epsilon: float) -> float:
    """Return the δ that a plan promises at ε: what it states, and no more than was asked for."""
    stated = plan.guarantee.delta(epsilon=epsilon)
    asked, delta = plan.asked.stated(plan.guarantee)
    return min(stated, delta) if epsilon >= asked else stated


def asked_epsilon(plan: Plan) -> float:
    """Return the ε that was asked for; of ρ, the one at which its guarantee is stated."""
    return plan.asked.stated(plan.guarantee)[0]


def epsilons(plan: Plan) -> list[float]:
    """Return the ε at which to check a plan."""
    asked = asked_epsilon(plan)
    return sorted({min(part * asked, LARGEST_EPSILON) for part in _GRID})


def find_mechanisms(mechanism: Any) -> list[Any]:
    """Return the mechanisms that are meant by a name, an object or several; all of them by None."""
    if mechanism is None:
        return ["auto", *(kind() for kind in MECHANISMS.values())]
    several = isinstance(mechanism, list | tuple)
    return [
        one if one == "auto" else find_mechanism(one)
        for one in (mechanism if several else [mechanism])
    ]
