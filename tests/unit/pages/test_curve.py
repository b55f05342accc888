"""Curves: points where they belong, names that can be read, nothing unescaped."""

import re
from xml.etree import ElementTree as ET

import pytest

from dp_sips.pages.curve import Axis, Line, Mark, figure, linear_axis, log_axis


def drawn(
    *lines: Line, marks: tuple[Mark, ...] = (), caption: str = "A caption."
) -> list[ET.Element]:
    whole = figure(log_axis("x", 1, 100), log_axis("y", 10, 1000), lines, caption, marks)
    return ET.fromstring(whole).findall("svg")  # noqa: S314 (our own)


def places(element: ET.Element) -> list[tuple[float, float]]:
    path = element.findall("path")[0].get("d") or ""
    return [(float(a), float(b)) for a, b in re.findall(r"([\d.]+) ([\d.]+)", path)]


def test_logarithmic_points_are_evenly_spaced() -> None:
    for svg in drawn(Line("a", [(1, 10), (10, 100), (100, 1000)])):
        (x0, y0), (x1, y1), (x2, y2) = places(svg)
        assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
        assert y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
        assert x0 < x2
        assert y0 > y2


def test_there_is_a_drawing_for_narrow_screens() -> None:
    assert [svg.get("class") for svg in drawn(Line("a", [(1, 10)]))] == ["broad", "narrow"]


def test_screen_readers_get_the_caption_and_text_is_escaped() -> None:
    hostile = '"><script>alert(1)</script>'
    for svg in drawn(Line(hostile, [(1, 10)]), caption=hostile):
        assert svg.get("role") == "img"
        assert svg.get("aria-label") == hostile
        assert hostile in [text.text for text in svg.iter("text")]


def test_names_of_lines_do_not_touch() -> None:
    for svg in drawn(Line("a", [(100, 500)]), Line("b", [(100, 501)]), Line("c", [(100, 499)])):
        names = {
            t.text: float(t.get("y") or 0) for t in svg.iter("text") if t.get("class") == "name"
        }
        assert names["b"] + 16 < names["a"] < names["c"] - 16


def test_lines_differ_by_more_than_colour() -> None:
    svg, _ = drawn(Line("a", [(1, 10)]), Line("b", [(1, 10)], "dashed"))
    assert [path.get("class") for path in svg.findall("path")] == ["line solid", "line dashed"]


def test_a_mark_has_words_within_the_drawing() -> None:
    for svg in drawn(Line("", [(1, 10)]), marks=(Mark("early", (1, 10)), Mark("late", (100, 10)))):
        sides = {t.text: t.get("text-anchor") for t in svg.iter("text")}
        assert (sides["early"], sides["late"]) == ("start", "end")


@pytest.mark.parametrize("high", [1, 2, 3.7, 40, 168, 1663, 5e9])
def test_axes_have_a_few_round_values(high: float) -> None:
    for axis in (linear_axis("x", high), log_axis("x", 1, high)):
        assert 2 <= len(axis.ticks) <= 11
        assert all(axis.low <= tick <= axis.high * (1 + 1e-9) for tick in axis.ticks)


def test_places_on_an_axis() -> None:
    assert Axis("x", 0, 4, ()).place(1) == 0.25
    assert Axis("x", 1, 10_000, (), log=True).place(10) == pytest.approx(0.25)
