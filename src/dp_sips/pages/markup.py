"""HTML by hand: a few elements, all text escaped, nothing from elsewhere.

The policy of a page names the digests of its own style and script: a browser runs nothing else,
whatever an item may say.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Final

_LONGEST: Final = 300
_CONTROLS: Final = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS[127] = 0x2421


def document(title: str, body: Iterable[str], script: str = "", policy: str = "") -> str:
    """Return a whole page, with the names of a script and of more that it may do."""
    style, code = resource("style.css"), resource(script) if script else ""
    rules = content_policy(style, code) + policy
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(rules)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<link rel="icon" href="data:,"><title>{escape(title)}</title>',
            f"<style>{style}</style></head><body>",
            *body,
            *([f"<script>{code}</script>"] if code else []),
            "</body></html>\n",
        ]
    )


def content_policy(style: str, script: str) -> str:
    """Return what a browser may do with a page: show it, and run its one script."""
    runs = f"'sha256-{_digest(script)}'" if script else "'none'"
    return (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src {runs}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def resource(name: str) -> str:
    """Return a file of this folder."""
    return files("dp_sips.pages").joinpath(name).read_text("utf-8")


def section(title: str, *parts: str, anchor: str) -> str:
    """Return a section under a heading."""
    return f'<section id="{anchor}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def bullets(texts: Iterable[str]) -> str:
    """Return a list; each entry's words before the first colon stand out."""
    entries = (text.partition(": ") for text in texts)
    lines = (
        f"<li><strong>{escape(head)}</strong>{'. ' if rest else ''}{escape(rest)}</li>"
        for head, _, rest in entries
    )
    return f"<ul>{''.join(lines)}</ul>"


def definitions(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and what they are."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f"<dl>{''.join(rows)}</dl>"


def code(text: str) -> str:
    """Return what is typed somewhere, as a block."""
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def name(text: str) -> str:
    """Return a name of code within a sentence."""
    return f"<code><bdi>{escape(visible(text))}</bdi></code>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table whose columns, except the first, are numbers."""
    names = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    lines = (
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in others)
        + "</tr>"
        for first, *others in rows
    )
    title = f"<caption>{escape(caption)}</caption>"
    whole = f"<table>{title}<thead><tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    label = f'role="region" aria-label="{escape(caption)}"'
    return f'<div class="wide" tabindex="0" {label}>{whole}</div>'


def visible(text: str) -> str:
    """Return text of a sane length in which control characters can be seen."""
    shown = text[:_LONGEST].translate(_CONTROLS)
    return shown if len(text) <= _LONGEST else f"{shown}… ({len(text):,} characters)"
