"""HTML by hand: a few elements, all text escaped, nothing from elsewhere."""

import re
from collections.abc import Iterable, Sequence
from html import escape

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may load for the page: nothing. It reports whatever tries to."""

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 66rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { margin-top: 2.6rem; border-bottom: 2px solid #0072b2; padding-bottom: .2rem; }
h3 { margin: 2rem 0 .3rem; }
p.note, figcaption, small { color: #555; }
nav a { margin-right: 1rem; }
table { border-collapse: collapse; font-size: .85rem; margin: .8rem 0; width: 100%;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .45rem; border-bottom: 1px solid #ddd; text-align: left;
  vertical-align: top; }
th { background: #f3f6f9; }
td.number, th.number { text-align: right; } td.number { white-space: nowrap; }
td small { display: block; } td.number small { white-space: nowrap; }
td.claim { width: 30%; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; display: block; }
details { margin: 1.5rem 0; } summary { cursor: pointer; }
.wide { overflow-x: auto; }
.status { font-weight: 600; white-space: nowrap; }
.confirmed { color: #00664b; } .not-confirmed { color: #a63c00; }
.in-part { color: #7a5300; } .not-measured-here { color: #666; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 .8rem; overflow-wrap: break-word; }
  h1 { font-size: 1.5rem; } nav a { display: inline-block; }
  td.claim { min-width: 9rem; } .status { white-space: normal; }
}
@media print { body { max-width: none; } figure, tr { break-inside: avoid; } }
"""


def document(title: str, body: Iterable[str]) -> str:
    """Return a whole page."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def heading(level: int, text: str, anchor: str = "") -> str:
    """Return a heading, with a name to link to where given."""
    name = f' id="{anchor}"' if anchor else ""
    return f"<h{level}{name}>{escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def cell(text: str, below: str = "", kind: str = "") -> str:
    """Return a cell of a table, with small print below."""
    small = f"<small>{escape(below)}</small>" if below else ""
    return f'<td class="{kind}">{escape(text)}{small}</td>'


def number(text: str, below: str = "") -> str:
    """Return a cell that is set flush right."""
    return cell(text, below, "number")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; rows are cells, and the head follows the first row's alignment."""
    listed = [list(row) for row in rows]
    if not listed:
        return paragraph("Nothing was measured.", "note")
    kinds = [' class="number"' if 'class="number"' in c else "" for c in listed[0]]
    names = "".join(f"<th{kind}>{escape(n)}</th>" for n, kind in zip(head, kinds, strict=True))
    lines = [f"<tr>{''.join(row)}</tr>" for row in listed]
    top = f"<tr>{names}</tr>\n" if any(head) else ""
    return f'<div class="wide"><table>{top}' + "\n".join(lines) + "</table></div>"


def folded(summary: str, *inside: str) -> str:
    """Return what opens at a click."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(inside)}</details>"


def figure(svg: str, caption: str) -> str:
    """Return a picture, drawn in the page itself."""
    inner = svg[svg.index("<svg") :]
    labelled = re.sub(r"^<svg", f'<svg role="img" aria-label="{escape(caption)}"', inner, count=1)
    return f"<figure>{labelled}<figcaption>{escape(caption)}</figcaption></figure>"
