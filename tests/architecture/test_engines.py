"""Engines look alike: the same file name for the same duty."""

from pathlib import Path

import pytest

import dp_sips

ENGINES = Path(dp_sips.__file__).parent / "engines"
DUTIES = {
    "engine.py": "options, and `load`",
    "contributions.py": "what rounds do",
    "loading.py": "from rows to sets that are laid out",
    "weighing.py": "sums of weights",
}


@pytest.mark.parametrize("engine", ["memory", "spark"])
@pytest.mark.parametrize("duty", DUTIES)
def test_the_same_duty_has_the_same_file_name(engine: str, duty: str) -> None:
    assert (ENGINES / engine / duty).is_file(), f"{DUTIES[duty]}: engines/{engine}/{duty}"
