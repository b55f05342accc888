"""Every mechanism has a section on docs/mechanisms.md, with a figure and a link to its file."""

import re
from pathlib import Path

import pytest

from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.auto import Auto

DOCS = Path(__file__).parents[2] / "docs"
ALL = {**MECHANISMS, Auto.name: Auto}


def section(name: str) -> str:
    """Return the section whose heading has this name."""
    page = (DOCS / "mechanisms.md").read_text("utf-8")
    found = [
        part
        for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]
        if re.search(rf"(?<![\w-]){name}(?![\w-])", part.splitlines()[0])
    ]
    assert len(found) == 1, f"{name} is in {len(found)} headings"
    return found[0]


@pytest.mark.parametrize("name", ALL)
def test_every_mechanism_has_a_figure_that_says_in_words_what_it_shows(name: str) -> None:
    figures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", section(name))
    assert figures
    for words, file in figures:
        assert len(words.split()) > 6, file
        assert (DOCS / file).is_file()


@pytest.mark.parametrize("name", ALL)
def test_every_mechanism_links_to_its_file(name: str) -> None:
    file = ALL[name].__module__.rsplit(".", maxsplit=1)[-1]
    assert f"(../src/dp_sips/mechanisms/{file}.py)" in section(name)
