"""The guarantee of a release in words and numbers, for people who did not study it."""

import math
from html import escape
from typing import Final

from dp_sips.pages.facts import Facts
from dp_sips.pages.markup import definitions, paragraph, section
from dp_sips.pages.numbers import number

_SYMBOLS: Final = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
_LARGEST: Final = 700.0
"""e to the power of more is infinite, as floats go."""

_UNTRUE: Final = (
    "This would hold without the test seed. It does not hold for this release: anyone who knows "
    "the seed can undo the noise."
)


def lead(facts: Facts) -> str:
    """Return the promise in one sentence."""
    if not facts.private:
        return "A test release: nothing protects the people in it."
    return (
        "Anyone who sees this release can hardly tell whether any one person is in the data: "
        f"{', '.join(f'{symbol} = {number(value)}' for symbol, value in _symbols(facts))}."
    )


def guarantee(facts: Facts) -> str:
    """Return the section about ε and δ."""
    epsilon, delta = facts.spent if "rho" in facts.asked else facts.asked.values()
    sure = _percent(1 / (1 + math.exp(-epsilon)))
    rows = [
        ("Asked for", escape(_asked(facts))),
        ("Spent", escape(facts.statement)),
    ]
    figures = (
        _figure(
            f"ε = {number(epsilon)}",
            "No conclusion from this release is more than "
            f"e<sup>ε</sup> ≈ {number(math.exp(min(epsilon, _LARGEST)))} times as likely with a "
            "person's data as without it.",
        ),
        _figure(f"δ = {number(delta)}", "The probability that this bound fails is at most δ."),
        _figure(
            f"{_percent(0.5)} → {sure}",
            "Somebody who thinks it as likely as not that a person is in the data can be at most "
            f"{sure} sure after seeing the release, leaving δ aside.",
        ),
    )
    words = "" if facts.private else paragraph(_UNTRUE, "warning")
    shown = f'<div class="figures">{"".join(figures)}</div>'
    return section("The guarantee", words, shown, definitions(rows), anchor="guarantee")


def _figure(value: str, meaning: str) -> str:
    return f"<p><b>{value}</b><span>{meaning}</span></p>"


def _symbols(facts: Facts) -> list[tuple[str, float]]:
    return [(_SYMBOLS[name], value) for name, value in facts.asked.items()]


def _asked(facts: Facts) -> str:
    (symbol, first), (_, delta) = _symbols(facts)
    if symbol == "ε":
        return f"({number(first)}, {number(delta)})-differential privacy"
    return f"{number(delta)}-approximate {number(first)}-zCDP"


def _percent(chance: float) -> str:
    """Return a chance in percent, rounded up."""
    return f"{math.ceil(1000 * chance - 1e-9) / 10:g}\N{NO-BREAK SPACE}%"
