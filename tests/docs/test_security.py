"""The assurance case is about what is there: no row of its tables goes stale."""

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dp_sips.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


PROMISES = rows(section("What is promised, and by what"))
MISTAKES = rows(section("Mistakes found so far"))


def found(name: str) -> Any:
    """Return what a dotted name within dp_sips stands for."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"dp_sips.{module}"), attribute)


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def plain(text: str) -> str:
    return " ".join(text.replace("**", "").split())


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: row[0][:40])
def test_a_promise_has_its_theorem_function_and_test(row: list[str]) -> None:
    _, theorem, function, test = row
    file, words = re.fullmatch(r'`([^`]+)`: "([^"]+)"', theorem).groups()  # type: ignore[union-attr]
    home = ROOT if file.startswith("docs/") else ROOT / "src" / "dp_sips"
    assert words in plain((home / file).read_text("utf-8"))
    assert found(function.strip("`")) is not None
    path, _, name = test.strip("`").partition("::")
    assert name.startswith("test_")
    assert name in names_in(ROOT / path)


def test_every_mechanism_has_a_row() -> None:
    promised = {name for row in PROMISES for name in re.findall(r"`([a-z0-9-]+)`", row[0])}
    assert {"auto", *MECHANISMS} <= promised


def test_mistakes_name_tests_that_exist() -> None:
    assert "CSV" in MISTAKES[0][1]
    for day, *_, mended in MISTAKES:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
        tests = re.findall(r"`(tests/[^`]+)`", mended)
        assert tests
        assert all((ROOT / test).exists() for test in tests)


def test_the_policy_leads_here() -> None:
    policy = (ROOT / "SECURITY.md").read_text("utf-8")
    assert "(docs/security.md)" in policy
    assert "@" not in policy
