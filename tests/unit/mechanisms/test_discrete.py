"""Noise of counts: whole numbers, of the exact distribution, and nothing else.

OpenDP's own noise. Each of three chi-squared tests, whose cells expect 20 draws or more, has a
false-alarm rate far below 1e-6, as that of the exact distribution is 1e-10.
"""

import math
from collections import Counter
from importlib import util

import numpy as np
import pytest
from opendp.mod import GLOBAL_FEATURES
from scipy import stats

from dp_sips import UsageError
from dp_sips.mechanisms.discrete import measurement, require_sampler, with_noise
from dp_sips.privacy.noise import Key

pytestmark = pytest.mark.fresh

ALPHA = 1e-10
DRAWS = 40_000


def p_value(noise: list[int], sigma: float) -> float:
    """Return the p-value of draws against the discrete Gaussian, by a chi-squared test."""
    reach = math.ceil(6 * sigma)
    values = np.arange(-reach, reach + 1)
    odds = np.exp(-(values**2) / (2 * sigma**2))
    expected = dict(zip(values.tolist(), DRAWS * odds / odds.sum(), strict=True))
    beyond = {n: sum(expected[m] for m in expected if abs(m) >= abs(n)) for n in expected}
    far = max(abs(n) for n in expected if beyond[n] >= 20)  # one cell for this and all beyond
    found, cells = Counter(noise), range(1 - far, far)
    counts = [*(found[n] for n in cells), DRAWS - sum(found[n] for n in cells)]
    return float(stats.chisquare(counts, [*(expected[n] for n in cells), beyond[far]]).pvalue)


@pytest.mark.parametrize("sigma", [0.7, 3.3, 25.0])
def test_is_a_discrete_gaussian_of_this_deviation(sigma: float) -> None:
    noise = with_noise(np.zeros(DRAWS, dtype=np.int64), sigma, Key.fresh())
    assert noise.dtype == np.int64
    drawn = noise.tolist()
    assert p_value(drawn, sigma) > ALPHA
    assert p_value(drawn, sigma * 0.9) < ALPHA
    assert p_value(drawn, sigma * 1.1) < ALPHA


def test_is_added_to_each_count_by_itself() -> None:
    counts = np.array([5, 5, 1_000_000, 0], dtype=np.int64)
    once, again = (with_noise(counts, 200.0, Key.fresh()) for _ in range(2))
    assert (abs(once - counts) < 4000).all()
    assert len({*(once - counts).tolist(), *(again - counts).tolist()}) > 1


def test_no_counts_have_no_noise() -> None:
    for key in (Key.fresh(), Key.for_tests(1)):
        assert with_noise(np.zeros(0, dtype=np.int64), 2.0, key).tolist() == []


def test_a_test_key_repeats_itself() -> None:
    counts = np.arange(1000, dtype=np.int64)
    noise = with_noise(counts, 30.0, Key.for_tests(1)) - counts
    assert (with_noise(counts, 30.0, Key.for_tests(1)) - counts == noise).all()
    assert (with_noise(counts, 30.0, Key.for_tests(2)) - counts != noise).any()
    assert 27 < noise.std() < 33


def test_opendps_settings_stay_as_they_were() -> None:
    before = set(GLOBAL_FEATURES)
    measurement(1.0)
    assert set(GLOBAL_FEATURES) == before
    GLOBAL_FEATURES.add("contrib")
    try:
        measurement(1.0)
        assert "contrib" in GLOBAL_FEATURES
    finally:
        GLOBAL_FEATURES.discard("contrib")
        GLOBAL_FEATURES.update(before)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dp_sips.mechanisms.discrete.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'dp-sips\[counts\]'"):
        require_sampler(Key.fresh())
    require_sampler(Key.for_tests(1))
    assert util.find_spec("opendp")
