"""The users that an item needs, by items a user has: as a curve, and as a table."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from dp_sips.pages import markup
from dp_sips.pages.curve import Axis, Line, Mark, figure, linear_axis, log_axis
from dp_sips.pages.needs import HALF, MOST, Needs
from dp_sips.pages.numbers import items as counted

_HALF, _MOST = (f"{100 * chance:g}\N{NO-BREAK SPACE}%" for chance in (HALF, MOST))
_CHANCES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)


def needs_figure(sizes: Sequence[Needs], chosen: Needs | None = None) -> str:
    """Return the curve of users needed by items a user has, with a mark at a chosen number."""
    half = [(float(need.items), float(need.half)) for need in sizes if need.half]
    most = [(float(need.items), float(need.most)) for need in sizes if need.most]
    values = [users for _, users in half + most] or [1.0]
    return figure(
        log_axis("items that each of these users has", 1, max(need.items for need in sizes)),
        log_axis("users who hold an item", 10 ** math.floor(math.log10(min(values))), max(values)),
        [Line(_HALF, half), Line(_MOST, most, "dashed")],
        _caption(sizes),
        [_mark(chosen)] if chosen and chosen.half else [],
    )


def _mark(need: Needs) -> Mark:
    return Mark(f"{counted(need.half or 0, 'user')}", (float(need.items), float(need.half or 0)))


def _caption(sizes: Sequence[Needs]) -> str:
    ends = sizes[:1] if len(sizes) == 1 else (sizes[0], sizes[-1])
    numbers = "; ".join(
        f"{users_words(need.half)} and {users_words(need.most)} if each has {counted(need.items)}"
        for need in ends
    )
    return f"Users that an item needs for a {_HALF} and a {_MOST} chance of release: {numbers}."


def users_words(count: int | None) -> str:
    """Return a number of users in words, or that no number is enough."""
    return "more than 2³⁴" if count is None else f"{count:,}"


def needs_table(sizes: Iterable[Needs]) -> str:
    """Return the numbers of the curve."""
    return markup.table(
        ("Items a user has", f"for {_HALF}", f"for {_MOST}"),
        ((f"{need.items:,}", users_words(need.half), users_words(need.most)) for need in sizes),
        "Users that an item needs",
    )


def chance_figure(need: Needs) -> str:
    """Return the curve of the chance of release by the number of users."""
    points = need.curve()
    marks = [
        Mark(counted(users, "user"), (float(users), need.chance(users)))
        for users in (need.half, need.most)
        if users
    ]
    return figure(
        linear_axis("users who hold the item", points[-1][0]),
        percent_axis(),
        [Line("", points)],
        f"The chance that an item is released, by the number of users who hold it, each with "
        f"{counted(need.items)}: {_HALF} with {users_words(need.half)}, {_MOST} with "
        f"{users_words(need.most)}.",
        marks,
    )


def percent_axis() -> Axis:
    """Return an axis of chances."""
    return Axis("chance of release", 0, 1, _CHANCES, style=lambda tick: f"{tick:.0%}")
