"""An audit as an HTML page with one figure, complete in itself."""

from html import escape
from typing import Any, Final

from dp_sips.auditing.rows import EXACT, Row

_STYLE: Final = """\
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1c2430; background: #fff; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #dde3ea; }
th:nth-child(-n+3), td:nth-child(-n+3) { text-align: left; }
tr.broken { background: #fde3e1; }
svg { width: 100%; height: auto; margin: 1rem 0; }
svg text { font: 13px system-ui, sans-serif; fill: #1c2430; }
@media (prefers-color-scheme: dark) {
  body { color: #e6eaf0; background: #14181f; }
  th, td { border-color: #343c48; }
  tr.broken { background: #5a2320; }
  svg text { fill: #e6eaf0; }
}"""

_WIDTH, _LEFT, _STEP, _TOP = 900, 190, 26, 40
_COLOURS: Final = {True: "#2a6fbb", False: "#d98a1f"}
_ROOM: Final = 1.2
"""The figure ends this far beyond the promise."""

_TEMPLATE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>dp-sips audit</title>
<style>
{style}
</style>
</head>
<body>
<h1>dp-sips {version}: audit</h1>
<p><strong>{verdict}</strong></p>
<p>For neighbours that differ by one user, the largest δ that was found, beside the δ that is
promised at the same ε. <em>Exact</em> is the true δ of the neighbours, from every possible release
and its probability. <em>Black box</em> is a lower bound from runs of the engine: what it does not
show may still be there. What a share lacks of 100 % is left on the table.</p>
{figure}
<table>
<thead><tr>{headings}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</body>
</html>
"""

_HEADINGS: Final = (
    "mechanism", "method", "neighbours", "ε", "δ", "Δ0", "at ε", "δ found", "δ promised", "share",
    "trials",
)  # fmt: skip


def page(audit: Any) -> str:
    """Return the page."""
    rows: list[Row] = audit.nearest()
    return _TEMPLATE.format(
        style=_STYLE,
        version=escape(audit.facts()["version"]),
        verdict=escape(audit.verdict),
        figure=_figure(rows),
        headings="".join(f"<th>{name}</th>" for name in _HEADINGS),
        rows="\n".join(map(_cells, rows)),
    )


def _cells(row: Row) -> str:
    cells = (
        row.mechanism, row.method, row.family, f"{row.epsilon:g}", f"{row.delta:.3g}",
        f"{row.max_items:,}", f"{row.at:.3g}", f"{row.found:.3g}", f"{row.promised:.3g}",
        f"{row.tightness:.1%}", f"{row.trials:,}",
    )  # fmt: skip
    kind = ' class="broken"' if row.violated else ""
    return f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _figure(rows: list[Row]) -> str:
    """Draw what was found relative to the promise: a dot for each family, a line for each name."""
    names = list(dict.fromkeys(row.mechanism for row in rows))
    height = _TOP + _STEP * len(names) + 34
    marks = [_scale(height), *(_name(place, name) for place, name in enumerate(names))]
    marks += [_dot(names.index(row.mechanism), row) for row in rows]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="δ found relative to the δ '
        f'promised, by mechanism">{"".join(marks)}</svg>'
    )


def _x(share: float) -> float:
    return _LEFT + min(share, _ROOM) / _ROOM * (_WIDTH - _LEFT - 20)


def _scale(height: int) -> str:
    lines = "".join(
        f'<line x1="{_x(s):.1f}" x2="{_x(s):.1f}" y1="{_TOP - 12}" y2="{height - 28}" '
        f'stroke="{"#c0392b" if s == 1 else "#aab4c0"}" stroke-width="{2 if s == 1 else 0.5}"/>'
        f'<text x="{_x(s):.1f}" y="{height - 10}" text-anchor="middle">{s:.0%}</text>'
        for s in (0, 0.25, 0.5, 0.75, 1)
    )
    keys = "".join(
        f'<circle cx="{_LEFT + 8 + 90 * n}" cy="14" r="5" fill="{_COLOURS[exact]}"/>'
        f'<text x="{_LEFT + 18 + 90 * n}" y="18">{"exact" if exact else "black box"}</text>'
        for n, exact in enumerate((True, False))
    )
    return lines + keys + f'<text x="{_x(1):.1f}" y="18" text-anchor="middle">promise</text>'


def _name(place: int, name: str) -> str:
    return (
        f'<text x="{_LEFT - 12}" y="{_TOP + _STEP * place + 5}" text-anchor="end">'
        f"{escape(name)}</text>"
    )


def _dot(place: int, row: Row) -> str:
    exact = row.method == EXACT
    title = f"{row.mechanism}, {row.family}, {row.method}: {row.tightness:.1%}"
    return (
        f'<circle cx="{_x(row.tightness):.1f}" cy="{_TOP + _STEP * place + (-4 if exact else 4)}" '
        f'r="5" fill="{_COLOURS[exact]}" fill-opacity="0.75">'
        f"<title>{escape(title)}</title></circle>"
    )
