"""Two one-dimensional searches for calibration: the edge of a condition, the bottom of a curve.

Both return a point that they have evaluated, so the caller's condition holds there in floats and
not only on paper.
"""

import math
from collections.abc import Callable

# A bracket is a factor of two wide: 50 halvings leave a relative width of 2⁻⁵⁰ ≈ 1e-15.
_HALVINGS = 50


def boundary(holds: Callable[[float], bool], start: float, factor: float) -> float:
    """Return a point where `holds` is true, at the edge to where it is false.

    The condition is true on one side of the positive axis; `factor` (2 or 1/2) leads away from it.
    Should rounding blur the edge, the point returned still satisfies the condition.
    """
    good = start
    while not holds(good):
        good /= factor
    bad = good * factor
    while holds(bad):
        good, bad = bad, bad * factor
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def minimum(curve: Callable[[float], float], low: float, high: float, width: float) -> float:
    """Return where a curve with one valley is lowest, to within `width`, by golden section."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = curve(left), curve(right)
    while high - low > width:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = curve(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = curve(right)
    return left if at_left <= at_right else right
