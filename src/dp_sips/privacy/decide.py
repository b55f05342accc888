"""The privacy-critical step: integer weights in, yes or no out, and nothing else."""

from typing import Protocol

import numpy as np

from dp_sips.privacy.arrays import Blocks, Bools, Floats, Weights
from dp_sips.privacy.noise import Scrambler, candidates, gaussian, laplace, uniform
from dp_sips.privacy.weights import UNIT_BITS


def decide(
    blocks: Blocks,
    weights: Weights,
    *,
    sigma: float,
    threshold: float,
    scrambler: Scrambler,
    unit_bits: int = UNIT_BITS,
) -> Bools:
    """Release an item where its weight plus σ times its Gaussian reaches the threshold.

    Algorithm 1, lines 3–7, of the paper. An item without weight is not in the histogram's support:
    it is never released, however lucky its noise.

    Guarantee: with weights of L2 sensitivity 1 and independent Gaussians, the verdicts are a
    function of a Gaussian mechanism with noise σ, cut to the items that occur.
    Public: σ, the threshold and the unit. Sensitive: everything except the verdicts.
    """
    bits = scrambler(blocks)
    rows = candidates(bits, weights, threshold, sigma, 1 << unit_bits)
    needed = (threshold - weights[rows] / (1 << unit_bits)) / sigma
    verdicts = np.zeros(len(weights), dtype=np.bool_)
    verdicts[rows] = gaussian(bits.take(rows, axis=0)) >= needed
    return verdicts


def decide_with_laplace(
    blocks: Blocks,
    weights: Weights,
    *,
    scale: float,
    threshold: float,
    scrambler: Scrambler,
    unit_bits: int,
) -> Bools:
    """Release an item where its weight plus scaled Laplace noise reaches the threshold.

    Guarantee: with weights of L1 sensitivity s, a function of an (s/scale)-DP Laplace mechanism,
    cut to the items that occur.
    Public: scale, threshold and unit. Sensitive: everything except the verdicts.
    """
    needed = (threshold - weights / (1 << unit_bits)) / scale
    return (weights > 0) & (laplace(scrambler(blocks)) >= needed)


def noisy_integer(value: int, *, scale: float, scrambler: Scrambler, place: int) -> int:
    """Return a whole number plus Laplace noise, rounded; `place` tells numbers of one look apart.

    Rounding is done after noise was added to a whole number: it sees nothing else.

    Guarantee: (s/scale)-DP where one user moves the number by at most s.
    Public: scale and place. Sensitive: the value, and the result until a mechanism has used it.
    """
    bits = scrambler(np.array([[place, 0]], dtype=np.uint64))
    return value + round(float(laplace(bits)[0]) * scale)


class Coin(Protocol):
    """A probability of release for each weight, with as many good digits near 1 as near 0."""

    def odds(self, weights: Weights) -> tuple[Floats, Floats]:
        """Return the probability of a yes, and of a no, for each weight."""


def decide_by_coin(blocks: Blocks, weights: Weights, *, coin: Coin, scrambler: Scrambler) -> Bools:
    """Release an item with the probability that the coin gives its weight.

    Guarantee: the coin's own, for the weights that it is made for. An item without weight is never
    released.
    Public: the coin. Sensitive: everything except the verdicts.
    """
    return (weights > 0) & toss(uniform(scrambler(blocks)), *coin.odds(weights))


def toss(uniform: Floats, yes: Floats, no: Floats) -> Bools:
    """Release where a uniform number modulo 1 is below `yes`, which is 1 − `no`.

    The uniform may lie in [0, 1) or, with as many good digits near 1 as near 0, in (−½, ½). Each of
    the two odds has its good digits where it is small, and decides there: entries of a table can be
    far below 2⁻⁵³, which uniforms in [0, 1) are too coarse for.

    Guarantee: the odds of a verdict are off by no more than the relative error of P[0 ≤ u < t] and
    P[−t ≤ u < 0] at t ≤ ½.
    """
    return np.where(uniform >= 0, uniform < yes, -uniform > no)
