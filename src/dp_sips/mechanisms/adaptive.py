"""MAD's weights: what popular items do not need goes to the other items of their holders.

Chen, Cohen-Addad, Epasto and Zadimoghaddam (ICML 2025). Sets are cut to Δ0 once. A user with d
items is adaptive if 1/b_min² ≤ d ≤ d_max. In two passes,

    w(u)   = Σ 1/d over u's adaptive holders,   r(u) = max(0, 1 − τ/w(u)),
    a user gives   W(u) − r(u)/d + α·e/d_max   to its item u,   e = mean of r over its items,

with α = b_min − 1/(2√d_max), the user's own weights W, and without the last two terms where it is
not adaptive. So u loses what w(u) has above τ, and the holders spread α of it over their items.
W(u) is 1/√d, or less for items that are expected to do well and more for the others (`_own`), with
b_min/√d ≤ W(u) ≤ b_max/√d and ΣW(u)² ≤ 1.

Guarantee: an additional user moves the weights by an L2 norm of at most 1.

Proof. A user that is not adaptive adds W. Let an adaptive one join, with d items. Write t(u) =
w(u)·r(u) = max(0, w(u) − τ) for what u loses, and Δ for what the new user changes: 0 ≤ Δt(u) ≤ 1/d
on its own items. Let m = ΣΔt(u) ≤ 1. Bonus aside, its items change by W − Δt, which is ≥ 0 because
Δt ≤ 1/d ≤ b_min/√d ≤ W. As ‖Δt‖² ≤ m/d,

    ‖W − Δt‖² ≤ 1 − 2m·b_min/√d + m/d,   so   ‖W − Δt‖ ≤ 1 − m·(b_min/√d − 1/(2d)).

The bonus of a user v changes by α·Δe_v/d_max on each of its at most d_max items: a norm of at
most α·Δe_v/√d_max. And ΣΔe_v, with the new user's own e, is Σ_u [Δr(u)·w(u) + r(u)/d], where the
last r(u) is that with the new user, which is ΣΔt(u) = m. So all bonuses change by a norm of at most
m·α/√d_max. Together that is at most 1 if α/√d_max ≤ b_min/√d − 1/(2d). The right side falls with d
from 1/b_min² on, so its least value is at d_max, where the two sides are equal. ∎

**Items that only the new user holds**, t of its d: they lose nothing while τ ≥ 1, so each weighs
W + α·e/d_max with e ≤ 1 − t/d. That is at most b_max/√t: for x = t/d, (1/√x − 1)/√d ≥ (1 − x)/(2√d)
≥ (1 − x)/(2√d_max), and α/d_max ≤ 1/(2√d_max) because 2α ≤ 2 − 1/√d_max ≤ √d_max. Every item of
every user gets weight, so no other item comes to life.

**Two rounds** (MAD2R). The second round's sets and biases depend on the first round's noisy
weights, as in every adaptive composition: given those, the guarantee holds for it. Biases come in
five steps, so that only which of a few intervals a noisy weight lies in goes on; `cells` says by
how much that can enlarge the sampler's part.

**Rounding.** r has 48 bits, weights have units of 2⁻⁴⁶ and are rounded down. One user can change
what others give, and the rounding with it: by two units of each of at most d_max items of each of
2³² users, and by 2⁻⁴⁷ of w(u) for its own items. That is a norm of at most 4·√d_max·2³²·2⁻⁴⁶, which
`sensitivity` adds to 1. Sums stop at `contributions.MOST`, far above any threshold, which moves
nothing apart.

Sensitive: everything except the parameters of `Spread`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from dp_sips.privacy.arrays import Floats, Integers, Weights
from dp_sips.privacy.contributions import MOST
from dp_sips.privacy.weights import UNIT

WIDE_BITS: Final = 46
"""Weights of these rounds are in units of 2⁻⁴⁶."""

LARGEST: Final = MOST >> (WIDE_BITS + 1)
"""Thresholds must stay below this weight."""

MOST_ADAPTIVE: Final = 1 << 15
"""The largest d_max: this many r of 48 bits add up to 63 bits."""

MOST_USERS: Final = 1 << 32
"""How many users may take part: the bound on rounding counts on it."""

_SHARE_BITS: Final = 48
_LEVELS: Final = 8
_LEVEL_BITS: Final = 4
# Makes weights a little smaller than computed, so that rounding cannot make them too large.
_SHAVE: Final = 1 - 2.0**-45


@dataclass(frozen=True)
class Spread:
    """The two passes of one round, as functions that engines apply.

    Attributes:
        target: τ, what an item needs.
        largest: d_max, the size of the largest adaptive sets.
        lowest: b_min, the least own weight relative to 1/√d.
        highest: b_max, the largest.
        edges: Evidence from which an item's bias is 7/8, 6/8, 5/8 and 4/8, as far as `lowest` goes;
            empty where there is no evidence yet.
    """

    target: float
    largest: int
    lowest: float = 1.0
    highest: float = 1.0
    edges: tuple[float, ...] = ()

    def first(self, sizes: Integers, signals: Integers) -> Weights:
        """Return what adaptive users give in the first pass: 1/d in units of 2⁻³⁰."""
        del signals
        return np.repeat(self._shares(sizes).astype(np.uint64), sizes)

    def signal(self, weights: Weights, evidence: Floats) -> Integers:
        """Return r(u) and the bias of each item, as one number; 0 where there is neither."""
        target = round(self.target * UNIT)
        above = np.maximum(weights, np.uint64(target)) - np.uint64(target)
        share = above / np.maximum(weights, np.uint64(1)) * 2.0**_SHARE_BITS
        steps = np.searchsorted(np.array(self.edges), evidence, side="right")
        return (share.astype(np.int64) << _LEVEL_BITS) + steps

    def second(self, sizes: Integers, signals: Integers) -> Weights:
        """Return W(u) − r(u)/d + α·e/d_max for each pair, in units of 2⁻⁴⁶."""
        levels = _LEVELS - (signals & ((1 << _LEVEL_BITS) - 1))
        lost_part = signals >> _LEVEL_BITS
        users = np.repeat(np.arange(len(sizes)), sizes)
        shares = self._shares(sizes)
        own = (self._own(sizes, levels, users) * 2.0**WIDE_BITS).astype(np.int64)
        unit = 2.0 ** (WIDE_BITS - _SHARE_BITS) / UNIT
        lost = (lost_part * (shares * unit)[users]).astype(np.int64)
        sums = np.add.reduceat(np.append(lost_part, 0), _starts(sizes)) * (sizes > 0)
        bonus = (sums * (shares * (unit * self.returned / self.largest))).astype(np.int64)
        given: Integers = np.maximum(own - lost + bonus[users], 0)
        return given.astype(np.uint64)

    @property
    def returned(self) -> float:
        """α, the part of what popular items lose that their holders may spread."""
        return max(0.0, self.lowest - 0.5 / math.sqrt(self.largest))

    def _shares(self, sizes: Integers) -> Integers:
        """Return 1/d of adaptive users, in units of 2⁻³⁰, and 0 of the others."""
        adaptive = (sizes * self.lowest**2 >= 1) & (sizes <= self.largest)
        return np.where(adaptive, UNIT // np.maximum(sizes, 1), 0)

    def _own(self, sizes: Integers, levels: Integers, users: Integers) -> Floats:
        """Return W(u) of each pair: b/√d for b < 1, and for the others what the norm allows.

        Where that is more than b_max/√d, items below 1/√d are raised, so that the norm is 1 again.
        """
        counts = np.zeros((len(sizes), _LEVELS + 1))
        np.add.at(counts, (users, levels), 1.0)
        scaled = np.maximum(self.lowest, np.arange(_LEVELS + 1) / _LEVELS)
        factors = np.tile(scaled, (len(sizes), 1))
        biased, plain = counts[:, :_LEVELS], counts[:, _LEVELS]
        left = sizes - (biased * scaled[:_LEVELS] ** 2).sum(axis=1)
        factors[:, _LEVELS] = np.minimum(self.highest, np.sqrt(left / np.maximum(plain, 1)))
        _raise(factors, biased, sizes - plain * factors[:, _LEVELS] ** 2)
        root = np.sqrt(np.maximum(sizes, 1))
        weights: Floats = factors[users, levels] / root[users] * _SHAVE
        return weights


def sensitivity(largest: int) -> float:
    """Return by how much an additional user can move the weights: see "Rounding" above."""
    return 1 + 4 * math.sqrt(largest) * MOST_USERS / (1 << WIDE_BITS)


def bias_edges(low: float, needed: float, lowest: float) -> tuple[float, ...]:
    """Return the evidence from which needed/(evidence − low) is 7/8, 6/8 … down to `lowest`."""
    steps = range(_LEVELS - 1, math.ceil(_LEVELS * lowest) - 1, -1)
    return tuple(low + needed * _LEVELS / step for step in steps)


def cells(levels: Sequence[float], sigma: float) -> float:
    """Return by what factor intervals of noise can have larger relative errors than tails.

    An interval of width w·σ, w ≤ 1, has at least 2Φ(w) − 1 ≥ 0.79·w·e^(−w) times the odds of the
    tail that it begins, on the side away from the mean, as the hazard of a Gaussian grows; and its
    odds are a difference of two tails. Around the mean the same bound holds.
    """
    ordered = sorted(levels)
    widths = [(b - a) / sigma for a, b in pairwise(ordered)]
    narrowest = min([1.0, *widths])
    return 2 / (0.79 * narrowest * math.exp(-narrowest)) if narrowest > 0 else math.inf


def _raise(factors: Floats, counts: Floats, norm: Floats) -> None:
    """Scale biased factors up, each to 1 at the most, until Σ count·factor² is `norm`.

    The largest reach 1 first, so a pass for each level is enough.
    """
    biased = factors[:, :_LEVELS]
    for _ in range(_LEVELS):
        below = np.where(biased < 1, counts, 0.0)
        squares = (below * biased**2).sum(axis=1)
        spare = norm - (np.where(biased < 1, 0.0, counts) * biased**2).sum(axis=1)
        grow = np.sqrt(np.maximum(1.0, spare / np.where(squares > 0, squares, np.inf)))
        biased[:] = np.where(biased < 1, np.minimum(1.0, biased * grow[:, None]), biased)


def _starts(sizes: Integers) -> Integers:
    return np.cumsum(sizes) - sizes
