"""Draws from the zeta distribution of parameter 1.1, in bulk: P(x) ∝ x^−1.1, x = 1, 2, ….

Rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from
monotone discrete distributions"). Let a height h be uniform between y^−0.1 at both ends of the
half-line y ≥ 1/2, and x the integer nearest to y = h^−10. Then x has the probability of a bar of
length (x−½)^−0.1 − (x+½)^−0.1, which is a little more than the 0.1·x^−1.1 that it should have, as
y^−1.1 is convex. So x stands if h is in the lowest 0.1·x^−1.1 of the bar, and is drawn again
otherwise: one in eighty.

What differs from the exact distribution: items end at 2^63 − 2^20, so that they are 64-bit integers
(one in eighty would be larger); from 16,384 on x always stands, which moves the distribution by
6.1e-12 in total variation; and large items have the 53 bits of a float.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

ZETA: Final = 1.1
LARGEST: Final = 2**63 - 2**20
"""Far enough from 2^63 that rounding errors of the tenth power do not reach it."""

_HIGHEST: Final = 0.5**-0.1
_LOWEST: Final = float(LARGEST) ** -0.1
_TESTED: Final = 1 << 14
"""From this item on the bar is longer than it should be by less than 4e-10 of its length."""
_AT_A_TIME: Final = 1 << 15
"""What a core's cache holds."""


def _bars() -> NDArray[np.float64]:
    """Return the height up to which each item stands; the last is for all that are larger."""
    items = np.arange(1, _TESTED)
    stands = (items + 0.5) ** -0.1 + 0.1 * items**-ZETA
    return np.concatenate(([0.0], stands, [_HIGHEST]))


_BARS: Final = _bars()


def draw_zeta(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Draw items; a number of them drawn in two parts are the same as drawn at once."""
    drawn = np.empty(count, np.int64)
    done = 0
    while done < count:
        # Never more than are missing: the generator stands right behind the last item.
        found = _standing(rng.random(min(count - done, _AT_A_TIME)))
        drawn[done : done + len(found)] = found
        done += len(found)
    return drawn


def _standing(heights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Turn uniform numbers of [0, 1) into heights, and return the items that stand."""
    heights *= _LOWEST - _HIGHEST
    heights += _HIGHEST
    power = 1 / heights
    power *= power
    tenth = power * power
    tenth *= tenth
    tenth *= power
    tenth += 0.5
    items = tenth.astype(np.int64)
    return items[heights <= _BARS.take(np.minimum(items, _TESTED))]
