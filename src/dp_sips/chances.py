"""How likely rounds are to release an item of a given weight. Public: nothing here sees data."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dp_sips.privacy.adaptive import MOST, WIDE_BITS
from dp_sips.privacy.policy import Proportional
from dp_sips.privacy.weights import UNIT, weight
from dp_sips.rounds import (
    AdaptiveRound,
    AnyRound,
    EvidenceRound,
    FoldRound,
    LaplaceRound,
    Round,
    RuleRound,
)

Floats = NDArray[np.float64]

# Of a long list of weights, every so many are worked out first, and those in between only where
# the chance grows by more than this.
_APART = 64
_FLAT = 1e-12


def chances(rounds: Sequence[AnyRound], holders: Floats, items: int) -> Floats:
    """Return the chance that some round releases an item, for each number of its holders.

    Each of them has `items` items, none of which is found or dropped; where users pay one after
    the other, all of them have the same items.
    """
    if isinstance(rounds[0], FoldRound | LaplaceRound):
        return _by_payment(rounds[0], holders, items)
    spread = [r for r in rounds if isinstance(r, AdaptiveRound)]
    if spread:
        return _by_spread(spread, holders, items)
    evident = [r for r in rounds if isinstance(r, EvidenceRound)]
    if evident:
        return _by_evidence(evident, holders * weight(items, evident[0].step_bits) / UNIT)
    missed = np.zeros(len(holders))
    for r in rounds:
        assert isinstance(r, Round | RuleRound)
        missed += _missed(r, holders, weight(items, r.step_bits))
    return np.asarray(-np.expm1(missed))


def _by_payment(step: FoldRound | LaplaceRound, holders: Floats, items: int) -> Floats:
    """Return the chance where all holders have the same items, and pay them alike."""
    from scipy.special import ndtr

    root = step.policy.power if isinstance(step.policy, Proportional) else 1
    full = step.policy.target / 2**step.policy.unit_bits
    weights: Floats = np.minimum(full, holders / math.pow(items, 1 / root))
    if isinstance(step, FoldRound):
        return np.asarray(ndtr((weights - step.threshold) / step.sigma))
    lacking = (step.threshold - weights) / step.scale
    tail = np.exp(-np.abs(lacking)) / 2
    return np.where(lacking > 0, tail, 1 - tail)


def _by_spread(rounds: Sequence[AdaptiveRound], holders: Floats, items: int) -> Floats:
    """Return the chance where only this one of the holders' items is popular.

    Of two rounds, the first may release the item, drop it, or tell the second how well it does.
    """
    from scipy.special import ndtr

    first, *later = rounds
    weights = _spread_weights(first, holders, items, 0.0)
    missed = ndtr((first.threshold - weights) / first.sigma)
    if not later:
        return np.asarray(1 - missed)
    second, found = later[0], 1 - missed
    edges = [e for e in second.spread.edges if e < first.threshold]
    cells = [first.drop or -math.inf, *edges, first.threshold]
    for low, high in pairwise(cells):
        odds = ndtr((high - weights) / first.sigma) - ndtr((low - weights) / first.sigma)
        again = _spread_weights(second, holders, items, low)
        found += np.maximum(odds, 0) * ndtr((again - second.threshold) / second.sigma)
    return np.asarray(np.minimum(found, 1))


def _spread_weights(step: AdaptiveRound, holders: Floats, items: int, evidence: float) -> Floats:
    """Return the weight of an item with this evidence, each of whose holders has `items` items."""
    size, spread = np.array([items]), step.spread
    alone = np.zeros(items, dtype=np.int64)
    initial = np.minimum(holders * float(spread.first(size, alone)[0]), MOST).astype(np.uint64)
    signals = spread.signal(initial, np.full(len(holders), evidence))
    given = np.empty(len(holders))
    for n, signal in enumerate(signals):
        alone[0] = signal
        given[n] = spread.second(size, alone)[0]
    return holders * given / 2.0**WIDE_BITS


def _missed(step: Round | RuleRound, holders: Floats, weight: int) -> Floats:
    """Return the logarithm of the chance that a round does not release an item."""
    if isinstance(step, RuleRound):
        # No table is as long as this; and the product is exact.
        weights = np.minimum(holders, 2.0**33).astype(np.uint64) * np.uint64(weight)
        with np.errstate(divide="ignore"):
            return np.log1p(-step.rule.probability(weights))
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr((step.threshold - holders * (weight / UNIT)) / step.sigma))


def _by_evidence(rounds: Sequence[EvidenceRound], weights: Floats) -> Floats:
    """Return the chances of ascending weights; where they hardly grow, most are read off."""
    places = np.arange(len(weights))
    some = np.unique(np.append(places[::_APART], places[-1:]))
    known = _followed(rounds, weights[some])
    found = np.interp(places, some, known)
    for n in np.flatnonzero(np.diff(known) > _FLAT):
        between = slice(some[n], some[n + 1])
        found[between] = _followed(rounds, weights[between])
    return found


def _followed(rounds: Sequence[EvidenceRound], weights: Floats) -> Floats:
    """Follow the noise of items' evidence through all rounds, on a lattice.

    Σ f_l noise_l, in units that make it a Brownian motion at time F_l, is released above one level
    and dropped below another; both depend on the weight.
    """
    from scipy.special import ndtr

    step, reach = 0.005, 9.0
    size = int(reach / step)
    lattice = np.arange(-size, size + 1) * step
    edges = np.append(lattice - step / 2, lattice[-1] + step / 2)
    chance = np.zeros((len(weights), len(lattice)))
    chance[:, size] = 1.0
    released, before = np.zeros(len(weights)), 0.0
    for r in rounds:
        unit = math.sqrt(2 * r.rho / r.share)  # noise of evidence F·X is B(F) / unit
        moves = np.diff(ndtr(edges / math.sqrt(r.spent - before)))
        chance = _convolved(chance, moves)[:, size : size + len(lattice)]
        level, drop = ((x - weights[:, None]) * r.spent * unit for x in (r.threshold, r.drop))
        found = lattice >= level
        released += np.where(found, chance, 0).sum(axis=1)
        chance = np.where(found | (lattice < drop), 0, chance)
        before = r.spent
    return np.clip(released, 0, 1)


def _convolved(rows: Floats, moves: Floats) -> Floats:
    """Return the convolution of each row with `moves`."""
    length = 1 << (rows.shape[1] + len(moves) - 1).bit_length()
    transformed = np.fft.rfft(rows, length) * np.fft.rfft(moves, length)
    return np.fft.irfft(transformed, length)


def binomial(trials: int, chance: float) -> tuple[Floats, Floats]:
    """Return the likely values of a binomial and their probabilities; the rest is below 1e-15."""
    from scipy.special import gammaln

    mean = trials * chance
    reach = 9 * math.sqrt(mean * (1 - chance)) + 40
    values = np.arange(max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach)) + 1.0)
    logs = (
        gammaln(trials + 1.0)
        - gammaln(values + 1)
        - gammaln(trials - values + 1)
        + values * math.log(chance)
        + (trials - values) * math.log1p(-chance)
    )
    return values, np.exp(logs)
