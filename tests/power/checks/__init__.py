"""Checks of the privacy argument, as plain functions: an assertion fails where it is broken.

tests/power/test_checks.py runs each on the product as it is; tests/power/test_slips.py runs them on
the product with one slip each.
"""

from collections.abc import Callable

from tests.power.checks import engines, formulas, keys, neighbours, outputs, releases, verdicts

CHECKS: dict[str, Callable[[], None]] = {
    name.replace("_", " "): check
    for part in (formulas, verdicts, engines, neighbours, keys, outputs, releases)
    for name, check in part.EVERY.items()
}
