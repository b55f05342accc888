"""The figures that show measured points."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from evaluation import style
from evaluation.points import Point


def epsilon(points: list[Point]) -> Figure:
    """Items against ε, a panel for each data set."""
    return _yield_panels(points, "ε (δ ≈ 5e-5)", "{:g}")


def delta(points: list[Point]) -> Figure:
    """Items against δ."""
    return _yield_panels(points, "δ (ε = 0.62)", "{:.0e}")


def ratio(points: list[Point]) -> Figure:
    """Items against r, relative to the best, a line for each data set."""
    return _relative(points, "r, a round's budget relative to the next one's", (0.1, 0.4))


def max_items(points: list[Point]) -> Figure:
    """Items against Δ0, relative to the best, a line for each data set."""
    return _relative(points, "Δ0, how many items of a user count", (100, 300))


def rounds(points: list[Point]) -> Figure:
    """Items against I."""
    figure, (axes,) = style.new_figure(width=5)
    _line(axes, points, style.LINES["SIPS"], points[0].data)
    axes.set(xlabel="I, rounds of SIPS", ylabel="items released", ylim=(0, None))
    return figure


def users(points: list[Point]) -> Figure:
    """Seconds against users, both growing by factors; and for each user."""
    figure, (whole, each) = style.new_figure(2)
    for name, line in _by(points, lambda p: p.mechanism).items():
        _line(whole, line, style.LINES[name], name)
        per_user = [p.estimate.value / p.x * 1e6 for p in line]
        colour, marker, dashes = style.LINES[name]
        each.plot(
            [p.x for p in line], per_user, color=colour, marker=marker, linestyle=dashes, label=name
        )
    whole.set(yscale="log", xlabel="users", ylabel="seconds, reading included")
    each.set(xlabel="users", ylabel="µs for each user", ylim=(0, None))
    whole.yaxis.set_major_formatter("{x:g}")
    whole.yaxis.set_minor_formatter("")
    for axes in (whole, each):
        _log_ticks(axes, points, "{:,.0f}")
    whole.legend()
    return figure


def cores(points: list[Point]) -> Figure:
    """Times with one core and with two, as bars."""
    return _bars(points, "core")


def workers(points: list[Point]) -> Figure:
    """Times with one worker and with two, as bars."""
    return _bars(points, "worker")


def _yield_panels(points: list[Point], label: str, form: str) -> Figure:
    by_data = _by(points, lambda p: p.data)
    figure, panels = style.new_figure(len(by_data), width=4.2 * max(len(by_data), 1.4))
    for axes, (data, here) in zip(panels, by_data.items(), strict=True):
        for name, line in _by(here, lambda p: p.mechanism).items():
            _line(axes, line, style.LINES[name], name)
        axes.set(title=data, xlabel=label, ylabel="items released", ylim=(0, None))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        _log_ticks(axes, here, form)
    panels[0].legend()
    return figure


def _log_ticks(axes: Any, points: Iterable[Point], form: str) -> None:
    """Let the axis grow by factors, with a tick at each value that was measured."""
    ticks = sorted({point.x for point in points})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [form.format(tick) for tick in ticks], rotation=30, fontsize=8)
    axes.set_xticks([], minor=True)


def _relative(points: list[Point], label: str, shaded: tuple[float, float]) -> Figure:
    figure, (axes,) = style.new_figure(width=7)
    axes.axvspan(*shaded, color="#EEEEEE", zorder=0)
    for (data, line), look in zip(
        _by(points, lambda p: p.data).items(), style.OTHERS, strict=False
    ):
        best = max(p.estimate.value for p in line)
        _line(axes, line, look, data, 100 / best)
    axes.set(xlabel=label, ylabel="items released, % of the best", ylim=(0, 105))
    axes.legend()
    return figure


def _line(
    axes: Any, points: Sequence[Point], look: tuple[str, str, str], label: str, factor: float = 1
) -> None:
    colour, marker, dashes = look
    values = [p.estimate.value * factor for p in points]
    below = [(p.estimate.value - p.estimate.low) * factor for p in points]
    above = [(p.estimate.high - p.estimate.value) * factor for p in points]
    axes.errorbar(
        [p.x for p in points],
        values,
        yerr=[below, above],
        color=colour,
        marker=marker,
        linestyle=dashes,
        label=label,
        capsize=2,
        elinewidth=1,
    )


def _bars(points: list[Point], unit: str) -> Figure:
    figure, (axes,) = style.new_figure(width=7, height=3.2)
    names = list(_by(points, lambda p: p.mechanism))
    counts = sorted({p.x for p in points})
    for i, (count, colour) in enumerate(zip(counts, (style.SKY, style.BLUE), strict=False)):
        here = {p.mechanism: p.estimate for p in points if p.x == count}
        at = [n + (i - (len(counts) - 1) / 2) * 0.38 for n in range(len(names))]
        values = [here[name].value for name in names]
        spread = [
            [here[name].value - here[name].low for name in names],
            [here[name].high - here[name].value for name in names],
        ]
        label = f"{count:.0f} {unit}{'s' if count > 1 else ''}"
        bars = axes.bar(at, values, 0.36, color=colour, label=label, yerr=spread, capsize=3)
        axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=3, fontsize=8)
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")
    axes.set(ylabel=f"seconds, {points[0].data}", ylim=(0, None))
    axes.margins(y=0.15)
    axes.legend()
    return figure


def _by(points: Iterable[Point], key: Callable[[Point], str]) -> dict[str, list[Point]]:
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return groups
