"""The exact chance of an item whose evidence adds up over rounds, by numerical integration.

Where a mechanism keeps evidence, verdicts form no finite tree. Yet for an item whose holders have
nothing else, the evidence is a random walk that ends where it is released or given up: a density on
Gauss–Legendre nodes, round by round. The numbers are those of the plan's rounds.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dp_sips.privacy.arrays import Floats

ERROR: Final = 1e-10
"""What the nodes leave, many times over."""

_NODES: Final = 120
_REACH: Final = 12.0
_NEEDED: Final = {"sigma", "threshold", "count", "counted", "edges"}


def can_integrate(rounds: Sequence[Any]) -> bool:
    """Whether all rounds add to evidence, and have the numbers that this needs."""
    return all(step.row().keys() >= _NEEDED for step in rounds)


def chance(rounds: Sequence[Any], holders: int) -> float:
    """Return the chance of an item that is all that its holders have."""
    from scipy.special import ndtr

    if not holders:
        return 0.0
    nodes, shares = _quadrature()
    places, masses, released = np.zeros(1), np.ones(1), 0.0
    for step in rounds:
        centre, deviation = places + step.count * holders, step.count * step.sigma
        high, low = step.threshold * step.counted, step.edges[0] * step.counted
        released += float(masses @ ndtr((centre - high) / deviation))
        # Nothing lies below this, even where a round gives up nothing.
        floor = max(min(low, high), float(centre.min()) - _REACH * deviation)
        if floor >= high:
            break
        places, masses = _moved(centre, masses, deviation, (floor, high), nodes, shares)
    return released


@lru_cache
def _quadrature() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(_NODES)


def _moved(  # noqa: PLR0917
    centre: Floats,
    masses: Floats,
    deviation: float,
    ends: tuple[float, float],
    nodes: Floats,
    shares: Floats,
) -> tuple[Floats, Floats]:
    """Return the places and masses of evidence between two ends, after a round's noise."""
    half = (ends[1] - ends[0]) / 2
    places = ends[0] + (nodes + 1) * half
    steps = (places[:, None] - centre[None, :]) / deviation
    density = np.exp(-(steps**2) / 2) @ masses / (deviation * math.sqrt(2 * math.pi))
    return places, density * shares * half
