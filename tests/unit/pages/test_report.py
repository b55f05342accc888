"""The report: whole, safe whatever items say, and without anything that is not public."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dp_sips
from dp_sips.errors import DpSipsError, InputError
from dp_sips.pages.numbers import number
from dp_sips.pages.released import SHOWN
from dp_sips.pages.report import report_page

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>"
OPTIONS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "sips"}


class Reader(HTMLParser):
    """Keeps tags and the text of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]
        assert not [v for n, v in attrs if n in {"src", "href", "action"} and v != "data:,"]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def release(*items: str, **more: Any) -> dp_sips.Selection:
    data = {user: [*items, f"only {user}"] for user in range(300)}
    return dp_sips.select_partitions(data, **OPTIONS | more)


def page_of(selection: dp_sips.Selection) -> str:
    return report_page(selection.certificate, selection.plan, selection.items)


def test_says_what_the_person_who_signs_off_needs() -> None:
    text = read(page_of(release("tea", "jam"))).text
    for words in (
        "2 items of item", "ε = 1", "δ = 10⁻⁶", "50\xa0% → 73.2\xa0%", "every value of the column",
        "At most 100 items of a user count", "An item is released in the first round", "threshold",
        "Users that an item needs", "tea", "jam", "Releases add up", "dp-sips plan sips --epsilon",
        "✓ This page computed them", "arXiv.2301.01998", "dp-sips 0.1.0",
    ):  # fmt: skip
        assert words in text, words


def test_nothing_that_is_not_released_is_on_it() -> None:
    assert "only " not in read(page_of(release("tea"))).text.replace("Only the release", "")


def test_the_same_release_makes_the_same_page_whatever_the_data_was() -> None:
    def made(users: int) -> str:
        data = {user: ["tea"] for user in range(users)}
        selection = dp_sips.select_partitions(data, **OPTIONS)
        now = selection._facts | {"time": "2026-11-16T12:00:00Z"}
        return page_of(dataclasses.replace(selection, _facts=now))

    assert made(300) == made(900)


def test_items_are_text_whatever_they_say() -> None:
    clean, hostile = (read(page_of(release(item))) for item in ("tea", HOSTILE))
    assert hostile.tags == clean.tags
    assert HOSTILE in hostile.text


def test_names_of_columns_are_text_too() -> None:
    rows = [(user, "tea") for user in range(300)]
    table = pa.table({"user": [u for u, _ in rows], HOSTILE: [i for _, i in rows]})
    selection = dp_sips.select_partitions(table, user="user", item=HOSTILE, **OPTIONS)
    assert read(page_of(selection)).tags.count("script") == 1
    assert "img" not in read(page_of(selection)).tags


def test_control_characters_are_visible_and_long_items_are_cut() -> None:
    text = read(page_of(release("a\x00b\x1b[31m", "x" * 5_000))).text
    assert "a␀b␛[31m" in text
    assert "x" * 300 + "… (5,000 characters)" in text
    assert "x" * 301 not in text


def test_a_test_release_is_not_called_private() -> None:
    text = read(page_of(release("tea", seed=1, insecure_test=True))).text
    assert "Not private." in text
    assert "nothing protects the people in it" in text
    assert "can hardly tell" not in text
    assert "does not hold for this release" in text


@pytest.mark.parametrize("mechanism", ["sips", "gw", "matching", "auto"])
def test_numbers_that_a_round_does_not_have_are_not_shown(mechanism: str) -> None:
    selection = release("tea", mechanism=mechanism)
    for plan in (selection.plan, None):
        page = report_page(selection.certificate, plan, selection.items)
        assert "<table>" in page
        assert "None" not in page


def test_files_of_levels_have_their_digests() -> None:
    rows = {"who": list(range(300)), "land": ["a"] * 300, "town": ["x"] * 300}
    made = dp_sips.select_partitions(
        rows, user="who", item=["land", "town"], hierarchy=True, **OPTIONS
    ).written("lands.csv", "0" * 64, "prefixes")
    assert f"{'0' * 64}  lands.csv" in read(report_page(made.certificate, None, None)).text


def test_an_empty_release() -> None:
    selection = dp_sips.select_partitions({1: ["a"]}, **OPTIONS)
    text = read(page_of(selection)).text
    assert "0 items of item" in text
    assert "no item was held by enough users" in text


def test_rho_is_said_in_epsilon_as_well() -> None:
    selection = release("tea", rho=0.1, epsilon=None, delta=1e-5)
    text = read(page_of(selection)).text
    assert "ρ = 0.1, δ = 10⁻⁵" in text
    assert f"ε = {number(selection.certificate['spent']['epsilon'])}" in text


def test_only_the_first_items_are_shown() -> None:
    items = [f"item {n}" for n in range(SHOWN + 17)]
    certificate = release("tea").certificate
    certificate["items"]["number"] = len(items)
    page = report_page(certificate, None, items)
    assert page.count("<tr><td>") == SHOWN
    assert "The first 5,000 are shown; 17 more are not." in page
    assert "5,017 items of" in page


