"""Numbers as people read them."""

import pytest

from dp_sips.pages.numbers import cell, items, number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (0.5, "0.5"),
        (1e-6, "10⁻⁶"),
        (2.5e-7, "2.5·10⁻⁷"),
        (27.183, "27.18"),
        (1234.567, "1,235"),
        (1234567, "1,234,567"),
        (0, "0"),
        (float("inf"), "∞"),
        (1e12, "10¹²"),
    ],
)
def test_number(value: float, shown: str) -> None:
    assert number(value) == shown


def test_cells_and_counts() -> None:
    assert [cell(value) for value in (True, "linear", 3)] == ["True", "linear", "3"]
    assert [items(n) for n in (0, 1, 2000)] == ["0 items", "1 item", "2,000 items"]
