"""Evidence, compiled, against NumPy's floats, to the bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.mechanisms.adding import add_round

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
