"""`make paper QUICK=1`, smaller still: every table, figure and claim, on a page that opens."""

import csv
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from dp_sips.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
NUMBERS = (
    "datasets", "conversions", "accuracy", "epsilon", "delta", "ratio", "max_items", "rounds",
    "iterated", "users", "cores", "largest",
)  # fmt: skip
FIGURES = (
    "epsilon", "delta", "ratio", "max_items", "users", "cores", "largest", "histograms",
    "parallelism",
)  # fmt: skip


def script(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "experiments" / name, *arguments]
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=600
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("paper")
    cache = tmp_path_factory.mktemp("cache")
    ran = script("paper.py", "--quick", "--users", 1500, "--out", out, "--cache", cache)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return out / "index.html"


def rows(page: Path, name: str) -> list[dict[str, str]]:
    with page.with_name(f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_cluster_exchanges_data_once_and_once_a_round(tmp_path: Path) -> None:
    words = ("--quick", "--users", 1500, "--out", tmp_path, "--cache", tmp_path)
    ran = script("paper.py", *words, "--only", "exchanges")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = rows(tmp_path / "index.html", "exchanges")
    assert {int(r["rounds"]): int(r["exchanges"]) for r in found} == {1: 2, 2: 3, 3: 4, 5: 6}


class TestQuickRun:
    def test_opens_in_a_browser_silent_and_alone(self, page: Path) -> None:
        checked = script("check_page.py", page)
        assert checked.returncode == 0, checked.stderr
        assert f"{len(FIGURES)} figures render, a silent console, no network" in checked.stdout

    def test_has_all_numbers_as_csv(self, page: Path) -> None:
        for name in NUMBERS:
            assert rows(page, name), name
        assert {row["runs"] for row in rows(page, "accuracy")} == {"2"}

    def test_has_all_figures_as_png_and_svg(self, page: Path) -> None:
        made = {path.name for path in (page.parent / "figures").iterdir()}
        assert made == {f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")}

    def test_figures_are_well_formed_where_they_stand(self, page: Path) -> None:
        drawn = re.findall(r"<svg.*?</svg>", page.read_text(), flags=re.DOTALL)
        assert len(drawn) == len(FIGURES)
        for svg in drawn:
            ET.fromstring(svg)  # noqa: S314 (our own)

    def test_says_how_to_get_what_is_missing(self, page: Path) -> None:
        text = page.read_text()
        for name in ("reddit", "twitter", "finance", "imdb", "wikipedia", "amazon"):
            assert re.search(rf"<td class=\"\">{name}</td><td class=\"\">download ", text), name

    def test_says_what_was_not_measured(self, page: Path) -> None:
        text = page.read_text()
        assert "this run has no times against workers" in text
        assert "Not measured in this run." in text

    def test_names_seeds_versions_and_machine(self, page: Path) -> None:
        text = page.read_text()
        for fact in ("1, 2: one run each", "Python 3.", "pyarrow ", " cores, "):
            assert fact in text

    def test_a_failed_experiment_is_on_the_page(self, page: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        for path in page.parent.glob("*.*"):
            (tmp_path / "out" / path.name).write_bytes(path.read_bytes())
        run = json.loads((tmp_path / "out" / "run.json").read_text())
        run["experiments"]["cores"]["trouble"] = "OSError: no <cores> left"
        (tmp_path / "out" / "run.json").write_text(json.dumps(run))
        (tmp_path / "out" / "cores.csv").unlink()
        page_module = import_module("evaluation.page")
        text = page_module.write_page(tmp_path / "out").read_text()
        assert "Not measured in this run: OSError: no &lt;cores&gt; left." in text

    def test_the_same_seeds_give_the_same_numbers(self, page: Path, tmp_path: Path) -> None:
        cache = tmp_path / "cache"
        ran = script(
            "paper.py", "--quick", "--users", 1500, "--out", tmp_path, "--cache", cache,
            "--only", "datasets", "conversions", "rounds",
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert rows(tmp_path / "index.html", "rounds") == rows(page, "rounds")


class TestClaims:
    def test_each_is_on_the_page_with_a_verdict(self, page: Path) -> None:
        claims = import_module("evaluation.claims").CLAIMS
        text = page.read_text()
        assert len(claims) > 20
        assert len(re.findall(r'<td class="status [a-z-]+">', text)) == len(claims)

    def test_hold_for_all_some_or_none(self) -> None:
        verdicts = import_module("evaluation.verdicts")
        count = verdicts.count
        assert count({"a": True}, "x").status == "confirmed"
        assert count({"a": True, "b": False}, "x") == verdicts.Verdict("in part", "1 of 2: x")
        assert count({"a": False}, "x").status == "not confirmed"
        assert count({}, "x").status == "not measured here"

    @pytest.mark.parametrize(
        ("ahead", "swapped"), [((9, 9), []), ((9, 1), ["Weighted Gaussian and SIPS"])]
    )
    def test_swaps_need_a_clear_lead_both_ways(
        self, ahead: tuple[int, int], swapped: list[str]
    ) -> None:
        points, measuring = import_module("evaluation.points"), import_module("measuring")
        values = {"Weighted Gaussian": ahead, "SIPS": (5, 5), "DPSU": (50, 50), "GW": (70, 70)}
        made = [
            points.Point("tea", name, x, measuring.Estimate(y, y - 1, y + 1, 5))
            for name, ys in values.items()
            for x, y in enumerate(ys)
        ]
        assert import_module("evaluation.claims")._swaps(made) == swapped

    @pytest.mark.parametrize(
        ("judge", "curve", "holds"),
        [
            ("_flat_above_100", {50: 5.0, 100: 10.0, 200: 10.4}, True),
            ("_flat_above_100", {50: 5.0, 100: 10.0, 200: 10.6}, False),
            ("_even_split", {0.2: 10.0, 1.0: 9.0}, True),
            ("_even_split", {0.2: 10.0, 1.0: 10.0}, False),
            ("_near_best", {0.1: 10.0, 0.2: 9.6, 0.4: 9.7}, True),
            ("_near_best", {0.1: 10.0, 0.2: 9.6, 0.4: 9.4}, False),
            ("_more_rounds", {1: 5.0, 3: 10.0, 10: 10.5}, True),
            ("_more_rounds", {1: 5.0, 3: 10.0, 10: 9.5}, False),
            ("_no_boost", {1: 10.0, 2: 9.0, 3: 10.05}, True),
            ("_no_boost", {1: 10.0, 2: 10.2, 3: 9.0}, False),
        ],
    )
    def test_curves(self, judge: str, curve: dict[float, float], holds: bool) -> None:  # noqa: FBT001
        found, _ = getattr(import_module("evaluation.claims"), judge)(curve)
        assert found is holds


class TestCommittedPage:
    PAGE = ROOT / "docs" / "paper" / "index.html"

    def test_opens_in_a_browser_silent_and_alone(self) -> None:
        checked = script("check_page.py", self.PAGE)
        assert checked.returncode == 0, checked.stderr

    def test_is_what_its_numbers_give(self, tmp_path: Path) -> None:
        for path in self.PAGE.parent.glob("*.*"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
        ran = script("paper.py", "--page", "--out", tmp_path)
        assert ran.returncode == 0, ran.stderr
        made = (tmp_path / "index.html").read_text()
        assert _words(made) == _words(self.PAGE.read_text())

    def test_is_small(self) -> None:
        assert self.PAGE.stat().st_size < 3e6


def _words(page: str) -> str:
    """Return a page without its pictures, which depend on the version that draws them."""
    return re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)


class TestBrowser:
    @pytest.mark.parametrize(
        ("body", "complaint"),
        [
            ('<h1>x</h1><img src="http://127.0.0.1:1/x.png">', "it asks the network for http"),
            ("<h1>x</h1><script>console.error('tea')</script>", "its console says: .*tea"),
            ("<h1>x</h1><figure></figure>", "1 of its 1 figures are empty"),
            ("nothing", "it has no title"),
        ],
    )
    def test_bad_pages_are_refused(self, tmp_path: Path, body: str, complaint: str) -> None:
        path = tmp_path / "bad.html"
        path.write_text(f"<!DOCTYPE html><html><body>{body}</body></html>")
        checked = script("check_page.py", path)
        assert checked.returncode == 1
        assert re.search(complaint, checked.stderr)

    def test_a_missing_browser_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module: Any = import_module("check_page")
        monkeypatch.setattr(module, "_which", lambda: None)
        monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
        with pytest.raises(module.PageError, match="Chromium is missing: install it"):
            module.chromium()


def test_yields(tmp_path: Path) -> None:
    made = import_module("datasets").synthetic(400, tmp_path / "cache")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tea.parquet").write_bytes(made.read_bytes())
    ran = script(
        "yields.py", "--data", tmp_path / "data", "--out", tmp_path / "yields", "--runs", 2
    )
    assert ran.returncode == 0, ran.stderr
    table = (tmp_path / "yields.md").read_text()
    assert table.startswith("# Items released\n")
    for name in ("auto", *MECHANISMS.keys() - {"single", "weighted-gaussian"}, "room", "ceiling"):
        assert f"| {name} |" in table
    assert (tmp_path / "yields.csv").read_text().count("\n") > len(MECHANISMS)
