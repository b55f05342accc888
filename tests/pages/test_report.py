"""The report in a real browser: hostile items stay text, the search works, it prints."""

from pathlib import Path
from typing import Any

import pytest

import dp_sips

HOSTILE = (
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "</td></table><a href='https://example.org/'>x</a>",
    "&lt;b&gt;",
    "\u202egnp.exe",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    items = [*HOSTILE, *(f"city {n}" for n in range(40))]
    data = dict.fromkeys(range(2000), items)
    selection = dp_sips.select_partitions(data, epsilon=1, delta=1e-6, mechanism="sips")
    assert len(selection.items) == len(items)
    path = tmp_path_factory.mktemp("report") / "report.html"
    selection.report(path)
    return path.as_uri()


@pytest.fixture
def page(browser: Any, report: str) -> Any:
    page = browser.open(report)
    yield page
    assert page.problems() == []
    assert [address for address in page.asked() if address != "data:,"] == [report]


def shown(page: Any) -> list[str]:
    rows = "[...document.querySelectorAll('#item-table tbody tr')]"
    texts: list[str] = page.run(f"{rows}.filter((r) => !r.hidden).map((r) => r.textContent)")
    return texts


def test_hostile_items_are_text(page: Any) -> None:
    assert set(HOSTILE) <= set(shown(page))
    assert page.run("document.title") == "45 items of item"
    assert page.run("document.querySelectorAll('img, a, iframe, main script').length") == 0


def test_what_an_item_smuggles_in_would_not_run(browser: Any, tmp_path: Path) -> None:
    """The second wall: without any escaping, the policy of the page stops scripts."""
    data = {user: [HOSTILE[0], HOSTILE[1]] for user in range(2000)}
    selection = dp_sips.select_partitions(data, epsilon=1, delta=1e-6, mechanism="sips")
    path = tmp_path / "report.html"
    selection.report(path)
    import html

    head, body = path.read_text("utf-8").split("<body>")
    path.write_text(head + "<body>" + html.unescape(body), "utf-8")
    broken = browser.open(path.as_uri())
    assert broken.run("document.querySelectorAll('main script, main img').length") > 0
    assert broken.run("document.title") != "owned"
    assert any("Content Security Policy" in problem for problem in broken.problems())


def test_the_search_finds_items(page: Any) -> None:
    assert len(shown(page)) == 45
    page.set_value("#search", "CITY 3")
    assert shown(page) == ["city 3", *(f"city 3{n}" for n in range(10))]
    assert page.text("#found") == "11 of 45"
    page.set_value("#search", "nowhere")
    assert shown(page) == []
    page.set_value("#search", "")
    assert len(shown(page)) == 45
    assert page.text("#found") == ""


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_any_screen(page: Any, width: int, scheme: str) -> None:
    page.view(width=width, scheme=scheme)
    assert page.run("document.documentElement.scrollWidth") == width
    seen = "[...document.querySelectorAll('figure svg')].filter((s) => s.clientWidth)"
    text, drawing = (
        page.run("document.querySelector('#needs p').clientWidth"),
        f"{seen}[0].clientWidth",
    )
    assert page.run(f"{seen}.length") == 1
    assert page.run(drawing) == text
    dark = page.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 25, 29)"
    assert dark == (scheme == "dark")


def test_prints_on_white_with_all_items(page: Any) -> None:
    page.view(media="print", scheme="dark")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('.items')).maxHeight") == "none"
    assert page.run("document.querySelector('.search').clientHeight") == 0
    assert page.print().startswith(b"%PDF-")


def test_a_screen_reader_finds_its_way(page: Any) -> None:
    reachable = page.accessible()
    assert ("heading", "45 items of item") in reachable
    assert ("searchbox", "Search") in reachable
    assert ("region", "Released items") in reachable
    assert any(role == "image" and "50\xa0%" in name for role, name in reachable)
