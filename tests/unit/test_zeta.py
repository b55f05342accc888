"""The zeta sampler draws what it says: compared with exact probabilities, and shown to notice."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import zeta as hurwitz
from scipy.stats import chisquare

from dp_sips import zeta

DRAWS = 2_000_000
STARTS = np.array([*range(1, 64), *(2.0**k for k in range(6, 63))])
"""Where cells begin: items of their own, then powers of two."""


def p_value(drawn: NDArray[np.int64]) -> float:
    """Return Pearson's p-value of draws, against zeta(1.1) without what is too large."""
    above = hurwitz(zeta.ZETA, np.append(STARTS, float(zeta.LARGEST)))
    expected = (above[:-1] - above[1:]) / (above[0] - above[-1])
    cells = np.searchsorted(STARTS, drawn, side="right") - 1
    counts = np.bincount(cells, minlength=len(STARTS))
    return float(chisquare(counts, expected * len(drawn)).pvalue)


def test_items_have_their_exact_probabilities() -> None:
    assert p_value(zeta.draw_zeta(np.random.default_rng(1), DRAWS)) > 0.001


def test_without_rejection_the_test_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeta, "_BARS", np.full(len(zeta._BARS), 2.0))
    assert p_value(zeta.draw_zeta(np.random.default_rng(1), DRAWS)) < 1e-6


@pytest.mark.parametrize("item", [1, 3])
def test_one_bar_that_is_too_short_is_noticed(monkeypatch: pytest.MonkeyPatch, item: int) -> None:
    bars = zeta._BARS.copy()
    bars[item] -= 0.005 * item**-zeta.ZETA  # a twentieth of its length
    monkeypatch.setattr(zeta, "_BARS", bars)
    assert p_value(zeta.draw_zeta(np.random.default_rng(1), DRAWS)) < 1e-6


def test_a_tail_that_ends_too_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeta, "_LOWEST", (2.0**62) ** -0.1)
    assert p_value(zeta.draw_zeta(np.random.default_rng(1), DRAWS)) < 1e-6


def test_in_parts_as_at_once() -> None:
    once, parts = np.random.default_rng(3), np.random.default_rng(3)
    whole = zeta.draw_zeta(once, 100_000)
    pieces = [zeta.draw_zeta(parts, count) for count in (0, 1, 39_999, 60_000)]
    assert np.array_equal(whole, np.concatenate(pieces))


def test_the_ends_of_the_range() -> None:
    ends = zeta._standing(np.array([1e-9, 0.1, 1 - 2.0**-53]))
    assert ends[:-1].tolist() == [1]  # the highest of all heights is of no item
    assert 2**62 < ends[-1] <= zeta.LARGEST + 2**20 - 1
    drawn = zeta.draw_zeta(np.random.default_rng(1), DRAWS)
    assert drawn.min() == 1
    assert 2**62 < drawn.max() < 2**63 - 1
