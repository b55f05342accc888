"""Claims of noise alone, from below: the chances of each, and what several add up to.

What a claim is, and how the accounting of cumulative evidence uses these numbers, is said in
`evidence.py`. Lower claims mean a larger bound there.

Public: everything here. No function in this file sees data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from dp_sips.privacy.arrays import Floats, Integers
from dp_sips.privacy.weights import WHOLE_CLAIM

CLAIMS: Final = (0, 1, 4, 9, 16)
"""a², in sixteenths: dropped, or a quarter, a half, three quarters, the whole of a weight."""

UPWARDS: Final = 1 + 1e-9
"""Far above all the rounding in sums of a few thousand positive floats."""

# Chances below this are no chances: beside those that count, less than their rounding.
_HARDLY = 1e-20
# Sums of claims matter where the chance of at most as much is between these; what is below and
# above is cut off each time this number of claims has been added.
_WINDOW = (1e-22, 1 - 1e-13)
_CLAIMS_AT_ONCE = 16
_CLAIMS: Final = np.array(CLAIMS)


@dataclass(frozen=True)
class Schedule:
    """The public constants of the mechanism.

    Attributes:
        shares: How much of the budget each round gets; they need not add up to one.
        trust: How much more than its share each round counts than the one before.
        drops: z_l, below how many deviations of its noise evidence is hopeless after round l.
        ramp: How many deviations above that an item has its whole claim.
        margin: The thresholds are T_i = margin + q_i s_i.
        patience: How much less likely than in the last round, by a factor, noise alone may release
            an item in each earlier round.
    """

    shares: tuple[float, ...]
    trust: float
    drops: tuple[float, ...]
    ramp: float
    margin: float
    patience: float

    @cached_property
    def fractions(self) -> Floats:
        """f_l, adding up to one."""
        shares = np.array(self.shares)
        return np.asarray(shares / shares.sum())

    @cached_property
    def counts(self) -> Floats:
        """c_l, how much each round counts."""
        return np.asarray(self.fractions * self.trust ** np.arange(len(self.shares)))

    @cached_property
    def counted(self) -> Floats:
        """C_i, how much the rounds so far count."""
        return np.cumsum(self.counts)

    @cached_property
    def variances(self) -> Floats:
        """V_i."""
        return np.cumsum(self.counts**2 / self.fractions)

    def deviations(self, rho: float) -> Floats:
        """Return s_i, the deviation of the noise in evidence after each round."""
        return np.asarray(np.sqrt(self.variances / (2 * rho)) / self.counted)

    def edges(self, index: int) -> Floats:
        """Return the evidence, in deviations, from which an item has each claim except 0."""
        sides = np.sqrt(np.array(CLAIMS[1:]) / WHOLE_CLAIM)
        sides[0] = 0.0  # below the ramp's first step, an item is dropped
        return np.asarray(self.drops[index] + self.ramp * sides)

    def thresholds(self, rho: float, quantile: float) -> Floats:
        """Return T_i where the last quantile is given: Q(q_i) ≈ Q(q_I) / patience before."""
        early = math.sqrt(quantile**2 + 2 * math.log(self.patience))
        quantiles = np.full(len(self.shares), early)
        quantiles[-1] = quantile
        return np.asarray(self.margin + quantiles * self.deviations(rho))

    def quantile(self, rho: float, threshold: float) -> float:
        """Return the last quantile where T_I is given."""
        return (threshold - self.margin) / float(self.deviations(rho)[-1])


@lru_cache
def claim_chances(schedule: Schedule) -> Floats:
    """Return chances of each claim in each round (rounds × claims), below those of noise alone.

    Evidence that is noise alone is a Brownian motion at times V_l, over C_l. It lives on a lattice
    here, rounded down after each step; what moves too far counts as dropped, and so do the ends of
    the lattice where hardly anything is.
    """
    step, reach = 0.004, 7.0
    size = int(reach / step)
    lattice = np.arange(-size, size + 1) * step
    times = schedule.variances / schedule.variances[-1]
    first, chances = size, np.array([1.0])  # from this place of the lattice on
    found = [np.array([0.0] * (len(CLAIMS) - 1) + [1.0])]
    for index, (before, time) in enumerate(zip([0.0, *times], times[:-1], strict=False)):
        deviation = math.sqrt(time - before)
        far = min(size, math.ceil(8 * deviation / step))
        moves = np.diff(cdf(np.arange(-far, far + 2.0) * (step / deviation)))
        edges = schedule.edges(index) * math.sqrt(time)
        least = max(first - far, int(lattice.searchsorted(edges[0])))
        chances = np.convolve(chances, moves)[least - first + far :][: len(lattice) - least]
        first, chances = _without_ends(least, chances)
        places = np.searchsorted(edges, lattice[first : first + len(chances)], side="right")
        alive = np.bincount(places, chances / UPWARDS, minlength=len(CLAIMS))
        alive[0] = max(0.0, 1 - float(alive[1:].sum())) + 1e-15  # the rest, and its rounding
        found.append(alive)
    return np.stack(found)


def _without_ends(first: int, chances: Floats) -> tuple[int, Floats]:
    """Leave out both ends of chances where hardly anything is; one place is always left."""
    there = np.flatnonzero(chances > _HARDLY)
    if not len(there):
        return 0, np.zeros(1)
    return first + int(there[0]), chances[there[0] : there[-1] + 1]


def claim_quantiles(schedule: Schedule, needed: Integers, chances: Floats) -> Floats:
    """Return quantiles of sums of claims, from below, where `chances` ascend from 0.

    They are those of each number of claims that is `needed` (× rounds × chances).
    """
    sums = ClaimSums(claim_chances(schedule), int(needed[-1]))
    return np.stack([np.minimum(sums.quantiles(n, chances), n) for n in needed.tolist()])


class ClaimSums:
    """F_n(x), the chance that n independent claims add up to at most x, of each round; n grows.

    An additional claim makes it F_{n+1}(x) = Σ_a P[a] F_n(x − a), a sum of positive terms in which
    F beyond x has no part. Each round has a window of x. Below it, where F is hardly above 0, F
    counts as 0: all that is lost so, whenever windows are cut, is less than 10⁻¹⁹, and `UPWARDS`
    pays for 10⁻¹⁸ even at 10⁻⁹, the least chance that a quantile is asked for. Above it, F counts
    as 1, which is not less. Windows end where F is nearly 1, or beyond all quantiles that are asked
    for: if not, those are lower. They stand in one row, each after as many zeros as a claim can
    have, and with space to grow for a few claims.
    """

    _places: Integers
    _row: Floats
    _next: Floats

    def __init__(self, chances: Floats, most: int) -> None:
        mean = chances @ CLAIMS
        deviation = np.sqrt(np.maximum(chances @ np.square(CLAIMS) - mean**2, 0.0))
        self._chances = chances
        self._highest = (most * mean + 4 * math.sqrt(most) * deviation).astype(np.int64) + 32
        self._count = 0
        self._lows = np.zeros(len(chances), np.int64)
        self._place([np.ones(1)] * len(chances))

    def quantiles(self, count: int, chances: Floats) -> Floats:
        """Return the least x at which F of `count` claims is at least each chance, or a lesser one.

        Counts must not fall from call to call. Chances ascend from 0, at which x is 0.
        """
        from dp_sips.mechanisms import adding  # compiled, and not needed by every plan

        while self._count < count:
            if self._count and self._count % _CLAIMS_AT_ONCE == 0:
                self._cut()
            adding.add_claim(self._chances, _CLAIMS, self._places, self._row, self._next)
            self._row, self._next = self._next, self._row
            self._count += 1
        found = np.empty((len(self._places), len(chances)), dtype=np.int64)
        adding.first_reached(self._places, self._row, chances / UPWARDS, found)
        found += self._lows[:, None]
        found[:, 0] = 0
        return np.asarray(found / WHOLE_CLAIM)

    def _cut(self) -> None:
        """Cut off what is hardly above 0, and what is nearly 1."""
        windows = [self._row[start:stop] for start, stop in self._places.tolist()]
        ends = np.array([window.searchsorted(_WINDOW) for window in windows])
        self._lows += ends[:, 0]
        pairs = zip(windows, ends.tolist(), strict=True)
        self._place([window[low:high] for window, (low, high) in pairs])

    def _place(self, windows: Sequence[Floats]) -> None:
        """Put windows into a row, with space to grow, in which F is 1."""
        grown = np.array([len(window) for window in windows]) + _CLAIMS_AT_ONCE * WHOLE_CLAIM
        sizes = np.minimum(grown, np.maximum(1, self._highest - self._lows))
        stops = np.cumsum(sizes + WHOLE_CLAIM)
        self._places = np.stack((stops - sizes, stops), axis=1)
        self._row, self._next = np.zeros(stops[-1]), np.zeros(stops[-1])
        for (start, stop), window in zip(self._places.tolist(), windows, strict=True):
            kept = window[: stop - start]
            self._row[start : start + len(kept)] = kept
            self._row[start + len(kept) : stop] = 1.0


def cdf(x: Floats) -> Floats:
    """Return Φ(x)."""
    from scipy.special import ndtr

    return np.asarray(ndtr(x))
