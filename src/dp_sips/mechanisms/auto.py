"""What `mechanism="auto"` means: what releases most, as far as public numbers tell."""

from collections.abc import Iterator
from typing import Final

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Design, EpsilonDelta, Mechanism
from dp_sips.mechanisms.cumulative import Cumulative
from dp_sips.mechanisms.single import Single
from dp_sips.mechanisms.sips import Sips
from dp_sips.mechanisms.sips_rule import SipsRule

# Below this, re-truncation beats evidence on some data sets (experiments/yields.py --max-items).
_FEW_ITEMS: Final = 80


def recommended(asked: Asked, max_items: int | None) -> tuple[Mechanism, Design]:
    """Return the recommended mechanism and its design.

    Cumulative evidence cuts sets once. If max_items is so small that many sets are cut, it is
    better to look again in each round at what is left, as SIPS does. If it is 1, users are taken to
    have one item each. SIPS serves where the budget is too small for the others.
    """
    *first_choices, last = _candidates(asked, max_items)
    for mechanism in first_choices:
        try:
            return mechanism, mechanism.design(asked, max_items or mechanism.default_max_items)
        except UsageError:
            continue
    return last, last.design(asked, max_items or last.default_max_items)


def _candidates(asked: Asked, max_items: int | None) -> Iterator[Mechanism]:
    """Yield the mechanisms to try, best first; the last always works where any does."""
    if isinstance(asked, EpsilonDelta) and max_items == 1:
        yield Single()
    elif max_items is None or max_items >= _FEW_ITEMS:
        yield Cumulative()
    elif isinstance(asked, EpsilonDelta):
        yield SipsRule()
    yield Sips()


CHOICES: Final = (
    (Cumulative.name, f"unless --max-items is below {_FEW_ITEMS}"),
    (SipsRule.name, f"for --max-items from 2 to {_FEW_ITEMS - 1}"),
    (Sips.name, f"for --max-items below {_FEW_ITEMS} with --rho, or a tiny --epsilon"),
    (Single.name, "for --max-items 1"),
)
"""What `auto` chooses, and when."""
