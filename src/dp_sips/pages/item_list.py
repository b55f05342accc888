"""The released items as a table that can be searched."""

from collections.abc import Iterator
from html import escape
from typing import Final

from dp_sips.pages.facts import Facts
from dp_sips.pages.markup import name, paragraph, section, visible
from dp_sips.pages.released import NULL, Released

_SEARCH: Final = (
    '<p class="search" hidden><label for="search">Search</label>'
    '<input id="search" type="search" autocomplete="off" spellcheck="false">'
    '<span id="found" role="status"></span></p>'
)


def items_section(facts: Facts, released: Released | None) -> str:
    """Return the section with the items; nothing where there is no list."""
    if released is None:
        return ""
    if not released.rows:
        nothing = paragraph("There is none: no item was held by enough users.")
        return section("The released items", nothing, anchor="items")
    notes = (paragraph(note, "note") for note in _notes(facts, released))
    return section("The released items", _SEARCH, *notes, _table(released), anchor="items")


def _notes(facts: Facts, released: Released) -> Iterator[str]:
    more = released.total - len(released.rows)
    if more:
        yield f"The first {len(released.rows):,} are shown; {more:,} more are not."
    elif released.total > facts.number:
        yield "The last row counts the users who hold none of the items."


def _table(released: Released) -> str:
    head = "".join(f'<th scope="col">{name(column)}</th>' for column in released.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in released.rows)
    return (
        '<div class="items" tabindex="0" role="region" aria-label="Released items">'
        f'<table id="item-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _cell(text: str | None) -> str:
    if text is None:
        return f"<td><i>{NULL}</i></td>"
    return f"<td><bdi>{escape(visible(text))}</bdi></td>"
