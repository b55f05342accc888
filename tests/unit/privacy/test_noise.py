"""The sampler and its keys.

Every statistical test draws fresh keys and has a false-alarm rate of at most `ALPHA`, by exact
distributions or bounds; fewer than fifty are made in this file, so all together stay below 1e-6.
"""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.unit.privacy.samples import ALPHA, SAMPLES, Floats, bits_of, blocks

from dp_sips.privacy import bounding, inversion
from dp_sips.privacy.noise import (
    BEYOND,
    SAMPLER_ERROR,
    Key,
    Purpose,
    Scrambler,
    candidates,
    gaussian,
    in_steps,
)

pytestmark = pytest.mark.fresh


def draw(count: int = SAMPLES) -> Floats:
    return gaussian(Key.fresh().noise_of_round(0)(blocks(count)))


class TestKey:
    def test_fresh_keys_differ_and_are_not_for_tests(self) -> None:
        keys = [Key.fresh() for _ in range(100)]
        assert len({key._derive("purpose") for key in keys}) == 100
        assert not any(key.is_test for key in keys)

    def test_test_keys_are_repeatable_and_marked(self) -> None:
        assert Key.for_tests(7)._derive("a") == Key.for_tests(7)._derive("a")
        derived = {Key.for_tests(seed)._derive("a") for seed in range(-50, 50)}
        assert len(derived) == 100
        assert Key.for_tests(7).is_test

    def test_purposes_are_independent(self) -> None:
        key = Key.fresh()
        purposes = [f"noise of round {i}" for i in range(100)] + ["", *Purpose]
        derived = [key._derive(purpose) for purpose in purposes]
        assert len(set(derived)) == len(purposes)
        assert {len(one) for one in derived} == {16}
        assert all(key._secret not in one and one not in key._secret for one in derived)
        # Bits of different purposes agree as often as those of coins.
        bits = np.unpackbits(np.frombuffer(b"".join(derived), dtype=np.uint8)).reshape(-1, 128)
        agreeing = int((bits[1:] == bits[:-1]).sum())
        assert stats.binomtest(agreeing, bits[1:].size, 0.5).pvalue > ALPHA

    def test_word_is_the_start_of_what_is_derived(self) -> None:
        key = Key.for_tests(1)
        turns = key._derive("turns of users")
        assert key.word(Purpose.TURNS).to_bytes(8, "little") == turns[:8]

    @pytest.mark.parametrize("show", [repr, str, format, "{!r}".format, "%s".__mod__])
    def test_no_text_shows_the_secret(self, show: Callable[[Key], str]) -> None:
        key = Key.fresh()
        shown = show(key)
        assert shown == "Key(is_test=False)"
        assert key._secret.hex() not in shown

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_cannot_be_pickled(self, protocol: int) -> None:
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(Key.fresh(), protocol)

    def test_cannot_be_copied_and_has_no_dict(self) -> None:
        with pytest.raises(TypeError, match="or copied"):
            copy.deepcopy(Key.fresh())
        assert not hasattr(Key.fresh(), "__dict__")


class TestScrambler:
    @pytest.mark.parametrize(
        ("key", "plain", "cipher"),
        [
            (  # FIPS-197, appendix B
                "2b7e151628aed2a6abf7158809cf4f3c",
                "3243f6a8885a308d313198a2e0370734",
                "3925841d02dc09fbdc118597196a0b32",
            ),
            (  # FIPS-197, appendix C.1
                "000102030405060708090a0b0c0d0e0f",
                "00112233445566778899aabbccddeeff",
                "69c4e0d86a7b0430d8cdb78070b4c55a",
            ),
        ],
    )
    def test_is_aes_128(self, key: str, plain: str, cipher: str) -> None:
        block = np.frombuffer(bytes.fromhex(plain), dtype="<u8").reshape(1, 2)
        assert Scrambler(bytes.fromhex(key))(block).tobytes().hex() == cipher

    def test_is_a_pure_function_of_each_block(self) -> None:
        scrambler = Key.fresh().noise_of_round(0)
        plain = blocks(1000)
        bits = scrambler(plain)
        order = np.random.default_rng(1).permutation(1000)
        assert (scrambler(plain) == bits).all()
        assert (scrambler(plain[order]) == bits[order]).all()
        assert (scrambler(plain[::3]) == bits[::3]).all()
        assert (np.concatenate([scrambler(plain[:7]), scrambler(plain[7:])]) == bits).all()

    def test_leaves_its_input_alone_and_takes_none(self) -> None:
        scrambler = Key.fresh().noise_of_round(0)
        plain = blocks(3)
        scrambler(plain)
        assert (plain == blocks(3)).all()
        assert scrambler(blocks(0)).shape == (0, 2)

    def test_distinct_blocks_give_distinct_bits(self) -> None:
        bits = Key.fresh().noise_of_round(0)(blocks(SAMPLES))
        assert len(np.unique(bits, axis=0)) == SAMPLES


