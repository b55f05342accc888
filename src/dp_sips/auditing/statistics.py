"""From counts of outcomes to a bound on δ that is wrong with a stated probability.

Trials are independent, but pairs of neighbours differ in their secret bits of bounding, so that
their chances may differ. The number of hits is then a sum of independent coins with a mean chance,
whose tails are lighter than the binomial's (Hoeffding 1956): Clopper and Pearson's bounds hold for
the mean chance, and so does the promise.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dp_sips.privacy.arrays import Bools, Integers

FALSE_ALARM: Final = 1e-8
"""The probability, at most, that an audit of a sound build reports a violation."""


def at_least(hits: int, trials: int, alpha: float) -> float:
    """Return Clopper and Pearson's lower bound on a chance."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, alpha)) if hits else 0.0


def at_most(hits: int, trials: int, alpha: float) -> float:
    """Return Clopper and Pearson's upper bound on a chance."""
    from scipy.special import betainccinv

    return float(betainccinv(hits + 1, trials - hits, alpha)) if hits < trials else 1.0


@dataclass(frozen=True)
class Counts:
    """How often each outcome occurred on one neighbour.

    Attributes:
        hits: By outcome.
        foreign: How many items were released that nobody has.
        never: Which outcomes cannot occur, as they show an item that nobody has.
    """

    hits: Integers
    foreign: int
    never: Bools

    @property
    def trials(self) -> int:
        """How many there were."""
        return int(self.hits.sum())

    def at_least(self, event: Bools, alpha: float) -> float:
        """Return a lower bound on the chance of an event."""
        return at_least(int(self.hits[event].sum()), self.trials, alpha)

    def at_most(self, event: Bools, alpha: float) -> float:
        """Return an upper bound on the chance of an event: 0 if it cannot occur."""
        possible = event & ~self.never
        if not possible.any():
            return 0.0
        return at_most(int(self.hits[possible].sum()), self.trials, alpha)


def lower_bound(one: Counts, other: Counts, event: Bools, epsilon: float, alpha: float) -> float:
    """Return a δ that P(event) ≤ e^ε P'(event) + δ needs; it is too high with probability 2α."""
    if not event.any():
        return 0.0
    found = one.at_least(event, alpha) - math.exp(epsilon) * other.at_most(event, alpha)
    return max(0.0, found)


def best_event(one: Counts, other: Counts, epsilon: float, alpha: float) -> Bools:
    """Choose the event that would show the most, by outcomes in order of their likelihood ratio."""
    ratio = (one.hits + 0.5) / np.where(other.never, 1e-9, other.hits + 0.5)
    order = np.argsort(-ratio, kind="stable")
    order = order[one.hits[order] > 0]
    best, most = np.zeros(len(ratio), dtype=np.bool_), 0.0
    event = best.copy()
    for outcome in order:
        event[outcome] = True
        bound = lower_bound(one, other, event, epsilon, alpha)
        if bound > most:
            best, most = event.copy(), bound
    return best
