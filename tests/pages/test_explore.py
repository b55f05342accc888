"""The explore page in a real browser: controls move numbers, and no request leaves the machine."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.pages.serving import explore_server

import dp_sips

DONE = "document.getElementById('results').getAttribute('aria-busy') === 'false'"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with explore_server() as server:
        yield server.address


@pytest.fixture
def page(browser: Any, address: str) -> Any:
    page = browser.open(address)
    page.wait(DONE)
    change(page, "#mechanism", "sips")
    yield page
    assert page.problems() == []
    hosts = {urlsplit(asked).netloc for asked in page.asked() if asked != "data:,"}
    assert hosts == {urlsplit(address).netloc}


def change(page: Any, selector: str, value: str) -> None:
    before = len(page.asked())
    page.set_value(selector, value)
    settle(page, before)


def settle(page: Any, before: int) -> None:
    """Wait until the page has asked, and has all answers."""
    while len(page.asked()) <= before:
        page.run("new Promise((done) => setTimeout(done, 20))")
    page.wait(DONE)


def needed(page: Any) -> tuple[int, int]:
    half, most = (int(page.text(f"#{name}").replace(",", "")) for name in ("half", "most"))
    return half, most


def expected(items: int = 10, **changes: Any) -> tuple[int, int]:
    plan = dp_sips.plan("sips", **{"epsilon": 1.0, "delta": 1e-6, "max_items": 100} | changes)
    return plan.users_needed(0.5, items), plan.users_needed(0.95, items)


def test_every_control_moves_the_numbers(page: Any) -> None:
    assert needed(page) == expected()
    change(page, "#epsilon", "2")
    assert needed(page) == expected(epsilon=2)
    change(page, "#delta", "1e-9")
    assert needed(page) == expected(epsilon=2, delta=1e-9)
    change(page, "#max_items", "50")
    assert needed(page) == expected(epsilon=2, delta=1e-9, max_items=50)
    change(page, "#items_per_user", "20")
    assert needed(page) == expected(20, epsilon=2, delta=1e-9, max_items=50)
    change(page, "#mechanism", "gw")
    plan = dp_sips.plan("gw", epsilon=2, delta=1e-9, max_items=50)
    assert needed(page) == (plan.users_needed(0.5, 20), plan.users_needed(0.95, 20))
    assert "--mechanism gw --epsilon 2.0 --delta 1e-09 --max-items 50" in page.text("#command")
    assert 'mechanism="gw", epsilon=2.0' in page.text("#python")


def test_what_is_unwise_is_shown_while_it_is(page: Any) -> None:
    hidden = "document.getElementById('unwise').hidden"
    assert page.run(hidden)
    change(page, "#delta", "0.01")
    assert "delta=0.01 lets the promise fail" in page.text("#unwise")
    assert not page.run(hidden)
    change(page, "#delta", "1e-6")
    assert page.run(hidden)


def test_curve_and_thresholds_move_too(page: Any) -> None:
    curve = "document.querySelector('#chance path').getAttribute('d')"
    caption, rounds, drawn = page.text("#needs figcaption"), page.text("#rounds"), page.run(curve)
    assert "96.63" in rounds
    change(page, "#epsilon", "0.5")
    assert page.text("#needs figcaption") != caption
    assert page.run(curve) != drawn
    plan = dp_sips.plan("sips", epsilon=0.5, delta=1e-6, max_items=100)
    for round_ in plan.rounds:
        assert f"{round_.threshold:.4g}" in page.text("#rounds")


def test_the_keyboard_is_enough(page: Any) -> None:
    """Tab reaches each control in order, and an arrow key moves a slider and its number."""
    page.run("document.activeElement.blur()")
    page.press("Tab")
    assert page.run("document.activeElement.id") == "epsilon-range"
    outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    before, asked = needed(page), len(page.asked())
    page.press("ArrowRight")
    settle(page, asked)
    assert float(page.run("document.getElementById('epsilon').value")) > 1
    assert page.run("document.activeElement.getAttribute('aria-valuetext')") == "1.1"
    assert needed(page)[0] < before[0]
    order = []
    for _ in range(8):
        page.press("Tab")
        order.append(page.run("document.activeElement.id"))
    assert order == [
        "epsilon", "delta-range", "delta", "max_items-range", "max_items",
        "items_per_user-range", "items_per_user", "mechanism",
    ]  # fmt: skip


def test_a_screen_reader_hears_names_and_results(page: Any) -> None:
    reachable = page.accessible()
    names = [name for role, name in reachable if role in {"slider", "spinbutton", "combobox"}]
    assert len(names) == 9
    assert all(names)
    live = page.run("document.querySelector('[aria-live=polite]').innerText")
    assert "97" in live
    assert "users for a 50" in live


def test_errors_are_plain_words_and_go_away(page: Any) -> None:
    change(page, "#items_per_user", "300")
    assert "only 100 of a user's items count" in page.text("#error")
    assert page.run("document.getElementById('needed').clientHeight") == 0
    change(page, "#items_per_user", "")
    assert "items_per_user must be a number" in page.text("#error")
    change(page, "#items_per_user", "5")
    assert page.run("document.getElementById('error').clientHeight") == 0
    assert needed(page) == expected(5)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_any_screen(page: Any, width: int, scheme: str) -> None:
    page.view(width=width, scheme=scheme)
    assert page.run("document.documentElement.scrollWidth") == width
    small = (
        "[...document.querySelectorAll('svg text')].filter((t) => t.getBoundingClientRect().height)"
        ".some((t) => t.getBoundingClientRect().height < 11)"
    )
    assert page.run(small) is False
    beside = (
        "document.getElementById('results').getBoundingClientRect().left"
        " > document.getElementById('controls').getBoundingClientRect().right"
    )
    assert page.run(beside) is (width == 1400)
