"""The privacy-critical step: integer weights in, yes or no out, and nothing else."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dp_sips.privacy.evidence import STEP_BITS
from dp_sips.privacy.noise import Blocks, Key, Scrambler, exceeds, gaussian, laplace, uniform
from dp_sips.privacy.rule import ReleaseRule
from dp_sips.privacy.single import SingleRule
from dp_sips.privacy.weights import UNIT, UNIT_BITS, Weights

Decide = Callable[[Blocks, Weights], NDArray[np.bool_]]
"""Verdicts for a column of items and their weights; any batch, in any order, gives the same."""


def decide(
    blocks: Blocks,
    weights: Weights,
    *,
    sigma: float,
    threshold: float,
    scrambler: Scrambler,
    unit_bits: int = UNIT_BITS,
) -> NDArray[np.bool_]:
    """Release an item where its weight plus σ times its Gaussian reaches the threshold.

    Algorithm 1, lines 3–7, of the paper. An item without weight is not in the histogram's support:
    it is never released, however lucky its noise.

    Guarantee: with weights of L2 sensitivity 1 and independent Gaussians, the verdicts are a
    function of a Gaussian mechanism with noise σ, cut to the items that occur.
    Public: σ, the threshold and the unit. Sensitive: everything else, but for the verdicts.
    """
    needed = (threshold - weights / (1 << unit_bits)) / sigma
    return (weights > 0) & exceeds(scrambler(blocks), needed)


def decide_with_laplace(
    blocks: Blocks,
    weights: Weights,
    *,
    scale: float,
    threshold: float,
    scrambler: Scrambler,
    unit_bits: int,
) -> NDArray[np.bool_]:
    """Release an item where its weight plus scaled Laplace noise reaches the threshold.

    Guarantee: with weights of L1 sensitivity s, a function of an (s/scale)-DP Laplace mechanism,
    cut to the items that occur.
    Public: scale, threshold and unit. Sensitive: everything else, but for the verdicts.
    """
    needed = (threshold - weights / (1 << unit_bits)) / scale
    return (weights > 0) & (laplace(scrambler(blocks)) >= needed)


def decide_by_rule(
    blocks: Blocks, weights: Weights, *, rule: ReleaseRule | SingleRule, scrambler: Scrambler
) -> NDArray[np.bool_]:
    """Release an item with the probability that the rule gives its weight.

    Guarantee: the rule's own, for weights on its lattice.
    Public: the rule. Sensitive: everything else, but for the verdicts.
    """
    return (weights > 0) & rule.decide(weights, uniform(scrambler(blocks)))


Evidence = NDArray[np.float64]
"""Σ_l f_l (weight_l + noise_l) of each item, over the rounds so far."""

DecideOnEvidence = Callable[
    [Blocks, Weights, Evidence], tuple[Evidence, NDArray[np.bool_], NDArray[np.bool_]]
]
"""New evidence, and which items to release and which to drop, for a column of items."""


def decide_on_evidence(
    blocks: Blocks,
    weights: Weights,
    evidence: Evidence,
    *,
    share: float,
    spent: float,
    sigma: float,
    threshold: float,
    drop: float,
    scrambler: Scrambler,
) -> tuple[Evidence, NDArray[np.bool_], NDArray[np.bool_]]:
    """Add a round's noisy weights to the evidence; release above the threshold, drop the hopeless.

    What is compared is the average Σ f_l (weight_l + noise_l) / F; evidence.py has the theorem.
    Noise is rounded to the lattice on which the weights lie. An item without weight is in nobody's
    set: it is dropped, and never released.

    Guarantee: both verdicts are a function of the noisy weights, cut to the items that occur.
    Public: the shares, σ, the threshold and the drop level. Sensitive: everything else, but for
    what is released.
    """
    steps = 1 << STEP_BITS
    noisy = weights / UNIT + np.rint(gaussian(scrambler(blocks)) * (sigma * steps)) / steps
    total = evidence + share * noisy
    average = total / spent
    released = (weights > 0) & (average >= threshold)
    return total, released, (weights == 0) | (average < drop)


def decide_and_note(
    blocks: Blocks,
    weights: Weights,
    evidence: Evidence,
    *,
    sigma: float,
    threshold: float,
    drop: float,
    scrambler: Scrambler,
    unit_bits: int,
) -> tuple[Evidence, NDArray[np.bool_], NDArray[np.bool_]]:
    """Release above the threshold, drop the hopeless, and keep the noisy weights of the others.

    Guarantee: as `decide`; what is kept is the mechanism's own output, for a later round to use.
    Public: σ, the threshold, the drop level and the unit. Sensitive: everything else.
    """
    del evidence
    noisy = weights / (1 << unit_bits) + sigma * gaussian(scrambler(blocks))
    return noisy, (weights > 0) & (noisy >= threshold), (weights == 0) | (noisy < drop)


def noise_for_round(key: Key, index: int) -> Scrambler:
    """Return the source of noise of round `index`: independent of every other round's."""
    return key.scrambler(f"noise of round {index}")
