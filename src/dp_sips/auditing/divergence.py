"""How far two distributions of releases are apart: the true δ(ε)."""

import math
from collections.abc import Mapping
from typing import Any

Distribution = Mapping[Any, float]
"""The probability of each release."""


def excess(one: Distribution, other: Distribution, epsilon: float) -> float:
    """Return the hockey-stick divergence: the least δ with one(S) ≤ e^ε other(S) + δ for all S."""
    grow = math.exp(epsilon)
    return math.fsum(max(0.0, odds - grow * other.get(at, 0.0)) for at, odds in one.items())


def true_delta(one: Distribution, other: Distribution, epsilon: float) -> float:
    """Return δ(ε) of two neighbours: the larger of the two divergences."""
    return max(excess(one, other, epsilon), excess(other, one, epsilon))
