"""Guarantees as events of Google's dp-accounting, to be composed there with what else was done.

An event of dp-accounting has no δ of its own, so a guarantee becomes an event and a δ:

Gaussian rounds and a threshold (README.md, "The argument"): except with probability δ_T on either
neighbour, the release is a function of a Gaussian mechanism with sensitivity/σ = √(2ρ). The
sampler's loss is an event of its own.

What is (ε, δ)-DP is a function of a mechanism that tells all with probability δ, and otherwise
answers one question truthfully with odds e^ε : 1 (`mechanisms/point.py`). Discrete Laplace
noise of parameter ε on a number that changes by 1 is that answer: all outcomes up to the smaller
number are e^ε times as likely under it, and all others under the other.

Guarantee: with the δ of all guarantees subtracted from its target, an accountant that composes the
events never states less than what was spent; P[Y] ≤ e^ε P'[Y] + δ_accountant + Σδ_i, as each bad
event, given what came before, has probability at most δ_i.
Public: everything here.
"""

import math
from typing import TYPE_CHECKING, Any

from dp_sips.errors import UsageError
from dp_sips.privacy.budget import rounded_up

if TYPE_CHECKING:
    from dp_sips.privacy.guarantee import Guarantee


def gaussian_event(guarantee: "Guarantee") -> tuple[Any, float]:
    """Return the event of Gaussian rounds, and the δ beside it."""
    events = _events()
    mu = rounded_up(math.sqrt(2 * guarantee.rho))
    parts = [events.GaussianDpEvent(1 / mu)] if mu else []
    if guarantee.sampler.loss:
        parts.append(_answer(guarantee.sampler.loss))
    own = guarantee.threshold_delta * (1 + guarantee.sampler.loss) + guarantee.sampler.tail
    return events.ComposedDpEvent(parts), rounded_up(own)


def point_event(epsilon: float, delta: float) -> tuple[Any, float]:
    """Return the event of what is (ε, δ)-DP, and δ."""
    if not math.isfinite(epsilon):
        raise UsageError(f"delta={delta:g} is below what was spent: give a larger one")
    return _answer(epsilon), delta


def _answer(epsilon: float) -> Any:
    return _events().DiscreteLaplaceDpEvent(rounded_up(epsilon), 1)


def _events() -> Any:
    try:
        from dp_accounting import dp_event
    except ModuleNotFoundError as error:
        raise UsageError(
            "events need dp-accounting, which is not installed: pip install 'dp-sips[accounting]'"
        ) from error
    return dp_event
