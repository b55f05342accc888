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
| `auto.py` | what `mechanism="auto"` chooses |
| `counting.py`, `joint.py`, `discrete.py` | counts of users; with a selection; their noise |
| `base.py`, `chances.py`, `coins.py` | the protocol; what several share |
"""

from typing import Final

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
