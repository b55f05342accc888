"""Histograms of several threads: each share is added once, whichever thread takes it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from dp_sips.engines.memory.histograms import Histograms
from dp_sips.privacy.arrays import Weights

ITEMS = 70_000  # more than are added up at a time


def histograms(pool: ThreadPoolExecutor, threads: int) -> Histograms:
    each = [np.full(ITEMS, 9, dtype=np.uint64) for _ in range(threads)]  # of the round before
    return Histograms(each, pool)


def add(histogram: Weights, share: int) -> None:
    histogram[share::7] += np.uint64(share + 1)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_are_those_of_one_thread(threads: int) -> None:
    expected = np.zeros(ITEMS, dtype=np.uint64)
    for share in range(7):
        add(expected, share)
    with ThreadPoolExecutor(3) as pool:
        some = histograms(pool, threads)
        for _ in range(2):
            assert some.sum(range(7), add) is some.first
            assert some.first.tolist() == expected.tolist()


@pytest.mark.parametrize("threads", [2, 5])
def test_every_histogram_counts(threads: int) -> None:
    all_have_one = Barrier(threads)

    def add_one(histogram: Weights, share: int) -> None:
        all_have_one.wait()
        histogram += np.uint64(1 << share)

    with ThreadPoolExecutor(threads) as pool:
        found = histograms(pool, threads).sum(range(threads), add_one)
    assert set(found.tolist()) == {(1 << threads) - 1}


def test_sums_stop_before_they_overflow() -> None:
    most, threads = 1 << 62, 8
    all_have_one = Barrier(threads)

    def fill(histogram: Weights, _: int) -> None:
        all_have_one.wait()
        histogram.fill(most)

    with ThreadPoolExecutor(threads) as pool:
        found = histograms(pool, threads).sum(range(threads), fill, most)
    assert set(found.tolist()) == {most}


def test_some_are_freed() -> None:
    with ThreadPoolExecutor(2) as pool:
        some = histograms(pool, 3)
        some.keep(1)
        assert len(some) == 1
        assert some.sum(range(7), add).sum() == sum((n + 1) * 10_000 for n in range(7))
