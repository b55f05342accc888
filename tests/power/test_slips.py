"""The list of slips is a test of its own: every one is caught by the check that it names.

`test_checks.py` runs the same checks on the product as it is.
"""

from collections import Counter

import pytest
from tests.power.breaking import Patch, broken, function_at
from tests.power.checks import CHECKS
from tests.power.slips import SLIPS, Slip


@pytest.mark.fresh
@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.what)
def test_is_caught(slip: Slip) -> None:
    sound = function_at(slip.patch.where).__code__
    with broken(slip.patch), pytest.raises(AssertionError):
        CHECKS[slip.caught_by]()
    assert function_at(slip.patch.where).__code__ is sound


def test_every_slip_has_its_own_name() -> None:
    assert len(SLIPS) >= 15
    assert max(Counter(slip.what for slip in SLIPS).values()) == 1


def test_every_check_catches_something() -> None:
    idle = CHECKS.keys() - {slip.caught_by for slip in SLIPS}
    assert not idle, f"no slip shows that these checks can fail: {sorted(idle)}"


def test_a_patch_that_does_not_fit_is_an_error() -> None:
    """A slip whose text has gone from the source is not taken for one that was caught."""
    with (
        pytest.raises(AssertionError, match="mend the list"),
        broken(Patch("privacy.decide:decide", "no such text", "")),
    ):
        pass
