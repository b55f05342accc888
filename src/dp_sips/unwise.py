"""Settings that are allowed and seldom meant: one line of warning each.

Public: every warning depends on parameters and on the types of columns, never on rows.
"""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dp_sips.errors import UnwiseWarning
from dp_sips.mechanisms.base import Asked

LARGE_DELTA: Final = 1e-3
LARGE_EPSILON: Final = 10.0
LARGE_RHO: Final = 10.0

_NOT_THE_CALLERS: Final = (str(Path(__file__).parent), contextlib.__file__)
"""Our own files, and the one whose frame stands between a decorated function and its caller."""


@contextlib.contextmanager
def on_purpose() -> Iterator[None]:
    """Warn of nothing, where unwise settings are what is meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnwiseWarning)
        yield


def unwise_budget(asked: Asked) -> Iterator[str]:
    """Yield what is to be said of a δ or an ε that protects hardly anybody."""
    if asked.delta >= LARGE_DELTA:
        yield (
            f"delta={asked.delta:g} lets the promise fail for one person in {1 / asked.delta:,.0f}:"
            " give one well below 1 / (number of users), such as 1e-6"
        )
    for name, most in (("epsilon", LARGE_EPSILON), ("rho", LARGE_RHO)):
        value = getattr(asked, name, 0.0)
        if value > most:
            yield f"{name}={value:g} hardly protects anybody: values around 1 are common"


def warn_of_budget(asked: Asked) -> None:
    """Warn of a δ or an ε that protects hardly anybody."""
    for message in unwise_budget(asked):
        _warn(message)


def warn_of_lists(max_items: int | None, *, lists: bool, name: str = "max_items") -> None:
    """Warn where people have lists of items, and one of each counts."""
    if lists and max_items == 1:
        _warn(
            f"{name}=1 lets one item of each list count, and the others are ignored: "
            "leave it out, or give more"
        )


def _warn(message: str) -> None:
    warnings.warn(f"unwise settings: {message}", UnwiseWarning, stacklevel=_outside())


def _outside() -> int:
    """Return how many frames above `_warn` the caller's own code is."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 (what stacklevel counts)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_CALLERS):
        level, frame = level + 1, frame.f_back
    return level
