"""The rounds of a plan as a table, and what a mechanism says about them as prose."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dp_sips.pages.markup import table
from dp_sips.pages.numbers import cell

_HEADINGS: Final = {
    "round": "round",
    "threshold": "threshold",
    "median": "even chance at",
    "sigma": "noise σ",
    "scale": "noise scale",
    "seats": "seats",
    "spare": "spare seats",
    "laps": "laps",
    "epsilon": "ε",
    "rho": "ρ",
    "alpha": "α",
    "e": "divergence",
    "delta": "δ",
}
"""What a reader needs of a round; the certificate has the rest."""

_TABLE_LINE: Final = re.compile(r"\s*(round\s{2,}|\d+\s{2,})")


def rounds_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rounds as a table; of a look's branches, one for each."""
    if any("if_chosen" in row for row in rows):
        return "".join(_branch(row) for row in rows)
    return _table(rows, "Rounds") if rows else ""


def _branch(row: Mapping[str, Any]) -> str:
    numbered = [{"round": n, **own} for n, own in enumerate(row["rounds"], start=1)]
    return _table(numbered, f"Rounds, if {row['if_chosen']} is chosen")


def _table(rows: Sequence[Mapping[str, Any]], caption: str) -> str:
    shown = [key for key in _HEADINGS if any(row.get(key) is not None for row in rows)]
    return table(
        [_HEADINGS[key] for key in shown],
        [["" if row.get(key) is None else cell(row[key]) for key in shown] for row in rows],
        caption,
    )


def prose(words: str) -> list[str]:
    """Return a mechanism's words as paragraphs, without the tables that stand in them."""
    lines = ["" if _TABLE_LINE.match(line) else line.strip() for line in words.splitlines()]
    paragraphs = "\n".join(lines).split("\n\n")
    return [" ".join(text.split()) for text in paragraphs if text.strip()]
