"""The public parameters of a plan, and how to ask for that plan again, in Python or on a terminal.

A reader of a certificate needs nothing else to compute the same rounds.
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.base import asked_for
from dp_sips.plan import Plan, planned

_FLAGS: Final = ("rounds", "ratio", "buffer")
"""Parameters of mechanisms that the command line has, too."""


@dataclass(frozen=True)
class Recipe:
    """A mechanism's name and parameters, what was asked of the selection, and Δ0."""

    name: str
    asked: Mapping[str, Any]
    max_items: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> Plan:
        """Compute the plan; a page says what is unwise about it, not a warning."""
        made = MECHANISMS[self.name](**self.parameters) if self.parameters else self.name
        given = self.asked
        asked = asked_for(given.get("epsilon"), given["delta"], given.get("rho"))
        return planned(made, asked, self.max_items, None, given.get("min_users", 1))

    @property
    def command(self) -> str | None:
        """`dp-sips plan …`; None if a parameter has no flag."""
        if set(self.parameters) - set(_FLAGS):
            return None
        return shlex.join(["dp-sips", "plan", self.name, *self._flags()])

    @property
    def python(self) -> str:
        """`dp_sips.plan(…)`."""
        return f"dp_sips.plan({', '.join([self._mechanism(), *self._arguments()])})"

    @property
    def select_command(self) -> str:
        """`dp-sips select …`, with names to fill in."""
        words = ["--mechanism", self.name, *self._flags()]
        return f"dp-sips select data.parquet --user USER --item ITEM {shlex.join(words)}"

    @property
    def select_python(self) -> str:
        """`dp_sips.select_partitions(…)`, with names to fill in."""
        given = [f"mechanism={self._mechanism()}", *self._arguments()]
        return (
            'dp_sips.select_partitions(\n    data, user="user", item="item",\n    '
            + ", ".join(given)
            + ",\n)"
        )

    def _flags(self) -> list[str]:
        given = dict(self.asked) | {"max-items": self.max_items} | dict(self.parameters)
        return [
            word
            for name, value in given.items()
            for word in (f"--{name.replace('_', '-')}", repr(value))
        ]

    def _arguments(self) -> list[str]:
        given = dict(self.asked) | {"max_items": self.max_items}
        return [f"{name}={value!r}" for name, value in given.items()]

    def _mechanism(self) -> str:
        if not self.parameters:
            return f'"{self.name}"'
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"dp_sips.{MECHANISMS[self.name].__name__}({given})"


def own_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are not a mechanism's defaults.

    Of a public table the certificate has the size alone, and no round depends on it.
    """
    defaults = {f.name: f.default for f in fields(MECHANISMS[name]) if f.default is not MISSING}  # type: ignore[arg-type]
    return {
        parameter: value
        for parameter, value in given.items()
        if parameter != "histogram" and not alike(value, defaults.get(parameter))
    }


def alike(one: Any, other: Any) -> bool:
    """Whether two public values are the same, except for the last digits of numbers."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if _is_number(one) and _is_number(other):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
