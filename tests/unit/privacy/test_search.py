"""The searches end where they promise."""

import math

import pytest

from dp_sips.privacy.search import boundary, minimum


@pytest.mark.parametrize("start", [1e-6, 1.0, math.pi, 1e6])
def test_boundary_from_either_side(start: float) -> None:
    below = boundary(lambda x: x <= math.pi, start, factor=2.0)
    above = boundary(lambda x: x >= math.pi, start, factor=0.5)
    assert below <= math.pi <= above
    assert above - below < 1e-14


def test_minimum() -> None:
    assert minimum(lambda x: (x - 1.25) ** 2, -10, 10, width=1e-6) == pytest.approx(1.25, abs=1e-6)


@pytest.mark.parametrize(("slope", "end"), [(1, -10), (-1, 10)])
def test_minimum_at_an_end(slope: int, end: float) -> None:
    assert minimum(lambda x: slope * x, -10, 10, width=1e-6) == pytest.approx(end, abs=1e-5)
