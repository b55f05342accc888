"""The privacy-critical step: integer weights in, yes or no out, and nothing else."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dp_sips.privacy.noise import Blocks, Key, Scrambler, exceeds
from dp_sips.privacy.weights import UNIT, Weights

Decide = Callable[[Blocks, Weights], NDArray[np.bool_]]
"""Verdicts for a column of items and their weights; any batch, in any order, gives the same."""


def decide(
    blocks: Blocks, weights: Weights, *, sigma: float, threshold: float, scrambler: Scrambler
) -> NDArray[np.bool_]:
    """Release an item where its weight plus σ times its Gaussian reaches the threshold.

    Algorithm 1, lines 3–7, of the paper. An item without weight is not in the histogram's support:
    it is never released, however lucky its noise.

    Guarantee: with weights of L2 sensitivity 1 and independent Gaussians, the verdicts are a
    function of a Gaussian mechanism with noise σ, cut to the items that occur.
    Public: σ and the threshold. Sensitive: everything else, but for the verdicts.
    """
    needed = (threshold - weights / UNIT) / sigma
    return (weights > 0) & exceeds(scrambler(blocks), needed)


def noise_for_round(key: Key, index: int) -> Scrambler:
    """Return the source of noise of round `index`: independent of every other round's."""
    return key.scrambler(f"noise of round {index}")