def p_of_mean(sample: Floats) -> float:
    return float(2 * stats.norm.sf(abs(sample.mean()) * math.sqrt(len(sample))))


def p_of_scale(sample: Floats) -> float:
    """Two-sided: the sum of n squares is exactly χ² with n degrees of freedom."""
    squares, count = float(sample @ sample), len(sample)
    return 2 * float(min(stats.chi2.sf(squares, count), stats.chi2.cdf(squares, count)))


def p_beyond(sigmas: float) -> Callable[[Floats], float]:
    def p(sample: Floats) -> float:
        beyond = int((np.abs(sample) > sigmas).sum())
        return float(stats.binomtest(beyond, len(sample), 2 * stats.norm.sf(sigmas)).pvalue)

    return p


def p_of_shape(sample: Floats) -> float:
    """Kolmogorov's distance, with the bound of Dvoretzky, Kiefer, Wolfowitz and Massart."""
    distance = float(stats.ks_1samp(sample, stats.norm.cdf).statistic)
    return 2 * math.exp(-2 * len(sample) * distance**2)


def p_of_sign(sample: Floats) -> float:
    return float(stats.binomtest(int((sample > 0).sum()), len(sample), 0.5).pvalue)


SCALE_CHECKS = {
    "scale": p_of_scale,
    "beyond 1 sigma": p_beyond(1),
    "beyond 2 sigmas": p_beyond(2),
    "beyond 3 sigmas": p_beyond(3),
    "beyond 4 sigmas": p_beyond(4),
    "shape": p_of_shape,
}


class TestDistribution:
    """With 300,000 samples the standard error of the scale is 0.13 %.

    A scale of 0.8 or 1.25 is over a hundred standard errors away, so it is caught for sure by all
    checks but the one of 4 sigmas, which expects 19 samples beyond: at 1.25 it sees 411, at 0.8
    it sees 0.17, which is below what is 1e-8 unlikely; it is asked only for the former.
    """

    @pytest.mark.parametrize("name", SCALE_CHECKS)
    def test_accepts_the_true_scale_and_rejects_others(self, name: str) -> None:
        check, sample = SCALE_CHECKS[name], draw()
        assert check(sample) > ALPHA
        assert check(sample * 1.25) < ALPHA
        if name != "beyond 4 sigmas":
            assert check(sample * 0.8) < ALPHA

    def test_mean(self) -> None:
        sample = draw()
        assert p_of_mean(sample) > ALPHA
        assert p_of_mean(sample + 0.03) < ALPHA
        assert p_of_sign(sample) > ALPHA
        assert p_of_sign(sample + 0.03) < ALPHA

    def test_far_tails(self) -> None:
        # Beyond 4 sigmas: 127 of two million are expected.
        sample = draw(2_000_000)
        for sigmas in (3.5, 4.0, 4.5):
            assert p_beyond(sigmas)(sample) > ALPHA
            assert p_beyond(sigmas)(sample * 0.8) < ALPHA or sigmas == 4.5
            assert p_beyond(sigmas)(sample * 1.25) < ALPHA


class TestIndependence:
    """The correlation of n independent pairs, times √n, is a standard Gaussian but for 1/n."""

    @staticmethod
    def p_of_correlation(one: Any, other: Any) -> float:
        r = float(np.corrcoef(one, other)[0, 1])
        return float(2 * stats.norm.sf(abs(r) * math.sqrt(len(one))))

    def test_between_rounds(self) -> None:
        key, plain = Key.fresh(), blocks(SAMPLES)
        rounds = [gaussian(key.noise_of_round(i)(plain)) for i in range(3)]
        for one, other in ((0, 1), (0, 2), (1, 2)):
            assert self.p_of_correlation(rounds[one], rounds[other]) > ALPHA
            # Sizes may depend where signs do not.
            assert self.p_of_correlation(abs(rounds[one]), abs(rounds[other])) > ALPHA
        leaky = rounds[0] + 0.05 * rounds[1]
        assert self.p_of_correlation(leaky, rounds[1]) < ALPHA

    def test_between_items(self) -> None:
        sample = draw()
        for lag in (1, 2, 256):
            assert self.p_of_correlation(sample[lag:], sample[:-lag]) > ALPHA
        leaky = sample[1:] + 0.05 * sample[:-1]
        assert self.p_of_correlation(leaky[1:], leaky[:-1]) < ALPHA

    def test_of_runs_and_of_bounding(self) -> None:
        plain, key = blocks(SAMPLES), Key.fresh()
        sample = gaussian(key.noise_of_round(0)(plain))
        other_run = gaussian(Key.fresh().noise_of_round(0)(plain))
        assert self.p_of_correlation(sample, other_run) > ALPHA
        users = bounding.user_words(key, plain[:1])
        ranks = bounding.rank(users, bounding.item_words(key, plain)).astype(np.float64)
        assert self.p_of_correlation(sample, ranks) > ALPHA
        assert self.p_of_correlation(abs(sample), ranks) > ALPHA


