"""The chance of a verdict, from the very function that makes it.

A round hands the engine a function from blocks and weights to verdicts, in which noise comes from a
scrambler. Here the scrambler is a dial: we choose the bits, and find by bisection where a verdict
changes. That is the exact chance with which the installed code releases an item of this weight,
threshold, noise, table and rounding included.

Where verdicts are cells, from the lowest noisy weight to the highest, the chances of all borders
between them give those of the cells.

It relies on one thing: for each sign, the verdict changes at most once as the size of the uniform
number in the bits grows (`noise.uniform`). That is so for every comparison with a threshold and for
every coin.
"""

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dp_sips.privacy.arrays import Blocks, Bools, Floats, Integers, Weights
from dp_sips.privacy.contributions import Decide
from dp_sips.privacy.noise import Scrambler

_SMALLEST: Final = 2.0**-120
LARGEST: Final = 0.5 - 2.0**-54
_STEPS: Final = 60


class Dial(Scrambler):
    """A scrambler that gives the bits it was told, whatever the blocks."""

    __slots__ = ("_bits", "lock")

    def __init__(self) -> None:
        super().__init__(b"")
        self._bits: Any = None
        self.lock = threading.Lock()

    def turn(self, sizes: Floats, sign: int) -> None:
        """Set uniform numbers of these sizes, from 0 to ½, and this sign."""
        scaled = sizes * 2.0**65
        whole = np.floor(scaled)
        rest = np.floor((scaled - whole) * 2.0**63).astype(np.uint64)
        self._bits = np.stack(
            [whole.astype(np.uint64), rest << np.uint64(1) | np.uint64(sign)], axis=1
        )

    def __call__(self, blocks: Blocks) -> Blocks:
        """Return the bits that were set."""
        del blocks
        bits: Blocks = self._bits
        return bits


def chances(decide: Decide, dial: Dial, blocks: Blocks, weights: Weights) -> tuple[Floats, Floats]:
    """Return the chances of yes and of no for each weight, each with its good digits."""
    with dial.lock:
        sides = [_side(decide, dial, blocks, weights, sign) for sign in (0, 1)]
    yes, no = (sides[0][n] + sides[1][n] for n in (0, 1))
    return yes, no


def cell_chances(
    cells: Callable[[Blocks, Weights], Integers],
    count: int,
    dial: Dial,
    blocks: Blocks,
    weights: Weights,
) -> list[Floats]:
    """Return the chance of each cell for each weight; none is off by more than rounding."""

    def reaches(cell: int) -> tuple[Floats, Floats]:
        return chances(lambda b, w: cells(b, w) >= cell, dial, blocks, weights)

    every = np.ones(len(weights))
    borders = [(every, 0 * every), *map(reaches, range(1, count)), (0 * every, every)]
    # Of the differences of both tails, the one of smaller numbers has more good digits.
    return [
        np.maximum(np.where(yes < below, yes - above, no - below), 0.0)
        for (yes, below), (above, no) in pairwise(borders)
    ]


def _side(
    decide: Decide, dial: Dial, blocks: Blocks, weights: Weights, sign: int
) -> tuple[Floats, Floats]:
    """Return how much of the half of all bits that has this sign gives yes, and no."""

    def verdicts(sizes: Floats) -> Bools:
        dial.turn(sizes, sign)
        return decide(blocks, weights)

    low, high = np.full(len(weights), _SMALLEST), np.full(len(weights), LARGEST)
    inner, outer = verdicts(low), verdicts(high)
    for _ in range(_STEPS):
        middle = np.sqrt(low * high)
        same = verdicts(middle) == inner
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    # Where nothing changes, the change is beyond one end.
    border = np.where(inner == outer, 0.5, low)
    return np.where(inner, border, 0.5 - border), np.where(inner, 0.5 - border, border)
