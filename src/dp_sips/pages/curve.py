"""Curves in SVG, as wide as the text: every line has its own dashes, marker and name.

A figure is drawn twice, for wide and for narrow screens, and the style shows one of them: text in
a drawing that is scaled down would be too small to read.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final

from dp_sips.pages.numbers import number

Point = tuple[float, float]
_TICKS: Final = 5
_NAME: Final = 17
"""The height of a name."""
_NICE: Final = (1, 2, 5, 10)


@dataclass(frozen=True)
class Line:
    """A line through points, with a name at its end; `kind` is its class in the style."""

    name: str
    points: Sequence[Point]
    kind: str = "solid"


@dataclass(frozen=True)
class Mark:
    """A point of its own, with words."""

    name: str
    point: Point


@dataclass(frozen=True)
class Axis:
    """What is measured, from where to where, on which scale, and which values are named."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    log: bool = False
    style: Callable[[float], str] = number

    def place(self, value: float) -> float:
        """Return where a value lies between the ends, from 0 to 1."""
        low, high, here = self.low, self.high, value
        if self.log:
            low, high, here = math.log(low), math.log(high), math.log(value)
        return (here - low) / (high - low)


def log_axis(title: str, low: float, high: float) -> Axis:
    """Return an axis of powers of ten, and of 2 and 5 times these where there is room."""
    high = max(high, 2 * low)
    for steps in ((1, 2, 5), (1,)):
        ticks = _powers(low, high, steps)
        if len(ticks) <= 2 * _TICKS:
            break
    return Axis(title, low, high, ticks, log=True)


def _powers(low: float, high: float, steps: Sequence[int]) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = (step * 10.0**power for power in range(first, last + 1) for step in steps)
    return [value for value in every if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)]


def linear_axis(title: str, high: float) -> Axis:
    """Return an axis from 0 with a few round values."""
    rough = high / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in _NICE if power * nice >= rough * (1 - 1e-9))
    return Axis(title, 0, high, [step * n for n in range(int(high / step * (1 + 1e-9)) + 1)])


@dataclass(frozen=True)
class Frame:
    """The size of a drawing, and the room around its lines."""

    width: int
    height: int
    left: int
    right: int
    top: int = 34
    bottom: int = 50
    kind: str = "broad"

    def beside(self, lines: Sequence[Line]) -> "Frame":
        """Return the frame without room for names where lines have none."""
        return self if any(line.name for line in lines) else replace(self, right=12)

    def at(self, x: float, y: float) -> Point:
        """Return where a point lies whose places on the axes are given."""
        inner = self.width - self.left - self.right
        depth = self.height - self.top - self.bottom
        return self.left + x * inner, self.top + (1 - y) * depth


_FRAMES: Final = (
    Frame(760, 400, left=64, right=64),
    Frame(360, 320, left=48, right=48, kind="narrow"),
)


def figure(
    x: Axis, y: Axis, lines: Sequence[Line], caption: str, marks: Sequence[Mark] = ()
) -> str:
    """Return a figure with its caption, which says in words what the lines show."""
    drawn = "".join(
        f'<svg class="{frame.kind}" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'aria-label="{escape(caption)}">{_drawing(frame.beside(lines), x, y, lines, marks)}</svg>'
        for frame in _FRAMES
    )
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _drawing(frame: Frame, x: Axis, y: Axis, lines: Sequence[Line], marks: Sequence[Mark]) -> str:
    return "".join(
        [
            _grid(frame, x, y),
            *(_line(frame, x, y, line) for line in lines),
            *_names(frame, x, y, lines),
            *(_mark(frame, x, y, mark) for mark in marks),
        ]
    )


def _grid(frame: Frame, x: Axis, y: Axis) -> str:
    (left, bottom), (right, top) = frame.at(0, 0), frame.at(1, 1)
    rows = [(frame.at(0, y.place(tick))[1], y.style(tick)) for tick in y.ticks]
    columns = [(frame.at(x.place(tick), 0)[0], x.style(tick)) for tick in _spaced(frame, x)]
    return "".join(
        [
            *(_rule(left, here, right, here, "grid") for here, _ in rows),
            *(_text(left - 8, here + 4, name, "end") for here, name in rows),
            *(_rule(here, bottom, here, bottom + 5, "axis") for here, _ in columns),
            *(_text(here, bottom + 20, name, "middle") for here, name in columns),
            _rule(left, bottom, right, bottom, "axis"),
            _text(0, top - 18, y.title, "start", "title"),
            _text(right, bottom + 42, x.title, "end", "title"),
        ]
    )


def _spaced(frame: Frame, x: Axis) -> Sequence[float]:
    """Leave out ticks whose names would touch."""
    room = (frame.width - frame.left - frame.right) // 46
    return [tick for n, tick in enumerate(x.ticks) if n % math.ceil(len(x.ticks) / room) == 0]


def _line(frame: Frame, x: Axis, y: Axis, line: Line) -> str:
    places = [frame.at(x.place(a), y.place(b)) for a, b in line.points]
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
    return f'<path class="line {line.kind}" d="{path}"/>' if places else ""


def _names(frame: Frame, x: Axis, y: Axis, lines: Sequence[Line]) -> Iterator[str]:
    """Yield the names of lines beside their ends, the highest first, and none upon another."""
    ends = [(line.points[-1], line.name) for line in lines if line.points]
    free = -math.inf
    for (end, height), name in sorted(ends, key=lambda entry: -entry[0][1]):
        across, up = frame.at(x.place(end), y.place(height))
        free = max(up + 4, free + _NAME)
        yield _text(across + 8, free, name, "start", "name")


def _mark(frame: Frame, x: Axis, y: Axis, mark: Mark) -> str:
    across, up = frame.at(x.place(mark.point[0]), y.place(mark.point[1]))
    late = across > frame.width * 0.62
    side, shift = ("end", -11) if late else ("start", 11)
    return (
        f'<circle class="mark" cx="{across:.1f}" cy="{up:.1f}" r="5.5"/>'
        + _text(across + shift, up + (-10 if late else 18), mark.name, side, "name")
    )  # fmt: skip


def _rule(left: float, top: float, right: float, bottom: float, kind: str) -> str:
    ends = f'x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def _text(left: float, top: float, words: str, anchor: str, kind: str = "tick") -> str:
    place = f'x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'
