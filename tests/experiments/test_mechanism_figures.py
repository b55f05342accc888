"""The script draws every figure of docs/mechanisms.md, and the same each time."""

import re
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "docs" / "figures").glob("*.svg"))


@pytest.fixture(scope="module")
def script() -> Any:
    return import_module("mechanism_figures")


def test_what_is_drawn_is_what_the_page_shows(script: Any) -> None:
    page = (ROOT / "docs" / "mechanisms.md").read_text("utf-8")
    assert sorted(script.FIGURES) == NAMES
    assert sorted(re.findall(r"\(figures/([a-z-]+)\.svg\)", page)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_figures_can_be_drawn_again(script: Any, name: str, tmp_path: Path) -> None:
    script.FIGURES[name](tmp_path / "drawn.svg")
    drawn = ET.parse(tmp_path / "drawn.svg").getroot()  # noqa: S314 (our own)
    assert drawn.tag.endswith("svg")
    assert len(list(drawn.iter())) > 100


def test_the_same_figure_twice_is_the_same_file(script: Any, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        script.draw_sips(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_evidence_ends_where_the_plan_says(script: Any) -> None:
    rounds = script.rounds_of(script.Cumulative(), 100)
    course, released, dropped = script.follow_evidence(script.crowd(300), rounds)
    assert max(released) >= 0
    assert max(dropped) >= 0
    for item in range(course.shape[1]):
        assert released[item] < 0 or dropped[item] < 0
        if released[item] >= 0:
            assert course[released[item], item] >= rounds[released[item]].threshold
        if dropped[item] >= 0:
            assert course[dropped[item], item] < rounds[dropped[item]].edges[0]
