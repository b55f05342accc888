"""The tests of the noise, on fewer numbers: they pass what is sound, and reject what is not.

Each alarm has a probability of at most 1e-9 where nothing is wrong; about 150 tests are made here.
"""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

BATCHES = 3
COUNTS = 6000


@pytest.fixture(scope="module")
def noise() -> Any:
    return import_module("noise_tails")


def alarms(tests: list[Any]) -> list[Any]:
    return [test for test in tests if not test.passed]


def bits(batches: int = BATCHES) -> Any:
    script = import_module("noise_tails")
    keys = [script.Key.fresh() for _ in range(batches)]
    return np.concatenate([k.noise_of_round(0)(script.blocks(script.BATCH)) for k in keys])


@pytest.mark.parametrize("name", ["GAUSSIAN", "LAPLACE"])
def test_tails_are_as_they_should_be(noise: Any, name: str) -> None:
    law = getattr(noise, name)
    counted = noise.draw_cells(law, BATCHES)
    assert counted.sum() == BATCHES * noise.BATCH
    assert not alarms(noise.tail_tests(law, counted))


@pytest.mark.parametrize("name", ["GAUSSIAN", "LAPLACE"])
@pytest.mark.parametrize("scale", [0.98, 1.02])
def test_a_scale_that_is_2_per_cent_off_is_an_alarm(noise: Any, name: str, scale: float) -> None:
    law = getattr(noise, name)
    assert alarms(noise.tail_tests(law, noise.cells(law, scale * law.draw(bits()))))


def test_a_tail_that_is_cut_is_an_alarm(noise: Any) -> None:
    """Far tails are a matter of few numbers: beyond 4 deviations, 530 of eight million."""
    values = noise.gaussian(bits(8))
    cut = np.clip(values, -3.99, 3.99)
    assert alarms(noise.tail_tests(noise.GAUSSIAN, noise.cells(noise.GAUSSIAN, cut)))


@pytest.mark.parametrize("what", ["neighbouring items", "two rounds", "two runs", "two workers"])
def test_pairs_are_independent(noise: Any, what: str) -> None:
    assert not alarms(noise.pair_tests(what, noise.PAIRS[what](1)))


@pytest.mark.parametrize("share", [0.015, 0.03, -0.015])
def test_pairs_that_share_a_little_are_an_alarm(noise: Any, share: float) -> None:
    one, other = np.split(noise.gaussian(bits(2)), 2)
    mixed = share * one + np.sqrt(1 - share**2) * other
    assert alarms(noise.pair_tests("mixed", iter([(one, mixed)])))


def test_sizes_that_belong_together_are_an_alarm(noise: Any) -> None:
    """Numbers of random signs and the same sizes are not correlated; their squares are."""
    one, other = np.split(noise.gaussian(bits(2)), 2)
    same_size = np.where(np.arange(len(one)) % 20 == 0, np.abs(one), np.abs(other))
    signed = same_size * np.sign(np.random.default_rng(1).normal(size=len(one)))
    found = {test.what: test for test in noise.pair_tests("sizes", iter([(one, signed)]))}
    assert found["sizes: products"].passed
    assert not found["sizes: squares"].passed


def test_counts(noise: Any) -> None:
    drawn, again = noise.draw_counts(COUNTS), noise.draw_counts(COUNTS)
    assert not alarms(noise.discrete_tests(drawn, again))
    assert alarms(noise.discrete_tests(drawn, drawn))
    assert alarms(noise.discrete_tests(np.round(0.7 * drawn).astype(np.int64), again))
    assert alarms(noise.discrete_tests(drawn + 5, again))
