"""The error tree, and the names it offers."""

import pytest

from dp_sips import DpSipsError, InputError, OutOfMemoryError, OutputError, UsageError
from dp_sips.errors import did_you_mean


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (UsageError, ValueError),
        (InputError, ValueError),
        (OutputError, OSError),
        (OutOfMemoryError, MemoryError),
    ],
)
def test_tree(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, DpSipsError)
    assert issubclass(error, builtin)


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("usr", ["user", "item"], "did you mean 'user'?"),
        ("USER", ["User", "item"], "did you mean 'User'?"),
        ("aaab", ["aaac", "aaad"], "did you mean 'aaad' or 'aaac'?"),
        ("nosuch.csv", ["nohead.csv", "o1.csv"], "known: 'nohead.csv', 'o1.csv'"),
        ("--quite", ["--item", "--quiet"], "did you mean '--quiet'?"),
        ("zzz", ["user", "item"], "known: 'user', 'item'"),
        ("zzz", [], "there are none"),
        ("zzz", [f"column{n}" for n in range(30)], "'column19', …"),
    ],
)
def test_nearest_names(name: str, known: list[str], words: str) -> None:
    if " or " in words:
        assert set(did_you_mean(name, known)) == set(words)
    else:
        assert did_you_mean(name, known).endswith(words)
