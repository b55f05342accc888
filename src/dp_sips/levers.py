"""What an item needs, and what would make it need less: for when little comes out.

Public: everything here is computed from parameters; no data is touched.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Final, Protocol

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked
from dp_sips.unwise import LARGE_DELTA, LARGE_EPSILON, LARGE_RHO

SIZES: Final = (1, 10, 100)
_CHANCE: Final = 0.95
_STEPS: Final = (
    ("epsilon", 2, LARGE_EPSILON),
    ("rho", 4, LARGE_RHO),
    ("delta", 10, LARGE_DELTA),
)
_USUAL: Final = 10
"""Items of a user, where one number must do."""


class Planned(Protocol):
    """What a plan has to say."""

    @property
    def max_items(self) -> int:
        """How many items of a user count."""

    @property
    def min_users(self) -> int:
        """How many users must hold an item for it to be released at all."""

    def users_needed(self, probability: float, items_per_user: int = 1) -> int:
        """Return how many users must hold an item, for it to be released with this probability."""


Replan = Callable[[Asked, int], Planned]


def levers(
    plan: Planned, asked: Asked, replan: Replan, spell: Callable[[str], str] = str
) -> str:  # fmt: skip
    """Say how many users an item needs, and what other settings would change.

    Args:
        plan: What ran, or will run.
        asked: Its privacy parameters.
        replan: Returns the same plan with other privacy parameters and another min_users.
        spell: How a parameter is called where this is read.
    """
    size = min(_USUAL, plan.max_items)
    now = _needed(plan, size)
    return "\n".join(
        (
            _needs(plan),
            f"What would change that, for users with {_items(size)} each:",
            *(
                f"- {spell(name)} {getattr(larger, name):g} instead of {getattr(asked, name):g}: "
                f"{_needed(replan(larger, plan.min_users), size)} instead of {now} users"
                for name, larger in _larger(asked)
            ),
            *_fewer_users(plan, lambda: replan(asked, 1), size, spell),
            *_more_items(plan, spell),
            "- coarser items, such as cities instead of streets: each merge adds up users",
            f"- {spell('public_items')}: what is public anyway takes nothing from what is not",
        )
    )


def _needs(plan: Planned) -> str:
    sizes = [size for size in SIZES if size <= plan.max_items]
    listed = ", ".join(f"{_needed(plan, size)} who have {_items(size)} each" for size in sizes)
    return f"For a 95 % chance an item needs about this many users: {listed}."


def _larger(asked: Asked) -> list[tuple[str, Asked]]:
    """Return the privacy parameters with one of them larger, and its name; none is unwise."""
    return [
        (name, type(asked)(**asdict(asked) | {name: larger}))
        for name, factor, most in _STEPS
        for larger in (factor * getattr(asked, name, math.inf),)
        if larger < most
    ]


def _more_items(plan: Planned, spell: Callable[[str], str]) -> list[str]:
    if plan.max_items >= _USUAL:
        return []
    most = f"{spell('max_items')} {plan.max_items}"
    return [f"- without {most}, more items of users with long lists count"]


def _fewer_users(
    plan: Planned, relaxed: Callable[[], Planned], size: int, spell: Callable[[str], str]
) -> list[str]:
    if plan.min_users == 1:
        return []
    least = f"{spell('min_users')} {plan.min_users:,}"
    new, now = _needed(relaxed(), size), _needed(plan, size)
    return [f"- without {least}: {new} instead of {now} users"]


def _needed(plan: Planned, size: int) -> str:
    try:
        return f"{plan.users_needed(_CHANCE, size):,}"
    except UsageError:
        return "more than 2³⁴"


def _items(size: int) -> str:
    return f"{size} item{'s' * (size > 1)}"
