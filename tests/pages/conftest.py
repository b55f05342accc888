"""The browser is driven by a script of experiments/, which is not a package."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = str(Path(__file__).parents[2] / "experiments")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One headless Chromium for all tests; it is installed if it is missing and may be."""
    sys.path.insert(0, FOLDER)
    try:
        from browser import Browser
    finally:
        sys.path.remove(FOLDER)
    with Browser() as browser:
        yield browser
