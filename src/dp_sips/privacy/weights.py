"""What a user adds to each of its items: fixed-point weights.

A weight is an integer number of units of 2⁻³⁰. Integer sums are exact and do not depend on their
order, so every engine gets the same histogram to the bit, and nothing leaks through rounding. Sums
have 64 bits: 2³⁴ users fit.

Guarantee: a user with k items adds w(k) = floor(2³⁰/√k) to each, so it moves the histogram by
√(k·w(k)²) ≤ 2³⁰ units: an L2 norm of at most 1, exactly (the paper's section 3.1). Where items have
claims q_1, …, q_k that add up to S, it adds ⌊√(2^2b q_j/S)⌋ units of 2^-b to each. The squares of
these add up to at most Σ 2^2b q_j/S = 2^2b: an L2 norm of at most 1 as well.

Under coins, weights may fall more slowly, as k^−γ with γ < 1/2. Then the norm is not bounded: a
table of coins has to be made for the very steps that `weight` returns (mechanisms/flat_rule.py).
They are whole numbers, worked out without floats, and so the same on every machine.
"""

import math
from bisect import bisect_right
from fractions import Fraction
from typing import Final

import numpy as np

from dp_sips.privacy.arrays import Weights

UNIT_BITS: Final = 30
UNIT: Final = 1 << UNIT_BITS
"""The weight of a user's only item."""

HALF: Final = Fraction(1, 2)
"""γ of the weights 1/√k, whose L2 norm is at most 1."""

WHOLE_CLAIM: Final = 16
"""What an item claims of the square of its holders' weight, unless a round has lowered it."""


def weight(count: int, step_bits: int = UNIT_BITS, gamma: Fraction = HALF) -> int:
    """Return floor(2³⁰/√count) = floor(√(2⁶⁰/count)), what each of a user's `count` items gets.

    The square root of a rounded-down integer, rounded down, is the same number, and exact. With
    fewer `step_bits`, it is rounded down to a multiple of 2^-step_bits: the norm only shrinks, and
    sums lie on that lattice. With another γ it is count^−γ, rounded down in the same way.
    """
    shift = UNIT_BITS - step_bits
    if gamma == HALF:
        return math.isqrt(UNIT * UNIT // count) >> shift << shift
    power = (1 << step_bits * gamma.denominator) // count**gamma.numerator
    cells = range(1, (1 << step_bits) + 1)
    return bisect_right(cells, power, key=lambda cell: cell**gamma.denominator) << shift


def weight_table(max_items: int, step_bits: int = UNIT_BITS, gamma: Fraction = HALF) -> Weights:
    """Return the weights for 0, 1, …, `max_items` items; no item, no weight."""
    table = [0, *(weight(k, step_bits, gamma) for k in range(1, max_items + 1))]
    return np.array(table, dtype=np.uint64)


def claimed_weight(claim: int, total: int, step_bits: int) -> int:
    """Return ⌊2^step_bits √(claim/total)⌋: what a user whose claims add up to `total` gives."""
    return math.isqrt((claim << 2 * step_bits) // total)
