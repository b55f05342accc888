"""The privacy-critical step: verdicts. Statistical checks use fresh keys; see `ALPHA`."""

import math
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.unit.privacy.samples import bits_of

from dp_sips.privacy.decide import decide
from dp_sips.privacy.noise import Key, gaussian
from dp_sips.privacy.weights import UNIT

pytestmark = pytest.mark.fresh

# The false-alarm rate of each of the few checks in this file.
ALPHA = 1e-8

NEAR_FOUR = [int(stats.norm.sf(4) * 2**128 * (1 + n * 1e-10)) for n in range(-40, 41, 5)]
"""Probabilities, in units of 2⁻¹²⁸, of Gaussians within a few billionths of 4."""


def blocks(count: int) -> Any:
    return np.stack([np.arange(count), np.full(count, 7)], axis=1).astype(np.uint64)


def weights(values: Any) -> Any:
    return (np.asarray(values) * UNIT).astype(np.uint64)


class TestSupport:
    def test_no_luck_releases_an_item_without_weight(self) -> None:
        scrambler = Key.fresh().noise_of_round(0)
        plain = blocks(1_000_000)
        noise = gaussian(scrambler(plain))
        lucky = plain[noise > 4]
        assert len(lucky)
        parameters: dict[str, Any] = {"sigma": 1.0, "threshold": 3.5, "scrambler": scrambler}
        nothing = np.zeros(len(lucky), dtype=np.uint64)
        assert not decide(lucky, nothing, **parameters).any()
        assert decide(lucky, nothing + np.uint64(1), **parameters).all()

    def test_nor_does_a_threshold_below_zero(self) -> None:
        verdicts = decide(
            blocks(4),
            np.array([0, 1, 0, UNIT], dtype=np.uint64),
            sigma=1.0,
            threshold=-100.0,
            scrambler=Key.fresh().noise_of_round(0),
        )
        assert verdicts.tolist() == [False, True, False, True]


class TestVerdicts:
    @given(
        st.integers(0, 2**32),
        st.floats(1e-9, 1e9) | st.floats(0.5, 3),
        st.floats(allow_nan=False) | st.floats(-5, 20),
        st.lists(st.integers(0, 2**63) | st.integers(0, 20 * UNIT) | st.sampled_from([0, 1])),
        st.integers(-3, 3),
    )
    def test_are_those_of_all_gaussians(
        self, seed: int, sigma: float, threshold: float, held: list[int], steps: int
    ) -> None:
        scrambler = Key.for_tests(seed).noise_of_round(0)
        edge = min(max(0.0, (threshold - 4 * sigma) * UNIT), 2.0**63) + steps
        units = np.array([*held, max(0, int(edge))], dtype=np.uint64)
        plain = blocks(len(units))
        found = decide(plain, units, sigma=sigma, threshold=threshold, scrambler=scrambler)
        needed = (threshold - units / UNIT) / sigma
        assert (found == (units > 0) & (gaussian(scrambler(plain)) >= needed)).all()

    @given(
        st.floats(0.01, 10),
        st.floats(40, 90) | st.floats(2.0**30, 2.0**34),
        st.sampled_from([0, 30, 52]),
    )
    def test_at_the_edge_of_what_is_settled_by_integers(
        self, sigma: float, threshold: float, unit_bits: int
    ) -> None:
        edge = int(min((threshold - 4 * sigma) * 2**unit_bits, 2.0**63))
        near = [max(0, edge + more) for more in (-2000, -3, -2, -1, 0, 1)]
        bits = np.concatenate([bits_of(tail, 1) for tail in NEAR_FOUR for _ in near])
        units = np.array(near * len(NEAR_FOUR), dtype=np.uint64)
        found = decide(
            blocks(len(units)),
            units,
            sigma=sigma,
            threshold=threshold,
            scrambler=Mock(return_value=bits),
            unit_bits=unit_bits,
        )
        needed = (threshold - units / (1 << unit_bits)) / sigma
        assert (found == (units > 0) & (gaussian(bits) >= needed)).all()

    @given(st.integers(0, 2**32), st.floats(0.1, 10), st.floats(-5, 20))
    def test_are_weight_plus_noise_against_the_threshold(
        self, seed: int, sigma: float, threshold: float
    ) -> None:
        scrambler = Key.for_tests(seed).noise_of_round(0)
        plain, held = blocks(50), weights(np.linspace(0.5, 15, 50))
        noisy = held / UNIT + sigma * gaussian(scrambler(plain))
        clear = np.abs(noisy - threshold) > 1e-9
        verdicts = decide(plain, held, sigma=sigma, threshold=threshold, scrambler=scrambler)
        assert (verdicts == (noisy >= threshold))[clear].all()

    @given(st.integers(0, 2**32), st.lists(st.integers(0, 30), min_size=1), st.data())
    def test_do_not_depend_on_batches_or_order(
        self, seed: int, units: list[int], data: st.DataObject
    ) -> None:
        parameters: dict[str, Any] = {
            "sigma": 2.0,
            "threshold": 15.0,
            "scrambler": Key.for_tests(seed).noise_of_round(1),
        }
        plain, held = blocks(len(units)), weights(units)
        whole = decide(plain, held, **parameters)
        order = np.array(data.draw(st.permutations(range(len(units)))))
        assert (decide(plain[order], held[order], **parameters) == whole[order]).all()
        cut = data.draw(st.integers(0, len(units)))
        parts = [decide(plain[p], held[p], **parameters) for p in (slice(cut), slice(cut, None))]
        assert (np.concatenate(parts) == whole).all()

    @given(st.integers(0, 2**32), st.integers(1, 2**34), st.integers(0, 2**34))
    def test_more_weight_never_turns_a_yes_into_a_no(self, seed: int, low: int, more: int) -> None:
        scrambler = Key.for_tests(seed).noise_of_round(0)

        def verdict(weight: int) -> bool:
            held = np.array([weight], dtype=np.uint64)
            return bool(decide(blocks(1), held, sigma=2, threshold=8, scrambler=scrambler)[0])

        assert verdict(low) <= verdict(low + more)

    def test_rounds_draw_anew(self) -> None:
        key, plain = Key.fresh(), blocks(1000)
        noise = [gaussian(key.noise_of_round(index)(plain)) for index in (0, 0, 1)]
        assert (noise[0] == noise[1]).all()
        assert (noise[0] != noise[2]).all()


