"""The page for the person who signs off on a release: what it is, and what protects people.

Guarantee: the page says nothing beyond the certificate and the released items, which are public.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from dp_sips.mechanisms.counting import GivenKeys
from dp_sips.output import check_output, write_files
from dp_sips.pages import markup
from dp_sips.pages.facts import Facts
from dp_sips.pages.item_list import items_section
from dp_sips.pages.markup import code, definitions, document, name, paragraph, section
from dp_sips.pages.needs import needs_by_size
from dp_sips.pages.needs_figure import needs_figure, needs_table
from dp_sips.pages.numbers import items as counted
from dp_sips.pages.numbers import number
from dp_sips.pages.promise import guarantee, lead
from dp_sips.pages.recipe import Recipe
from dp_sips.pages.released import Released
from dp_sips.pages.rounds import prose, rounds_table
from dp_sips.plan import Plan

_LIMITS: Final = (
    "Only the release is covered: The time and memory of the run, and its messages, are not.",
    "Releases add up: Two releases from the same people at ε = 1 are together a release at ε = 2.",
    "Parameters must be public: They must not be tuned on the same data.",
    "An item is shown as it is: If many people hold the same text, it can be released.",
    "One user is one person: Somebody with two accounts is two users; a group is protected less.",
    "A missing item means little: It may be held by nobody, or by too few.",
)
_DIFFERENT: Final = (
    "This version of dp-sips computed other rounds: those in the certificate do not follow from "
    "these parameters, or they come from another version."
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


def report_page(
    certificate: Mapping[str, Any], plan: Plan | None, table: Any, *, items_only: bool = False
) -> str:
    """Return the page about a certificate, the plan that ran, and a table or file of items.

    With `items_only`, the table has no counts, although the certificate may cover them.
    """
    facts = Facts(certificate)
    shown = None if table is None else Released.of(table, facts, items_only=items_only)
    return report(facts, plan, shown)


def report(facts: Facts, plan: Plan | None, released: Released | None) -> str:
    """Return the page about a release; without a plan it has no curve, without items no list."""
    parts = [
        _title(facts),
        _what(facts),
        _who(facts),
        guarantee(facts),
        _how(facts, plan),
        _needs(plan),
        items_section(facts, released),
        section("What it does not promise", markup.bullets(_LIMITS), anchor="limits"),
        _verify(facts),
        _cite(facts),
        _certificate(facts),
    ]
    return document(
        f"{counted(facts.number)} of {' and '.join(facts.columns)}",
        ["<main>", *parts, "</main>"],
        "search.js",
    )


def _title(facts: Facts) -> str:
    names = " and ".join(map(name, facts.columns))
    warning = (
        ""
        if facts.private
        else '<p class="warning" role="alert"><strong>Not private.</strong> This was made with a '
        "test seed, which makes the noise repeatable. Do not publish it.</p>"
    )
    return (
        f'<header><p class="kicker">Report on a differentially private release</p>'
        f"<h1>{counted(facts.number)} of {names}</h1>"
        f'<p class="lead">{escape(lead(facts))}</p>{warning}</header>'
    )


def _what(facts: Facts) -> str:
    columns = ", ".join(f"{name(key)} ({escape(kind)})" for key, kind in facts.columns.items())
    rows = [("Item columns", columns), ("Released", counted(facts.number))]
    if facts.count is not None:
        rows.append(("Counts", escape(_counts(facts))))
    nulls = {"error": "there were none", "drop": "left out", "group": "an item of their own"}
    rows.append(("Nulls", escape(nulls.get(facts.nulls, facts.nulls))))
    rows.append(("Made by", escape(f"{facts.software}, {facts.time}")))
    if facts.file is not None:
        rows.append(("File", name(facts.file["file"])))
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
        f"<p>Every user, that is, every value of the column {name(facts.user)}, with all of its "
        "rows.</p>",
        paragraph(
            "The guarantee compares the data as it is with the "
            "data without any one user: both give nearly the same releases with nearly the same "
            "probability."
        ),
        paragraph(
            f"At most {counted(facts.max_items)} of a user count"
            + (" in the selection" if facts.count else "")
            + ". If a user has more, some are left out at random, which protects them no less."
        )
        if facts.rounds
        else "",
        anchor="who",
    )


def _how(facts: Facts, plan: Plan | None) -> str:
    parts, levels = [], facts.certificate["levels"]
    if facts.look is not None:
        chosen = facts.mechanism
        if levels is not None:
            chosen = ", then ".join(str(level["mechanism"]) for level in levels)
        parts.append(
            paragraph(
                f"A private look at the data, which spent {number(facts.look['epsilon'])} of ε, "
                f"chose the mechanism: {chosen}."
            )
        )
    elif facts.rounds:
        parts.append(paragraph(f"The mechanism is {facts.mechanism}."))
    if plan is not None:
        parts += [paragraph(text) for text in prose(plan.mechanism.words(plan.rounds))]
    elif not facts.rounds:
        parts += [paragraph(text) for text in prose(GivenKeys().words(()))]
    if facts.rounds:
        parts.append(paragraph("All of these numbers were fixed before any data was read.", "note"))
    return section("How items were chosen", *parts, rounds_table(facts.rounds), anchor="how")


def _needs(plan: Plan | None) -> str:
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


def _verify(facts: Facts) -> str:
    parts = (*_verify_rounds(facts), *_verify_file(facts), *_verify_build(facts))
    return section("How to verify", *parts, anchor="verify")


def _verify_rounds(facts: Facts) -> Iterator[str]:
    if facts.certificate["levels"] is not None:
        yield paragraph(
            "The items were selected level by level, each among what the level before released. "
            "The certificate below has the mechanism and the rounds of every level."
        )
    if facts.recipe is None:
        return
    yield paragraph(
        "The rounds follow from public parameters, so anyone can compute them again and compare "
        "them with the certificate."
    )
    yield from map(code, _calls(facts, facts.recipe))
    if facts.recomputed() is None:
        yield paragraph(_DIFFERENT, "warning")
    else:
        yield paragraph("✓ This page computed them from these parameters: they agree.", "good")


def _calls(facts: Facts, recipe: Recipe) -> Iterator[str]:
    """Yield what prints the rounds; after a look, they are those of one of its branches."""
    if facts.look is not None:
        yield (
            f"import dp_sips\n\nplan = {recipe.python}\n"
            "for branch in plan.branches():\n    print(branch.explain())"
        )
        return
    if recipe.command:
        yield recipe.command
    yield f"import dp_sips\n\nplan = {recipe.python}\nprint(plan.explain())"


def _verify_file(facts: Facts) -> Iterator[str]:
    if facts.file is not None:
        yield paragraph("The file of the release has this SHA-256:")
        yield code(f"{facts.file['sha256']}  {facts.file['file']}")
    if facts.prefixes is not None:
        yield paragraph("The file of what the levels before the last released has this one:")
        yield code(f"{facts.prefixes['sha256']}  {facts.prefixes['file']}")


def _verify_build(facts: Facts) -> Iterator[str]:
    if facts.recipe is None:
        return
    budget = [
        word
        for key, value in facts.asked.items()
        if key != "rho"
        for word in (f"--{key}", repr(value))
    ]
    yield paragraph("The audit tests whether an installed dp-sips keeps what it promises:")
    yield code(shlex.join(["dp-sips", "audit", "--mechanism", facts.mechanism, *budget]))


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
