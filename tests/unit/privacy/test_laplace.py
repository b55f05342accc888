"""Laplace noise and its threshold.

Every statistical test draws fresh keys and has a false-alarm rate of at most `ALPHA`; there are
fewer than ten.
"""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.unit.privacy.samples import ALPHA, SAMPLES, Floats, bits_of, blocks

from dp_sips.privacy.decide import decide_with_laplace
from dp_sips.privacy.noise import SAMPLER_ERROR, SAMPLER_TAIL, Key, laplace
from dp_sips.privacy.threshold import laplace_threshold

pytestmark = pytest.mark.fresh


def draw() -> Floats:
    return laplace(Key.fresh().noise_of_round(0)(blocks(SAMPLES)))


def p_of_scale(sample: Floats) -> float:
    """Two-sided: the sum of n sizes is exactly a Gamma number of shape n."""
    total, count = float(np.abs(sample).sum()), len(sample)
    return 2 * float(min(stats.gamma.sf(total, count), stats.gamma.cdf(total, count)))


def p_beyond(level: float) -> Callable[[Floats], float]:
    def p(sample: Floats) -> float:
        beyond = int((np.abs(sample) > level).sum())
        return float(stats.binomtest(beyond, len(sample), math.exp(-level)).pvalue)

    return p


def p_of_shape(sample: Floats) -> float:
    """Kolmogorov's distance, with the bound of Dvoretzky, Kiefer, Wolfowitz and Massart."""
    distance = float(stats.ks_1samp(sample, stats.laplace.cdf).statistic)
    return 2 * math.exp(-2 * len(sample) * distance**2)


CHECKS = {"scale": p_of_scale, "1": p_beyond(1), "5": p_beyond(5), "shape": p_of_shape}


class TestDistribution:
    @pytest.mark.parametrize("name", CHECKS)
    def test_accepts_the_true_scale_and_rejects_others(self, name: str) -> None:
        """A scale of 0.7 or 1.3 is over a hundred standard errors away."""
        check, sample = CHECKS[name], draw()
        assert check(sample) > ALPHA
        assert check(sample * 0.7) < ALPHA
        assert check(sample * 1.3) < ALPHA

    def test_sign(self) -> None:
        positive = int((draw() > 0).sum())
        assert stats.binomtest(positive, SAMPLES, 0.5).pvalue > ALPHA


class TestInversion:
    @pytest.mark.parametrize("t", [1e-9, 0.01, 0.5, math.log(2), 1, 3, 10, 20, 40, 56, 57])
    def test_probability_beyond_a_point(self, t: float) -> None:
        """Count the patterns with laplace ≥ t by bisection and compare with the exact share."""
        low, high = 0, 1 << 127
        while low < high:
            middle = (low + high) // 2
            if laplace(bits_of(middle, 1))[0] >= t:
                low = middle + 1
            else:
                high = middle
        with mpmath.workdps(50):
            share = mpmath.mpf(low) / mpmath.mpf(2) ** 128
            exact = mpmath.exp(-mpmath.mpf(t)) / 2
            assert abs(share / exact - 1) < SAMPLER_ERROR
            assert abs((1 - share) / (1 - exact) - 1) < SAMPLER_ERROR

    def test_what_lies_beyond_is_rare(self) -> None:
        assert math.exp(-57) / 2 <= SAMPLER_TAIL

    @given(st.integers(0, 2**127 - 1))
    def test_the_last_bit_is_the_sign(self, tail: int) -> None:
        assert laplace(bits_of(tail, 0))[0] == -laplace(bits_of(tail, 1))[0]
        assert laplace(bits_of(tail, 1))[0] >= 0

    def test_the_ends(self) -> None:
        assert laplace(bits_of(0, 1))[0] == pytest.approx(128 * math.log(2))
        assert laplace(bits_of((1 << 127) - 1, 1))[0] == pytest.approx(0, abs=1e-15)


scales = st.floats(math.log(1e-2), math.log(1e4)).map(math.exp)
deltas = st.floats(math.log(1e-15), math.log(0.1)).map(math.exp) | st.floats(0.1, 0.999)


class TestThreshold:
    @given(scales, deltas, st.integers(1, 300), st.floats(0, 1))
    def test_a_lone_user_crosses_with_probability_at_most_delta(
        self, scale: float, delta: float, most: int, where: float
    ) -> None:
        level, items = laplace_threshold(scale, delta, most), 1 + int(where * (most - 1))
        with mpmath.workdps(60):
            lacks = (mpmath.mpf(level) - mpmath.mpf(1) / items) / mpmath.mpf(scale)
            tail = mpmath.exp(-abs(lacks)) / 2
            each = tail if lacks > 0 else 1 - tail
            assert -mpmath.expm1(items * mpmath.log1p(-each)) <= delta

    @given(scales, st.floats(1e-12, 0.2), st.integers(1, 300))
    def test_is_the_lowest_such(self, scale: float, delta: float, most: int) -> None:
        each = [-math.expm1(math.log1p(-delta) / k) for k in range(1, most + 1)]
        levels = [1 / k - scale * math.log(2 * p) for k, p in enumerate(each, start=1)]
        assert laplace_threshold(scale, delta, most) == pytest.approx(max(levels), rel=1e-10)

    def test_of_one_item_is_the_published_one(self) -> None:
        assert laplace_threshold(1.0, 1e-5, 1) == pytest.approx(1 - math.log(2e-5))


class TestDecide:
    def test_chances(self) -> None:
        """Each of three weights within 7 deviations: a false alarm of 3e-12."""
        plain, scale, level, bits = blocks(SAMPLES), 1.5, 4.0, 20
        for weight in (1.0, 4.0, 6.0):
            weights = np.full(SAMPLES, int(weight * 2**bits), dtype=np.uint64)
            found = decide_with_laplace(
                plain,
                weights,
                scale=scale,
                threshold=level,
                scrambler=Key.fresh().noise_of_round(0),
                unit_bits=bits,
            ).sum()
            chance = float(stats.laplace.sf((level - weight) / scale))
            assert abs(found - SAMPLES * chance) < 7 * math.sqrt(SAMPLES * chance * (1 - chance))

    def test_no_weight_no_release(self) -> None:
        found = decide_with_laplace(
            blocks(100),
            np.zeros(100, dtype=np.uint64),
            scale=1.0,
            threshold=-100.0,
            scrambler=Key.fresh().noise_of_round(0),
            unit_bits=0,
        )
        assert not found.any()
