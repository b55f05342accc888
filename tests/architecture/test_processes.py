"""Tests that share something costly share a process (tests/processes.py)."""

from pathlib import Path

import pytest
from tests.processes import group

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("conformance/test_levels.py::test_a[spark]", "golden/test_golden.py::test_on_spark[sips]"),
        ("packaging/test_wheel.py::test_a", "packaging/test_wheel.py::TestB::test_b[x::y]"),
    ],
)
def test_together(one: str, other: str) -> None:
    assert group(f"tests/{one}", ROOT) == group(f"tests/{other}", ROOT)


def test_apart() -> None:
    names = [f"tests/cli/test_count.py::test_a[{n}]" for n in range(3)]
    assert [group(name, ROOT) for name in names] == names


def test_marks_of_groups_are_not_used() -> None:
    """They have no effect here."""
    for path in ROOT.joinpath("tests").rglob("*.py"):
        assert "mark.xdist" + "_group" not in path.read_text("utf-8"), path