class TestInversion:
    def test_the_ends(self) -> None:
        smallest, largest = bits_of(0, 1), bits_of((1 << 127) - 1, 1)
        exact = mpmath.findroot(lambda t: mpmath.ncdf(-t) - mpmath.mpf(2) ** -129, 13)
        assert gaussian(smallest)[0] == pytest.approx(float(exact), rel=1e-13)
        assert gaussian(largest)[0] == pytest.approx(0, abs=1e-15)
        assert np.isfinite(gaussian(np.concatenate([smallest, largest]))).all()

    @given(st.integers(0, 2**127 - 1))
    def test_the_last_bit_is_the_sign(self, tail: int) -> None:
        assert gaussian(bits_of(tail, 0))[0] == -gaussian(bits_of(tail, 1))[0]
        assert gaussian(bits_of(tail, 1))[0] >= 0

    @given(st.integers(0, 2**127 - 1))
    def test_one_value(self, tail: int) -> None:
        with mpmath.workdps(50):
            exact = (mpmath.mpf(tail) + 0.5) / mpmath.mpf(2) ** 128
            found = mpmath.ncdf(-mpmath.mpf(float(gaussian(bits_of(tail, 1))[0])))
            assert abs(found / exact - 1) < SAMPLER_ERROR

    @pytest.mark.parametrize(
        "t", [1e-9, 0.01, 0.5, 0.6744897501960817, 1, 2, 3, 4, 4.000001, 5, 6, 7, 8, 9, 10, 10.5]
    )
    def test_probability_beyond_a_point(self, t: float) -> None:
        """Count the patterns with gaussian ≥ t by bisection and compare with the exact share.

        The values fall as the tail grows, but for roundings of their last digit, so the patterns
        are the first `low` ones. The relative error must be within SAMPLER_ERROR, as promised;
        beyond 10.7, where the probability is below 2⁻⁸⁸, the grain of 2⁻¹²⁸ is coarser than that.
        """
        low, high = 0, 1 << 127
        while low < high:
            middle = (low + high) // 2
            if gaussian(bits_of(middle, 1))[0] >= t:
                low = middle + 1
            else:
                high = middle
        with mpmath.workdps(50):
            share = mpmath.mpf(low) / mpmath.mpf(2) ** 128
            exact = mpmath.ncdf(-mpmath.mpf(t))
            assert abs(share / exact - 1) < SAMPLER_ERROR
            # The other side: what is not beyond.
            assert abs((1 - share) / (1 - exact) - 1) < SAMPLER_ERROR

    @given(st.integers(0, 2**127 - 1), st.integers(0, 2**127 - 1))
    def test_falls_as_the_tail_grows(self, one: int, other: int) -> None:
        low, high = sorted((one, other))
        near, far = gaussian(bits_of(high, 1))[0], gaussian(bits_of(low, 1))[0]
        assert near <= far + 1e-12


tails = (
    st.integers(0, 2**127 - 1)
    | st.integers(0, 127).map(lambda n: (1 << n) - 1)
    | st.integers(-(2**80), 2**80).map(lambda n: int(stats.norm.sf(4) * 2**128) + n)
)


