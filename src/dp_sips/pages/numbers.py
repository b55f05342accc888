"""Numbers as people read them."""

import math
from typing import Any, Final

_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS: Final = 4
_SMALL: Final = 1e-3
_LARGE: Final = 1e6


def number(value: float) -> str:
    """Return four digits at most, with 10⁻⁶ for what is tiny and commas in what is large."""
    if value == 0 or not math.isfinite(value):
        return "∞" if value > 0 else "0"
    if isinstance(value, int):
        return f"{value:,}"
    if not _SMALL <= abs(value) < _LARGE:
        return _power(value)
    rounded = value if value == round(value) else float(f"{value:.{_DIGITS}g}")
    return f"{rounded:,.0f}" if rounded == round(rounded) else f"{rounded:,}"


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.{_DIGITS - 1}e}".split("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    digits = mantissa.rstrip("0").rstrip(".")
    return power if digits == "1" else f"{digits}·{power}"


def cell(value: Any) -> str:
    """Return a public number or name of a plan, for a cell of a table."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return number(value)


def items(count: int, noun: str = "item") -> str:
    """Return "1 item", "2,000 items"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
