"""Evidence, compiled, against NumPy's floats, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.mechanisms.adding import add_claim, add_round, first_reached

STEPS = np.array([1, 3, 5, 7], dtype=np.uint8)
numbers = st.floats(-1e9, 1e9) | st.floats(-10, 10)
rows = st.lists(st.tuples(numbers, st.integers(0, 2**62) | st.integers(0, 9), numbers))


@given(rows, numbers, st.lists(numbers, min_size=4, max_size=4).map(sorted), st.data())
def test_sums_and_claims(
    some: list[tuple[float, int, float]], factor: float, edges: list[float], data: st.DataObject
) -> None:
    noise = np.array([row[0] for row in some])
    weights = np.array([row[1] for row in some], dtype=np.uint64)
    evidence = np.array([row[2] for row in some])
    expected = (noise + weights.astype(np.float64)) * factor + evidence
    if some:  # an edge is reached by what is on it
        edges[2] = float(expected[data.draw(st.integers(0, len(some) - 1))])
    total, claims = noise.copy(), np.empty(len(some), dtype=np.uint8)
    add_round(weights, evidence, factor, np.array(edges), STEPS, total, claims)
    assert total.tolist() == expected.tolist()
    reached = (expected[:, None] >= np.array(edges)) * STEPS.astype(np.int64)
    assert claims.tolist() == reached.sum(axis=1).tolist()


def test_one_more_claim() -> None:
    """Two windows, each behind zeros, and what is between them stays as it was."""
    random = np.random.default_rng(1)
    chances, claims = random.random((2, 5)), np.array([0, 1, 4, 9, 16])
    row = np.concatenate([np.zeros(16), random.random(30), np.zeros(16), random.random(7)])
    places, more = np.array([[16, 46], [62, 69]]), np.full(len(row), 7.0)
    add_claim(chances, claims, places, row, more)
    expected = np.full(len(row), 7.0)
    for (first, stop), odds in zip(places, chances, strict=True):
        for x in range(first, stop):
            expected[x] = sum(p * row[x - claim] for p, claim in zip(odds, claims, strict=True))
    assert more.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "places", [[[15, 20]], [[16, 41]], [[20, 16]], [[16, 20, 24]], [[16, 20], [20, 24]]]
)
def test_windows_are_in_the_row(places: list[list[int]]) -> None:
    row = np.zeros(40)
    with pytest.raises(ValueError, match=r"window|zeros"):
        add_claim(np.ones((1, 5)), np.array([0, 1, 4, 9, 16]), np.array(places), row, row.copy())


@given(st.lists(st.lists(st.floats(0, 1), max_size=30).map(sorted), min_size=1), st.data())
def test_where_chances_are_first_reached(windows: list[list[float]], data: st.DataObject) -> None:
    some = st.floats(0, 1) | st.sampled_from([0.5, *windows[0]])  # what is reached exactly counts
    chances = np.array(sorted(data.draw(st.lists(some))))
    stops = np.cumsum([len(window) for window in windows])
    places = np.stack((stops - [len(window) for window in windows], stops), axis=1)
    found = np.empty((len(windows), len(chances)), dtype=np.int64)
    first_reached(places, np.concatenate(windows), chances, found)
    expected = [np.searchsorted(window, chances).tolist() for window in windows]
    assert found.tolist() == expected


@pytest.mark.parametrize("places", [[[-1, 2]], [[0, 41]], [[3, 2]], [[0, 2], [2, 4]]])
def test_windows_that_are_not_in_the_row_have_no_chances(places: list[list[int]]) -> None:
    with pytest.raises(ValueError, match=r"in the row|each round"):
        first_reached(np.array(places), np.zeros(40), np.zeros(3), np.empty((1, 3), np.int64))
