"""Scripts are not a package: tests of them find them here."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def _scripts() -> Iterator[None]:
    folder = str(ROOT / "experiments")
    sys.path.insert(0, folder)
    yield
    sys.path.remove(folder)
