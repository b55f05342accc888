"""The page for the person who signs off on a release: what it is, and what protects people.

Guarantee: the page says nothing beyond the certificate and the released items, which are public.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from dp_sips.mechanisms.base import EpsilonDelta
from dp_sips.output import check_output, write_files
from dp_sips.pages import markup
from dp_sips.pages.curve import Line, figure, log_axis
from dp_sips.pages.facts import Facts
from dp_sips.pages.markup import code, definitions, document, name, paragraph, section
from dp_sips.pages.needs import Needs, needs_by_size
from dp_sips.pages.numbers import items as counted
from dp_sips.pages.numbers import number
from dp_sips.pages.released import NULL, Released
from dp_sips.pages.rounds import prose, rounds_table
from dp_sips.plan import Plan
from dp_sips.privacy.budget import Budget

_LIMITS: Final = (
    "Only the release is covered: how long the run took, its memory, and error messages are for "
    "the person who holds the data.",
    "Releases add up: two releases from the same people at ε = 1 are together a release at ε = 2.",
    "Parameters must be public: ε, δ and the largest number of items were not to be chosen by "
    "looking at the same data.",
    "An item is shown as it is: if many people hold the same text, it can be released, whatever "
    "it says.",
    "One person, one user: somebody with two accounts is protected as two users, and a family of "
    "four by a guarantee that is four times weaker.",
    "Missing items mean little: an item that is not here may be held by nobody, or by too few.",
)
_CITATION: Final = (
    "Marika Swanberg, Damien Desfontaines and Samuel Haney. DP-SIPS: A simpler, more scalable "
    "mechanism for differentially private partition selection. Proceedings on Privacy Enhancing "
    "Technologies (PoPETs), 2023. arXiv:2301.01998, doi:10.48550/arXiv.2301.01998."
)


def write_report(path: Path, page: str, *, overwrite: bool = True) -> None:
    """Write the page: all of it, or nothing."""
    check_output(path, overwrite=overwrite)
    content = page.encode()
    write_files({path: lambda sink: sink.write(content)}, overwrite=overwrite)


def report_page(certificate: Mapping[str, Any], plan: Plan | None, table: Any) -> str:
    """Return the page about a certificate, the plan that ran, and a table or file of items."""
    facts = Facts(certificate)
    columns = [*facts.columns, *([facts.count["column"]] if facts.count else [])]
    return report(facts, plan, None if table is None else Released.of(table, columns))


def report(facts: Facts, plan: Plan | None, released: Released | None) -> str:
    """Return the page about a release; without a plan it has no curve, without items no list."""
    parts = [
        _title(facts, released),
        _what(facts, released),
        _who(facts),
        _guarantee(facts),
        _how(facts, plan),
        _needs(facts, plan),
        _items(facts, released),
        section("What it does not promise", markup.bullets(_LIMITS), anchor="limits"),
        _verify(facts, plan),
        _cite(facts),
        _certificate(facts),
    ]
    return document(_headline(facts, released), ["<main>", *parts, "</main>"], "search.js")


def _headline(facts: Facts, released: Released | None) -> str:
    what = " and ".join(facts.columns)
    return f"Release of {what}" if released is None else f"{counted(_number(facts, released))}: {what}"


def _number(facts: Facts, released: Released) -> int:
    """Return how many items there are; the row of all other users is not one."""
    return released.total - bool(facts.count and facts.count["other"])


def _title(facts: Facts, released: Released | None) -> str:
    names = " and ".join(map(name, facts.columns))
    what = "The released items" if released is None else counted(_number(facts, released))
    warning = (
        ""
        if facts.private
        else '<p class="warning" role="alert"><strong>Not private.</strong> This was made with a '
        "test seed, which makes the noise repeatable. Do not publish it.</p>"
    )
    return (
        f'<header><p class="kicker">Report on a differentially private release</p>'
        f"<h1>{escape(what)} of {names}</h1>"
        f'<p class="lead">{escape(_promise(facts))}</p>{warning}</header>'
    )


def _promise(facts: Facts) -> str:
    asked = facts.asked
    if isinstance(asked, EpsilonDelta):
        numbers = f"ε = {number(asked.epsilon)}, δ = {number(asked.delta)}"
    else:
        numbers = f"ρ = {number(asked.rho)}, δ = {number(asked.delta)}"
    return (
        "Anyone who sees this release can hardly tell whether any one person is in the data: "
        f"{numbers}."
    )


def _what(facts: Facts, released: Released | None) -> str:
    columns = ", ".join(f"{name(key)} ({escape(kind)})" for key, kind in facts.columns.items())
    rows = [("Item columns", columns)]
    if released is not None:
        rows.append(("Released", escape(counted(_number(facts, released)))))
    if facts.count is not None:
        rows.append(("Counts", escape(_counts(facts))))
    nulls = {"error": "there were none", "drop": "left out", "group": "an item of their own"}
    rows.append(("Nulls", escape(nulls.get(facts.nulls, facts.nulls))))
    rows.append(("Made by", escape(facts.software)))
    return section("What was released", definitions(rows), anchor="what")


def _counts(facts: Facts) -> str:
    count = facts.count or {}
    return (
        f"about how many users hold each item, with {count['noise']} noise whose standard "
        f"deviation is {number(count['standard_deviation'])}; each user counts for at most "
        f"{counted(count['max_items'])}"
    )


def _who(facts: Facts) -> str:
    return section(
        "Who is protected",
        paragraph(
            "Every user, with all of their rows. The guarantee compares the data as it is with the "
            "data without any one user: both give nearly the same releases with nearly the same "
            "probability."
        ),
        paragraph(
            f"At most {counted(facts.max_items)} of a user count"
            + (" in the selection" if facts.count else "")
            + ". If a user has more, some are left out at random, which weakens nobody's protection."
        )
        if facts.rounds
        else "",
        anchor="who",
    )


def _guarantee(facts: Facts) -> str:
    epsilon, delta, derived = _epsilon_delta(facts)
    odds = math.exp(min(epsilon, 700.0))
    sure = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    figures = (
        f'<div class="figures"><p><b>ε = {number(epsilon)}</b><span>No conclusion from this release '
        f"is more than e<sup>ε</sup> = {number(odds)} times as likely with a person's data as "
        f"without it.</span></p><p><b>δ = {number(delta)}</b><span>The probability that this "
        "bound fails is at most about δ.</span></p>"
        f"<p><b>{_percent(0.5)} → {_percent(sure)}</b><span>Somebody who thinks it as likely as not "
        f"that a person is in the data can be at most {_percent(sure)} sure after seeing the "
        "release, leaving δ aside.</span></p></div>"
    )
    return section(
        "The guarantee",
        figures,
        definitions(
            [
                ("Asked for", escape(str(facts.asked))),
                ("Spent", escape(facts.spent)),
                *([("In ε and δ", escape(derived))] if derived else []),
            ]
        ),
        anchor="guarantee",
    )


def _percent(chance: float) -> str:
    shown = f"{100 * chance:.3g}"
    return f"{shown if float(shown) < 100 or chance == 1 else '99.9…'} %"


def _epsilon_delta(facts: Facts) -> tuple[float, float, str]:
    """Return ε and δ, and how they follow if others were asked for."""
    asked = facts.asked
    if isinstance(asked, EpsilonDelta):
        return asked.epsilon, asked.delta, ""
    delta = 2 * asked.delta
    epsilon = Budget.from_rho(asked.rho, asked.delta).epsilon(delta, "zcdp")
    how = f"({number(epsilon)}, {number(delta)})-differentially private, which follows from ρ and δ"
    return epsilon, delta, how


def _how(facts: Facts, plan: Plan | None) -> str:
    parts = []
    if facts.look is not None:
        parts.append(
            paragraph(
                f"A private look at the data, which spent {number(facts.look['epsilon'])} of ε, "
                f"chose the mechanism: {facts.mechanism}."
            )
        )
    elif facts.rounds:
        parts.append(paragraph(f"The mechanism is {facts.mechanism}."))
    if plan is not None:
        parts += [paragraph(text) for text in prose(plan.mechanism.words(plan.rounds))]
    elif not facts.rounds:
        parts.append(paragraph("Nothing was selected: the items were given, and are public."))
    if facts.rounds:
        parts.append(
            paragraph("All of these numbers were fixed before any data was read.", "note")
        )
    return section("How items were chosen", *parts, rounds_table(facts.rounds), anchor="how")


def _needs(facts: Facts, plan: Plan | None) -> str:
    if plan is None or not plan.rounds:
        return ""
    sizes = needs_by_size(plan)
    return section(
        "How many users an item needed",
        paragraph(
            "An item that few people hold is hardly ever released: that is what protects them. "
            "The number depends on how many items these people have, and on nothing in the data."
        ),
        needs_figure(sizes),
        needs_table(sizes),
        anchor="needs",
    )


def needs_figure(sizes: Sequence[Needs], *lines: Line, **options: Any) -> str:
    """Return the curve of users needed by items a user has."""
    half = [(float(need.items), float(need.half)) for need in sizes if need.half]
    most = [(float(need.items), float(need.most)) for need in sizes if need.most]
    values = [users for _, users in half + most] or [1.0]
    return figure(
        log_axis("items that each of these users has", 1, max(need.items for need in sizes)),
        log_axis("users who hold an item", 10 ** math.floor(math.log10(min(values))), max(values)),
        [Line("50 %", half), Line("95 %", most, "dashed"), *lines],
        _needs_caption(sizes),
        **options,
    )


def _needs_caption(sizes: Sequence[Needs]) -> str:
    first, last = sizes[0], sizes[-1]
    text = (
        f"Users that an item needs for a 50 % and a 95 % chance of release: {_users(first.half)} and "
        f"{_users(first.most)} if each has 1 item"
    )
    if last is first:
        return f"{text}."
    return f"{text}, {_users(last.half)} and {_users(last.most)} with {last.items:,} items each."


def _users(count: int | None) -> str:
    return "more than 2³⁴" if count is None else f"{count:,}"


def needs_table(sizes: Iterable[Needs]) -> str:
    """Return the numbers of the curve."""
    return markup.table(
        ("Items a user has", "for 50 %", "for 95 %"),
        ((f"{need.items:,}", _users(need.half), _users(need.most)) for need in sizes),
        "Users that an item needs",
    )


def _items(facts: Facts, released: Released | None) -> str:
    if released is None:
        return ""
    if not released.rows:
        note = paragraph("No item was released: none was held by enough users.")
        return section("The released items", note, anchor="items")
    more = released.total - len(released.rows)
    head = "".join(f'<th scope="col">{name(column)}</th>' for column in released.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in released.rows)
    other = bool(facts.count and facts.count["other"])
    return section(
        "The released items",
        '<p class="search" hidden><label for="search">Search</label>'
        '<input id="search" type="search" autocomplete="off" spellcheck="false">'
        '<span id="found" role="status"></span></p>',
        paragraph(f"The first {len(released.rows):,} are shown; {more:,} more are not.", "note")
        if more
        else "",
        paragraph("The last row counts the users who hold none of the items.", "note")
        if other and not more
        else "",
        '<div class="items" tabindex="0" role="region" aria-label="Released items">'
        f'<table id="items"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>',
        anchor="items-released",
    )


def _cell(text: str | None) -> str:
    if text is None:
        return f"<td><i>{NULL}</i></td>"
    return f"<td><bdi>{escape(markup.visible(text))}</bdi></td>"


def _verify(facts: Facts, plan: Plan | None) -> str:
    recipe = facts.recipe
    if recipe is None:
        return ""
    parts = [
        paragraph(
            "The rounds follow from public parameters, so anyone can compute them again and "
            "compare them with the certificate."
        ),
        code(recipe.command) if recipe.command else "",
        code(f"import dp_sips\n\nprint({recipe.python}.explain())"),
    ]
    if plan is not None:
        parts.append(
            paragraph("✓ This page computed them from these parameters: they agree.", "good")
        )
    return section("How to verify", *parts, anchor="verify")


def _cite(facts: Facts) -> str:
    return section(
        "How to cite",
        paragraph(f"{facts.software}, which implements and extends:"),
        paragraph(_CITATION, "citation"),
        anchor="cite",
    )


def _certificate(facts: Facts) -> str:
    text = json.dumps(facts.certificate, indent=2, ensure_ascii=False)
    return (
        '<section id="certificate"><details><summary>The certificate, in full</summary>'
        f"{code(text)}</details></section>"
    )