def test_items_of_another_release_are_refused() -> None:
    with pytest.raises(InputError, match="there are 2 rows, and the certificate says 1"):
        report_page(release("tea").certificate, None, ["tea", "jam"])


def test_counts() -> None:
    data = {user: ["tea"] for user in range(300)}
    counts = dp_sips.count_users(data, epsilon=4, delta=1e-6, mechanism="sips", other=True)
    page = report_page(counts.certificate, counts.plan, counts.table)
    text = read(page).text
    assert "1 item of item" in text
    assert "discrete Gaussian noise whose standard deviation is" in text
    assert "The last row counts the users who hold none" in text
    assert "<i>null</i>" in page


def test_counts_of_given_keys_have_no_rounds() -> None:
    data = {user: ["tea"] for user in range(300)}
    counts = dp_sips.count_users(data, epsilon=4, delta=1e-6, keys=["tea", "jam"])
    for plan in (counts.plan, None):
        text = read(report_page(counts.certificate, plan, counts.table)).text
        assert "The items are given" in text
        assert "that release spent a budget of its own, which this one does not include" in text
        assert "How many users an item needed" not in text


ROWS = pa.table({"user": [u for u in range(300) for _ in "ab"], "item": ["tea", None] * 300})


@pytest.mark.parametrize(
    "make", [lambda t: t, pa.Table.to_pandas, pl.from_arrow, lambda t: pl.DataFrame(t).lazy()]
)
def test_any_kind_of_table(make: Any, tmp_path: Path) -> None:
    selection = dp_sips.select_partitions(
        make(ROWS), user="user", item="item", nulls="group", **OPTIONS
    )
    selection.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<td><bdi>tea</bdi></td>" in page
    assert "<td><i>null</i></td>" in page
    assert "an item of their own" in page


def test_pandas_objects_and_several_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"u": range(300), "a": ["tea", 7, b"\xff"] * 100, "b": [True] * 300})
    selection = dp_sips.select_partitions(frame, user="u", item=["a", "b"], **OPTIONS)
    selection.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    for value in ("tea", "7", "ff"):
        assert f"<tr><td><bdi>{value}</bdi></td><td><bdi>True</bdi></td></tr>" in page


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    release("tea").report(path)
    assert path.read_text("utf-8").endswith("</html>\n")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(DpSipsError, match="no folder"):
        release("tea").report(tmp_path / "nowhere" / "report.html")


def test_counts_have_it_as_well(tmp_path: Path) -> None:
    data = {user: ["tea"] for user in range(300)}
    dp_sips.count_users(data, epsilon=4, delta=1e-6, keys=["tea"]).report(tmp_path / "c.html")
    assert "<td><bdi>tea</bdi></td><td>" in (tmp_path / "c.html").read_text("utf-8")


def test_the_selection_of_counts_shows_its_items(tmp_path: Path) -> None:
    data = {user: ["tea"] for user in range(300)}
    counts = dp_sips.count_users(data, epsilon=4, delta=1e-6, keys=["tea"], other=True)
    counts.selection.report(tmp_path / "items.html")
    page = (tmp_path / "items.html").read_text("utf-8")
    assert "<tr><td><bdi>tea</bdi></td></tr></tbody>" in page
    assert "The last row" not in page


def test_the_policy_names_the_digests_of_style_and_script() -> None:
    import base64
    import hashlib

    page = page_of(release("tea"))
    policy = re.search(r'Content-Security-Policy" content="(.*?)">', page)
    assert policy
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        assert inside
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{tag}-src &#x27;sha256-{digest}&#x27;" in policy[1]
    assert "default-src &#x27;none&#x27;" in policy[1]


def test_the_rounds_of_auto_with_min_users_agree() -> None:
    options = {**OPTIONS, "mechanism": "auto", "min_users": 20}
    selection = dp_sips.select_partitions({user: ["tea"] for user in range(900)}, **options)
    assert selection.certificate["chosen_by"] is not None
    assert "they agree" in read(page_of(selection)).text


def test_levels_are_told_and_not_computed_again() -> None:
    rows = pa.table({"u": range(900), "country": ["FR"] * 900, "city": ["Lyon"] * 900})
    selection = dp_sips.select_partitions(
        rows, user="u", item=["country", "city"], hierarchy=True, **OPTIONS
    )
    text = read(page_of(selection)).text
    assert "selected level by level" in text
    assert "computed other rounds" not in text


def test_every_level_has_a_look_of_its_own() -> None:
    rows = pa.table({"u": range(900), "country": ["FR"] * 900, "city": ["Lyon"] * 900})
    selection = dp_sips.select_partitions(
        rows, user="u", item=["country", "city"], hierarchy=True, epsilon=1, delta=1e-6
    )
    first, second = (level["mechanism"] for level in selection.certificate["levels"])
    assert f"chose the mechanism: {first}, then {second}." in read(page_of(selection)).text
