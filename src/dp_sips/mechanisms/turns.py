"""Weights that users pay one after the other, each looking at what the others have paid.

An item needs no more weight than the target Γ, somewhat above the threshold. H is what has been
paid so far and g = Γ − H ≥ 0 the gaps; out of a budget of 1, a user with the set S pays

    Gaussian   g·min(1, 1/‖g_S‖₂)   to its items (DPSU, Gopi et al. 2020),
    Laplace    g·min(1, 1/‖g_S‖₁)   to its items (their L1 twin),
    favourite  1   to the first item in its own order with g ≥ 1 (GW, Carvalho et al. 2022).

The order of users is random, comes from bits of its own, and is a property of each user alone: one
user more leaves the order of the others as it was (bounding.turns).

Theorem. An additional user moves H by a norm of at most 1: L2 for Gaussian, L1 for the other two.

Proof. Users before it pay the same. Its own payment has norm ≤ 1. Each later user maps gaps to
gaps, R: g ↦ g − payment(g), the same R with and without the new user, so it is enough that R
expands no distance.
  Gaussian: the payment is the projection P of g_S onto the unit ball, and R = I − P expands no
  distance, as for every convex set: |x − y|² = |Px − Py|² + |Rx − Ry|² + 2⟨Px − Py, Rx − Ry⟩, and
  the last term is ≥ 0 because Px is the point of the ball nearest to x, and Py to y.
  Laplace and favourite: R is monotone (larger gaps before, no smaller gaps after), and for x ≤ y
  the sum of R(y) − R(x) is at most that of y − x. Any such R expands no L1 distance (Crandall and
  Tartar 1980): with z = max(x, y), |Rx − Ry| ≤ (Rz − Rx) + (Rz − Ry) in each place, and in sum
  that is at most |z − x| + |z − y| = |x − y|.
    Laplace: R(g) = g·max(0, 1 − 1/‖g‖₁), a factor that grows with g; its sum is max(0, ‖g‖₁ − 1).
    Favourite, on whole numbers: let x ≤ y. R takes 1 from the first place with a gap. Where y's
    first is not x's, it is earlier, and x has no gap there, so R(x) ≤ R(y). The sum falls by 1 or,
    where no gap is left, by 0; and y has a gap wherever x has one. ∎

**Items that only the new user holds** have gap Γ each, so of t of them each is paid at most 1/√t by
the Gaussian policy and 1/t by the Laplace policy: the thresholds of threshold.py. Both policies pay
something to every item of every user, so an item without weight is one that nobody holds.

That is not so for favourites, and it takes care: an additional user can fill an item, so that a
*later* user moves on to one that nobody had paid before. With payments of any size, as published,
one user can so bring several items to life through others, with weights that sum up to 1, and the
published threshold, made for a single item of weight 1, does not cover that: for t items of weight
1/t, δ is exceeded by a factor of up to t·e^(−ε(1−1/t)), for users in a given order (an example is
in tests/privacy/test_turns.py). Here Γ is a whole number, so all weights are: H moves by 1 in a
single place, and at most one item of weight 1 comes to life.

**Rounding.** H and Γ are integers in units of 2^-unit_bits. The proportional payments are rounded
down to units after an arithmetic whose relative error is below 2⁻⁴⁹, so each user's map is off by
at most √k + 8 units in L2 and by k + 8 in L1, for k items and a budget of at most 2⁵² units. Over
2³² users, the most that an engine takes, an additional user moves H by at most `sensitivity`, and
the noise is scaled by it. Favourites are exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Floats
from dp_sips.validation import check_number

L1, L2 = 1, 2
"""The powers of the two norms."""

MOST_USERS: Final = 1 << 32
"""How many users a fold may go over: the bound on rounding counts on it."""

# So many bits of a budget are the fewest that make sense; Γ and Δ0 take the others of 128.
_FEWEST_BITS: Final = 36
_MOST_BITS: Final = 52
_GAP_BITS: Final = 63
_SUM_BITS: Final = 127
SHAVE: Final = 1 - 2.0**-50
"""Makes payments a little smaller than computed, so that rounding cannot make them too large."""

_LARGEST_BUFFER: Final = 1_000_000


@dataclass(frozen=True)
class Proportional:
    """The Gaussian (power 2) and the Laplace policy (power 1).

    Attributes:
        power: The norm: 2 or 1.
        target: Γ in units.
        unit_bits: A unit is 2^-unit_bits.
    """

    power: int
    target: int
    unit_bits: int

    @property
    def full(self) -> float:
        """Γ as a weight."""
        return float(self.target / (1 << self.unit_bits))

    def payments(self, gaps: Sequence[int]) -> list[int]:
        """Return what a user pays to its items with these gaps, all in units.

        Guarantee: the norm of the payments is at most one budget, and no payment is above its gap.
        """
        budget = 1 << self.unit_bits
        whole = sum(gap**self.power for gap in gaps)
        if whole <= budget**self.power:
            return list(gaps)
        scale = self.scale(whole)
        return [int(gap * scale) for gap in gaps]

    def scale(self, whole: int) -> float:
        """Return budget/‖gaps‖ of gaps whose sum of powers is `whole`, shaved."""
        norm = math.sqrt(whole) if self.power == L2 else float(whole)
        return (1 << self.unit_bits) / norm * SHAVE


@dataclass(frozen=True)
class Favourite:
    """GW's policy: all of a user's budget to the first item, in its own order, below the target.

    A user's order is its own: by how often it has each item, or by public frequencies. Of several
    alike it takes the one with the least word (bounding.item_words): an order that is the same for
    everyone and independent of data and noise; so users agree, and fewer votes are lost.

    Attributes:
        target: Γ, a whole number.
        by_row: Of several alike, take the first of the user's rows instead, as published (where not
            all items count, in bounding order). The proof then asks of the data that the order of a
            user's rows is the user's own: that other users' rows do not change it.
    """

    target: int
    by_row: bool = False


def proportional(power: int, target: float, unit_bits: int, max_items: int) -> Proportional:
    """Return the policy with this target, if the sums of powers that users make of it fit.

    Engines add up to max_items powers of gaps in 127 bits, and hold a gap in 63.
    """
    whole = round(target * 2**unit_bits)
    if whole.bit_length() > _GAP_BITS or max_items * whole**power >= 1 << _SUM_BITS:
        raise _too_much(target, max_items)
    return Proportional(power, whole, unit_bits)


def unit_bits(power: int, largest: float, max_items: int) -> int:
    """Return the bits of the smallest unit in which this target has 63 bits, and sums 127."""
    sums = (_SUM_BITS - max_items.bit_length()) // power - 1
    room = min(_GAP_BITS, sums) - max(0, math.ceil(math.log2(largest)))
    if room < _FEWEST_BITS:
        raise _too_much(largest / 2, max_items)
    return min(_MOST_BITS, room)


def _too_much(target: float, max_items: int) -> UsageError:
    return UsageError(
        f"an item would need a weight of about {target:g}: give a larger epsilon or rho, or a "
        f"max_items below {max_items}"
    )


def sensitivity(power: int, unit_bits: int, max_items: int) -> float:
    """Return by how much an additional user can move H, rounding included: see "Rounding" above."""
    items = math.sqrt(max_items) if power == L2 else max_items
    return 1 + 2 * MOST_USERS * (items + 8) / (1 << unit_bits)


def check_buffer(buffer: float) -> None:
    """Reject anything but a sensible number: no noise comes near a million deviations."""
    if not 0 <= check_number("buffer", buffer) <= _LARGEST_BUFFER:
        raise UsageError(f"buffer must be from 0 to {_LARGEST_BUFFER}, got {buffer}")


def paid_alike(holders: Floats, each: float, full: float) -> Floats:
    """Return an item's weight where all its holders have the same items and pay each alike."""
    return np.minimum(full, holders * each)


def laplace_chances(weights: Floats, threshold: float, scale: float) -> Floats:
    """Return the chance that a weight with Laplace noise reaches the threshold."""
    lacking = (threshold - weights) / scale
    tail = np.exp(-np.abs(lacking)) / 2
    return np.where(lacking > 0, tail, 1 - tail)


def words_of_turns(how: str, full: float, noise: str, threshold: float) -> str:
    """Say what a round of turns does."""
    return (
        f"Users take turns in a random order. Each {how};\n"
        f"an item is full at {full:.4f}. It is released if its weight, with\n"
        f"{noise}, reaches the threshold, {threshold:.4f}."
    )


PROPORTIONALLY: Final = "pays its items\nin proportion to what they lack, 1 in all"
"""How users pay by `Proportional`, in words."""