class TestFrequency:
    """One item under 8,000 independent keys.

    At (T − w)/σ = 1 the chance is 0.159, with σ × 0.8 it is 0.106 and with σ × 1.25 it is 0.212:
    more than eleven standard errors away, where 5.7 are enough to be caught. The power is above
    1 − 1e-6.
    """

    KEYS = 8000

    def released(self, sigma: float) -> int:
        parameters: dict[str, Any] = {"sigma": sigma, "threshold": 5.0}
        held = weights([3.0])
        return sum(
            bool(decide(blocks(1), held, scrambler=Key.fresh().noise_of_round(0), **parameters)[0])
            for _ in range(self.KEYS)
        )

    def p(self, sigma: float) -> float:
        chance = float(stats.norm.sf((5.0 - 3.0) / 2.0))
        return float(stats.binomtest(self.released(sigma), self.KEYS, chance).pvalue)

    def test_is_the_gaussians(self) -> None:
        assert self.p(2.0) > ALPHA

    def test_a_broken_sigma_is_caught(self) -> None:
        assert self.p(2.0 * 0.8) < ALPHA
        assert self.p(2.0 * 1.25) < ALPHA

    def test_of_two_items_at_once_is_the_product(self) -> None:
        """And one noise for two items, as a broken encoding would give, is caught."""
        chance = float(stats.norm.sf(1.0))
        parameters: dict[str, Any] = {"sigma": 2.0, "threshold": 5.0}
        held = weights([3.0, 3.0])
        one_noise = np.repeat(blocks(1), 2, axis=0)
        both = {"two": 0, "one": 0}
        for _ in range(self.KEYS):
            scrambler = Key.fresh().noise_of_round(0)
            both["two"] += bool(decide(blocks(2), held, scrambler=scrambler, **parameters).all())
            both["one"] += bool(decide(one_noise, held, scrambler=scrambler, **parameters).all())
        assert stats.binomtest(both["two"], self.KEYS, chance**2).pvalue > ALPHA
        assert stats.binomtest(both["one"], self.KEYS, chance**2).pvalue < ALPHA
        assert math.isclose(both["one"] / self.KEYS, chance, rel_tol=0.2)