class TestCandidates:
    @given(st.lists(st.tuples(tails, st.booleans(), st.integers(0, 9)), min_size=1))
    def test_leave_out_only_what_needs_much_and_has_little(
        self, rows: list[tuple[int, bool, int]]
    ) -> None:
        bits = np.concatenate([bits_of(tail, sign) for tail, sign, _ in rows])
        weights = np.array([weight for *_, weight in rows], dtype=np.uint64)
        found = np.isin(np.arange(len(rows)), candidates(bits, weights, 9.0, 1.0, 1))
        assert not found[weights == 0].any()
        assert found[weights >= 5].all()
        assert found[(weights > 0) & (gaussian(bits) >= BEYOND)].all()

    @given(st.floats(0.01, 1e6), st.floats(1e-3, 1e6), st.integers(0, 40), st.integers(-5, 5))
    def test_the_unlucky_are_kept_just_where_decide_needs_no_more(
        self, threshold: float, sigma: float, unit_bits: int, more: int
    ) -> None:
        middle = round(max(0.0, (threshold - BEYOND * sigma)) * (1 << unit_bits))
        weights = np.array([max(1, middle + more)], dtype=np.uint64)
        needed = (threshold - weights / (1 << unit_bits)) / sigma  # as in `decide`
        unlucky = bits_of(2**127 - 1, sign=False)
        found = candidates(unlucky, weights, threshold, sigma, 1 << unit_bits)
        assert found.tolist() == np.flatnonzero(needed <= BEYOND).tolist()

    def test_are_few_where_all_are_light(self) -> None:
        bits = Key.fresh().noise_of_round(0)(blocks(SAMPLES))
        weights = np.ones(SAMPLES, dtype=np.uint64)
        beyond = np.abs(gaussian(bits)) >= BEYOND
        assert candidates(bits, weights, 9.0, 1.0, 1).tolist() == np.flatnonzero(beyond).tolist()

    def test_of_no_rows(self) -> None:
        assert candidates(blocks(0), np.empty(0, dtype=np.uint64), 9.0, 1.0, 1).tolist() == []


def next_to_an_edge(scale: float, count: int) -> Any:
    """Return bits whose Gaussian, times the scale, is about halfway between two whole numbers."""
    halves = np.random.default_rng(2).integers(0, math.ceil(4 * scale), count) + 0.5
    tails = stats.norm.sf(halves / scale)
    return np.concatenate([bits_of(int(tail * 2.0**128), n % 2) for n, tail in enumerate(tails)])


class TestInSteps:
    @pytest.mark.parametrize("scale", [0.3, 1.0, 5.3e3, 3.5e4, 4e6, 2e8, 1e9, 1e13])
    def test_is_the_rounded_gaussian(self, scale: float) -> None:
        edge = [0, 1, 2**40 - 1, 2**40, 2**40 + 1, 2**41, 2**63 - 1, 2**63, 2**64 - 1]
        words = [[word, last] for word in edge for last in (0, 1, 2**64 - 2, 2**64 - 1)]
        drawn = Key.fresh().noise_of_round(0)(blocks(200_000))
        small = drawn[:64].copy()
        small[:, 0] >>= np.arange(64, dtype=np.uint64)
        bits = np.concatenate(
            [drawn, small, np.array(words, dtype=np.uint64), next_to_an_edge(scale, 300)]
        )
        assert (in_steps(bits, scale) == np.rint(gaussian(bits) * scale)).all()

    def test_most_need_no_inversion(self) -> None:
        assert self.unsure(blocks_of_noise(), 3.5e4) < 1000

    def test_whatever_may_go_either_way_is_inverted(self) -> None:
        bits = next_to_an_edge(3.5e4, 300)
        assert self.unsure(bits, 3.5e4) == len(bits)

    def test_cubics_alone_would_not_do(self) -> None:
        """At a scale of 1e8, a cubic's error shows: what is called unsure is not so for nothing."""
        bits, scale = blocks_of_noise(), 1e8
        found, unsure = np.empty(len(bits)), np.empty(len(bits) + 1, dtype=np.uint32)
        count = inversion.in_steps(bits, scale, found, unsure)
        wrong = np.flatnonzero(found != np.rint(gaussian(bits) * scale))
        assert len(wrong)
        assert set(wrong.tolist()) <= set(unsure[:count].tolist())

    def test_cubics_are_as_near_as_is_said(self) -> None:
        """In the middle of each piece, where they are furthest off."""
        cubics, cuts = inversion.pieces()[:-1], 128
        octaves = 2.0 ** np.arange(39, 63)[:, None]
        middles = (octaves * (1 + (np.arange(cuts) + 0.5) / cuts)).reshape(-1) / 2.0**64
        errors = cubics @ 0.5 ** np.arange(4) + stats.norm.ppf(middles)
        assert 1e-13 < np.abs(errors).max() < 2e-10

    @staticmethod
    def unsure(bits: Any, scale: float) -> int:
        found, unsure = np.empty(len(bits)), np.empty(len(bits) + 1, dtype=np.uint32)
        return inversion.in_steps(bits, scale, found, unsure)


def blocks_of_noise() -> Any:
    return Key.for_tests(3).noise_of_round(0)(blocks(100_000))
