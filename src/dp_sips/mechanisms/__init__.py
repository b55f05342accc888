"""The mechanisms: one file each, with its parameters, rounds, chances, words and proof.

| file | what it is |
|---|---|
| `weighted_gaussian.py` | the paper's Algorithms 1 and 2 |
| `sips.py` | the paper's Algorithm 3 |
| `cumulative.py`, `evidence.py` | cumulative evidence; its theorem and accounting |
| `sips_rule.py`, `release_rule.py` | SIPS with coins; their theorem and tables |
| `flat_rule.py` | the same with flatter weights |
| `matching.py` | one vote a user, placed by deferred acceptance |
| `single.py` | the optimal rule for users with one item each |
| `dpsu.py`, `policy_laplace.py`, `gw.py`, `turns.py` | users in turns; their theorem |
| `mad.py`, `adaptive.py` | MAD and MAD2R; their theorem |
| `min_users.py` | nothing that fewer than m users hold: reduced weights and their lemma |
| `auto.py` | what `mechanism="auto"` chooses |
| `counting.py`, `joint.py`, `discrete.py` | counts of users; with a selection; their noise |
| `composition.py`, `levels.py` | what several releases spend; selections level by level |
| `base.py`, `chances.py`, `coins.py`, `point.py` | the protocol; what several share |
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from dp_sips.errors import UsageError, did_you_mean
from dp_sips.mechanisms.base import Mechanism
from dp_sips.mechanisms.cumulative import Cumulative
from dp_sips.mechanisms.dpsu import Dpsu
from dp_sips.mechanisms.flat_rule import FlatRule
from dp_sips.mechanisms.gw import Gw
from dp_sips.mechanisms.mad import Mad, Mad2R
from dp_sips.mechanisms.matching import Matching
from dp_sips.mechanisms.policy_laplace import PolicyLaplace
from dp_sips.mechanisms.single import Single
from dp_sips.mechanisms.sips import Sips
from dp_sips.mechanisms.sips_rule import SipsRule
from dp_sips.mechanisms.weighted_gaussian import WeightedGaussian

__all__ = [
    "MECHANISMS",
    "Cumulative",
    "Dpsu",
    "FlatRule",
    "Gw",
    "Mad",
    "Mad2R",
    "Matching",
    "Mechanism",
    "PolicyLaplace",
    "Single",
    "Sips",
    "SipsRule",
    "WeightedGaussian",
    "find_mechanism",
    "min_users_of",
    "requiring",
]

MECHANISMS: Final[dict[str, type[Mechanism]]] = {
    mechanism.name: mechanism
    for mechanism in (
        Cumulative,
        SipsRule,
        FlatRule,
        Sips,
        WeightedGaussian,
        Mad2R,
        Mad,
        Dpsu,
        PolicyLaplace,
        Gw,
        Matching,
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
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        raise UsageError(
            f"mechanism must be a name or a mechanism such as Sips(rounds=3), got {mechanism!r}"
        )
    return mechanism


def requiring(mechanism: Mechanism, min_users: int) -> Mechanism:
    """Return the mechanism with `min_users`, if it has such a parameter."""
    if min_users == 1:
        return mechanism
    if not _has_min_users(mechanism):
        known = ", ".join(kind.name for kind in MECHANISMS.values() if _has_min_users(kind))
        raise UsageError(
            f"min_users is not proven to be private with {mechanism.name}: choose auto, {known}"
        )
    return replace(mechanism, min_users=min_users)  # type: ignore[type-var]


def min_users_of(mechanism: Mechanism) -> int:
    """Return how many users must hold an item."""
    return mechanism.min_users if _has_min_users(mechanism) else 1  # type: ignore[attr-defined]


def _has_min_users(mechanism: Any) -> bool:
    return is_dataclass(mechanism) and "min_users" in {field.name for field in fields(mechanism)}
