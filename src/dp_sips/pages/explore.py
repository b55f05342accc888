"""What the explore page asks: plans of public parameters, as parts of a page. No data involved."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, Final

from dp_sips.errors import UsageError
from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.auto import Auto
from dp_sips.pages.markup import document, paragraph, resource
from dp_sips.pages.needs import Needs, check_size, needs_by_size
from dp_sips.pages.needs_figure import chance_figure, needs_figure, needs_table, users_words
from dp_sips.pages.numbers import items as counted
from dp_sips.pages.recipe import Recipe
from dp_sips.pages.rounds import prose, rounds_table
from dp_sips.plan import Plan
from dp_sips.unwise import unwise_budget

_KEPT: Final = 256
_MOST_ITEMS: Final = 1_000_000


@dataclass(frozen=True)
class Settings:
    """Where the controls stand."""

    epsilon: float
    delta: float
    max_items: int
    mechanism: str
    items_per_user: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Settings":
        """Read the settings, or say in plain words what is wrong with them."""
        return cls(
            _number("epsilon", given),
            _number("delta", given),
            _whole("max_items", given),
            given.get("mechanism", "auto"),
            _whole("items_per_user", given),
        )

    @property
    def recipe(self) -> Recipe:
        """The plan's parameters."""
        budget = {"epsilon": self.epsilon, "delta": self.delta}
        return Recipe(self.mechanism, budget, self.max_items)


def _number(name: str, given: Mapping[str, str]) -> float:
    try:
        return float(given.get(name, ""))
    except ValueError:
        raise UsageError(f"{name} must be a number, got {given.get(name, '')!r}") from None


def _whole(name: str, given: Mapping[str, str]) -> int:
    number = _number(name, given)
    if not (1 <= number <= _MOST_ITEMS and number == int(number)):
        raise UsageError(
            f"{name} must be a whole number from 1 to {_MOST_ITEMS:,}, got {given[name]}"
        )
    return int(number)


def explore_page() -> str:
    """Return the page, without any numbers yet."""
    names = {"auto": Auto.good_for} | {name: kind.good_for for name, kind in MECHANISMS.items()}
    options = "".join(
        f'<option value="{escape(name)}">{escape(name)}: {escape(use)}</option>'
        for name, use in names.items()
    )
    body = resource("explore.html").replace("{mechanisms}", options)
    return document("Explore plans", [body], "explore.js", "; connect-src 'self'")


@lru_cache(_KEPT)
def numbers(settings: Settings) -> str:
    """Return users needed, rounds and calls, as JSON."""
    plan, need = _plan(settings), _need(settings)
    recipe = settings.recipe
    return _json(
        {
            "half": users_words(need.half),
            "most": users_words(need.most),
            "unwise": ". ".join(unwise_budget(plan.asked)),
            "about": _about(plan, settings),
            "words": "".join(paragraph(text) for text in prose(plan.mechanism.words(plan.rounds))),
            "rounds": rounds_table(plan.table()),
            "command": recipe.select_command,
            "python": recipe.select_python,
        }
    )


@lru_cache(_KEPT)
def curves(settings: Settings) -> str:
    """Return both figures and the table that belongs to them, as JSON."""
    need = _need(settings)
    sizes = [
        need if size.items == need.items else size
        for size in needs_by_size(_plan(settings), need.items)
    ]
    return _json(
        {
            "chance": chance_figure(need),
            "needs": needs_figure(sizes, need),
            "table": needs_table(sizes),
        }
    )


def _about(plan: Plan, settings: Settings) -> str:
    """Say what the numbers stand for."""
    who = f"Each of these users has {counted(settings.items_per_user)}."
    if plan.look is not None:
        return (
            f"{who} A private look at the data will choose one of two mechanisms; these are the "
            "numbers of the one that needs more users."
        )
    if plan.mechanism.name != settings.mechanism:
        return f"{who} With these settings, {settings.mechanism} is {plan.mechanism.name}."
    return who


@lru_cache(_KEPT)
def _plan(settings: Settings) -> Plan:
    return settings.recipe.plan()


@lru_cache(_KEPT)
def _need(settings: Settings) -> Needs:
    plan = _plan(settings)
    return Needs(plan, check_size(plan, settings.items_per_user))


def _json(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False)
