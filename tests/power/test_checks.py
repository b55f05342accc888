"""Every check holds for the product as it is."""

from collections.abc import Callable

import pytest
from tests.power.checks import CHECKS


@pytest.mark.fresh
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_product_holds(check: Callable[[], None]) -> None:
    check()
