"""The compiled loops over items: active ones, against numpy; their order, against `bounding`."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.memory import active, ordering
from dp_sips.privacy import bounding
from dp_sips.privacy.blocks import HASHED, INTEGER, NULL
from dp_sips.privacy.noise import Key, Purpose

KEY = Key.for_tests(8)
SEED = KEY.word(Purpose.BOUNDING_ITEMS)
NO_COUNTS = np.empty(0, dtype=np.uint32)
EDGES = [sign * 10**n + more for n in range(19) for more in (-1, 0, 1) for sign in (-1, 1)]
integers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([*EDGES, -(2**63), 2**63 - 1])
texts = st.integers(0, 15)
tagged = (
    integers.map(lambda n: (n % 2**64, int(INTEGER)))
    | texts.map(lambda length: (length, length << 56 | 7))
    | st.sampled_from([(0, int(NULL)), (5, int(HASHED)), (9, int(HASHED) | 77)])
)


@given(st.lists(tagged, min_size=1, max_size=30))
def test_the_order_of_items_is_that_of_bounding(items: list[tuple[int, int]]) -> None:
    blocks = np.array(items, dtype=np.uint64)
    found = np.empty(len(blocks), dtype=np.uint64)
    words = bounding.item_words(KEY, blocks)
    ordering.precedence(blocks, SEED, NO_COUNTS, found)
    assert found.tolist() == bounding.precedence(blocks, words, None).tolist()


def test_public_counts_come_first() -> None:
    blocks = np.arange(200, dtype=np.uint64).reshape(100, 2)
    counts = np.random.default_rng(1).integers(0, 2**32, 100, dtype=np.uint32)
    found = np.empty(100, dtype=np.uint64)
    ordering.precedence(blocks, SEED, counts, found)
    expected = bounding.precedence(blocks, bounding.item_words(KEY, blocks), counts)
    assert found.tolist() == expected.tolist()


@given(st.lists(st.booleans(), min_size=1, max_size=70), st.data())
def test_active_items_are_picked(gone: list[bool], data: Any) -> None:
    first = data.draw(st.integers(0, len(gone)))
    stop = data.draw(st.integers(first, len(gone)))
    numbers = np.empty(stop - first + 1, dtype=np.uint32)
    count = active.pick(np.array(gone, dtype=np.uint8), first, stop, numbers)
    assert numbers[:count].tolist() == [n for n in range(first, stop) if not gone[n]]


@pytest.mark.parametrize("left", [0, 1, 5, 40])
def test_what_is_known_comes_from_and_goes_to_its_item(left: int) -> None:
    random = np.random.default_rng(left)
    numbers = np.sort(random.permutation(40)[:left]).astype(np.uint32)
    weights, evidence = random.integers(0, 99, 40).astype(np.uint64), random.normal(size=40)
    known = np.empty(left, dtype=np.uint64), np.empty(left)
    active.gather(numbers, weights, evidence, *known)
    assert known[0].tolist() == weights[numbers].tolist()
    assert known[1].tolist() == evidence[numbers].tolist()

    claims = random.choice([0, 1, 16], left).astype(np.uint8)
    yes = random.integers(0, 2, left).astype(np.uint8)
    before: Any = evidence.copy(), *(np.full(40, 9, dtype=np.uint8) for _ in range(3))
    after = [array.copy() for array in before]
    active.scatter(numbers, known[1] + 1, yes, claims, *after)
    expected = known[1] + 1, yes, claims, claims == 0
    others = np.setdiff1d(np.arange(40), numbers)
    for was, array, values in zip(before, after, expected, strict=True):
        assert array[numbers].tolist() == values.tolist()
        assert array[others].tolist() == was[others].tolist()
