"""How results look in a notebook: a line of words and a small table, in plain HTML.

Public: only what the release itself shows is written here.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def paragraph(text: str) -> str:
    """Return words as a paragraph."""
    return f"<p>{escape(text)}</p>"


def table(names: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """Return rows as a table with a head; numbers have separators."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>"
        + "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in body)
        + "</tbody></table>"
    )


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"
