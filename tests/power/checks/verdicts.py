"""Verdicts, one by one: each is worked out again in plain Python from the bits of its noise."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from dp_sips.mechanisms.claims import Schedule
from dp_sips.mechanisms.cumulative import decide_on_evidence
from dp_sips.mechanisms.discrete import with_noise
from dp_sips.mechanisms.evidence import STEP_BITS, claim_edges
from dp_sips.mechanisms.mad import decide_and_note
from dp_sips.mechanisms.single import SingleRule
from dp_sips.privacy.arrays import Blocks, Weights
from dp_sips.privacy.decide import decide, decide_by_coin, decide_with_laplace, noisy_integer
from dp_sips.privacy.noise import Key, Purpose, Scrambler

_ITEMS = 20_000
_UNIT = 1 << 30
_DRAWS = 10_000


def some_blocks(count: int = _ITEMS) -> Blocks:
    columns = np.arange(count, dtype=np.uint64), np.full(count, 7, dtype=np.uint64)
    return np.stack(columns, axis=1)


def some_weights(unit: int = _UNIT, count: int = _ITEMS) -> Weights:
    """Return weights from 0 to 6; every tenth item has none."""
    weights = np.random.default_rng(3).integers(1, 6 * unit, count, dtype=np.uint64)
    weights[::10] = 0
    return weights


def tails(scrambler: Scrambler, blocks: Blocks) -> list[tuple[float, int]]:
    """Return what the bits of each item say: the size of its tail, and its sign."""
    return [
        ((int(a) + ((int(b) >> 1) + 0.5) / 2**63) / 2**65, 1 if int(b) & 1 else -1)
        for a, b in scrambler(blocks)
    ]


def gaussians(scrambler: Scrambler, blocks: Blocks) -> list[float]:
    inverse = NormalDist().inv_cdf
    return [-sign * inverse(size) for size, sign in tails(scrambler, blocks)]


def far_out(scrambler: Scrambler) -> Blocks:
    """Return blocks whose Gaussians are more than 4.05 deviations from 0, on either side."""
    blocks = some_blocks(50 * _ITEMS)
    bound = np.uint64(2**65 * NormalDist().cdf(-4.05))
    return blocks[scrambler(blocks)[:, 0] < bound]


def laplaces(scrambler: Scrambler, blocks: Blocks) -> list[float]:
    return [-sign * math.log(2 * size) for size, sign in tails(scrambler, blocks)]


def _agree(verdicts: Any, expected: list[bool | None]) -> None:
    """Hold verdicts against what they should be, except where rounding decides (None)."""
    wrong = [n for n, right in enumerate(expected) if right is not None and right != verdicts[n]]
    assert not wrong, f"{len(wrong)} of {len(expected)} verdicts are wrong"
    assert 0.1 < sum(map(bool, verdicts)) / len(verdicts) < 0.9


def _above(noisy: float, level: float) -> bool | None:
    return None if math.isclose(noisy, level, rel_tol=1e-9) else noisy >= level


def gaussian_verdicts() -> None:
    """decide: weight > 0 and weight + σ·Gaussian ≥ T, also far out, where integers decide."""
    scrambler = Key.for_tests(5).noise_of_round(2)
    far = far_out(scrambler)
    light = np.full(len(far), _UNIT // 4, dtype=np.uint64)
    for blocks, weights, sigma, threshold in (
        (some_blocks(), some_weights(), 1.3, 3.0),
        (some_blocks(), some_weights(), 0.4, 3.0),
        (far, light, 1.0, 4.3),
    ):
        noise = gaussians(scrambler, blocks)
        verdicts = decide(blocks, weights, sigma=sigma, threshold=threshold, scrambler=scrambler)
        expected = [
            _above(int(w) / _UNIT + sigma * z, threshold) if w else False
            for w, z in zip(weights, noise, strict=True)
        ]
        _agree(verdicts, expected)


def laplace_verdicts() -> None:
    """decide_with_laplace: weight > 0 and weight + scale·Laplace ≥ T."""
    blocks, weights = some_blocks(), some_weights(1 << 40)
    scrambler = Key.for_tests(5).noise_of_round(0)
    verdicts = decide_with_laplace(
        blocks, weights, scale=0.9, threshold=3.0, scrambler=scrambler, unit_bits=40
    )
    noise = laplaces(scrambler, blocks)
    expected = [
        _above(int(w) / 2**40 + 0.9 * z, 3.0) if w else False
        for w, z in zip(weights, noise, strict=True)
    ]
    _agree(verdicts, expected)


def coin_verdicts() -> None:
    """decide_by_coin: weight > 0 and a uniform number below π(weight)."""
    coin, blocks = SingleRule(1.0, 0.01), some_blocks()
    weights = some_weights(2) * np.uint64(_UNIT)
    scrambler = Key.for_tests(5).noise_of_round(0)
    verdicts = decide_by_coin(blocks, weights, coin=coin, scrambler=scrambler)
    chances = coin.odds(weights)[0]
    uniforms = [sign * size % 1 for size, sign in tails(scrambler, blocks)]
    expected = [
        _above(-u, -p) if w else False for w, p, u in zip(weights, chances, uniforms, strict=True)
    ]
    _agree(verdicts, expected)


def noted_verdicts() -> None:
    """decide_and_note: as decide; an item without weight is neither released nor kept."""
    blocks, weights = some_blocks(), some_weights(1 << 46)
    scrambler, sigma = Key.for_tests(5).noise_of_round(0), 1.3
    noisy, released, claims = decide_and_note(
        blocks,
        weights,
        np.zeros(_ITEMS),
        sigma=sigma,
        threshold=3.0,
        drop=2.0,
        scrambler=scrambler,
        unit_bits=46,
    )
    exact = [
        int(w) / 2**46 + sigma * z
        for w, z in zip(weights, gaussians(scrambler, blocks), strict=True)
    ]
    assert np.allclose(noisy, exact, rtol=0, atol=1e-9)
    held = [bool(w) for w in weights]
    _agree(released, [h and _above(x, 3.0) for h, x in zip(held, exact, strict=True)])
    _agree(claims > 0, [h and _above(x, 2.0) for h, x in zip(held, exact, strict=True)])


def evidence_verdicts() -> None:
    """decide_on_evidence: evidence grows by count·(weight + rounded noise), and decides."""
    blocks, step = some_blocks(), 1 << STEP_BITS
    weights = some_weights(step)
    before = np.random.default_rng(4).normal(0, 1, _ITEMS)
    scrambler, sigma, count = Key.for_tests(5).noise_of_round(0), 1.3, 0.6
    total, released, claims = decide_on_evidence(
        blocks,
        weights,
        before,
        count=count,
        sigma=sigma,
        threshold=2.5,
        edges=[1.0, 1.2, 1.4, 1.6],
        scrambler=scrambler,
    )
    exact = [
        e + count * (int(w) + round(sigma * z * step)) / step
        for e, w, z in zip(before, weights, gaussians(scrambler, blocks), strict=True)
    ]
    assert np.allclose(total, exact, rtol=0, atol=1e-3)
    held = [bool(w) for w in weights]
    near = 2e-4  # a rounding that ties may go the other way
    _agree(
        released,
        [
            h and (None if abs(x - 2.5) < near else x >= 2.5)
            for h, x in zip(held, exact, strict=True)
        ],
    )
    sides = (1.0, 1.2, 1.4, 1.6)
    expected = [
        (0, 1, 4, 9, 16)[sum(x >= edge for edge in sides)] if h else 0
        for h, x in zip(held, exact, strict=True)
    ]
    assert sum(a != b for a, b in zip(claims, expected, strict=True)) < _ITEMS // 500


def rounding_lowers_no_claim() -> None:
    """claim_edges: an item whose noise was rounded down by half a step keeps its claim.

    The accounting counts with the claims of noise before it is rounded: one that is lower, because
    the drop level is compared after rounding and not before, would break it.
    """
    schedule = Schedule((0.3, 0.7), 1.06, (-1.0, 0.5), 1.5, 0.2, 8.0)
    for rho in (0.1, 5.0):
        edges = claim_edges(rho, schedule)
        for index, deviation in enumerate(schedule.deviations(rho)):
            exact = schedule.edges(index) * deviation
            rounded_down = exact - 2.0 ** -(STEP_BITS + 1)
            assert (rounded_down >= edges[index] - 1e-12).all()
            assert (edges[index] >= exact - 2.0**-STEP_BITS).all()


def look_noise() -> None:
    """noisy_integer: a whole number plus Laplace noise, other noise for each place."""
    scrambler = Key.for_tests(9).scrambler(Purpose.LOOK)
    for scale in (0.7, 50.0, 1e4):
        for place in range(200):
            (z,) = laplaces(scrambler, np.array([[place, 0]], dtype=np.uint64))
            found = noisy_integer(1000, scale=scale, scrambler=scrambler, place=place)
            assert abs(found - (1000 + scale * z)) <= 0.5 + 1e-6


def count_noise() -> None:
    """with_noise: counts plus Gaussian noise of deviation σ, independent for each count.

    OpenDP's has no seed. Its variance is that of 10,000 samples: a chi-squared test with a
    false-alarm rate of 1e-9 (the discrete Gaussian is lighter in its tails than is needed), which
    tells σ from 0.9 σ with a miss below 1e-9. Neighbours are correlated by at most 6.5/√n.
    """
    from scipy import stats

    sigma = 12.0
    counts = np.arange(_DRAWS, dtype=np.int64)
    seeded = with_noise(counts, sigma, Key.for_tests(4)) - counts
    places = np.stack((counts.astype(np.uint64), np.zeros(_DRAWS, np.uint64)), axis=1)
    exact = gaussians(Key.for_tests(4).scrambler(Purpose.COUNTS), places)
    assert all(abs(n - sigma * z) <= 0.5 + 1e-6 for n, z in zip(seeded, exact, strict=True))
    fresh = with_noise(counts, sigma, Key.fresh()) - counts
    assert fresh.dtype == np.int64
    sum_of_squares = float((fresh.astype(float) ** 2).sum()) / sigma**2
    assert stats.chi2.cdf(sum_of_squares, _DRAWS) > 5e-10
    assert stats.chi2.sf(sum_of_squares, _DRAWS) > 5e-10
    again = with_noise(counts[:2000], sigma, Key.fresh()) - counts[:2000]
    for a, b in ((fresh[1:], fresh[:-1]), (fresh[:2000], again)):
        correlation = float((a * b).sum()) / sigma**2 / math.sqrt(len(a))
        assert abs(correlation) < 6.5


EVERY: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        gaussian_verdicts,
        laplace_verdicts,
        coin_verdicts,
        noted_verdicts,
        evidence_verdicts,
        rounding_lowers_no_claim,
        look_noise,
        count_noise,
    )
}
