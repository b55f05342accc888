"""What can be found about a claim, and how findings are put."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Status = Literal["confirmed", "in part", "not confirmed", "not measured here"]


@dataclass(frozen=True)
class Verdict:
    """What we found about a claim."""

    status: Status
    finding: str


def unmeasured(reason: str) -> Verdict:
    """Return that nothing was found, and why."""
    return Verdict("not measured here", reason)


def count(found: Mapping[str, bool], finding: str) -> Verdict:
    """Return a verdict on a claim that must hold for each of several things."""
    if not found:
        return unmeasured("none of the data that it is about was there")
    if all(found.values()):
        return Verdict("confirmed", finding)
    status: Status = "in part" if any(found.values()) else "not confirmed"
    return Verdict(status, f"{sum(found.values())} of {len(found)}: {finding}")


def listed(values: Mapping[str, float], form: str = ".2f") -> str:
    """Return numbers with their names."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())
