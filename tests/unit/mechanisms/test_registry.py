"""Mechanisms: frozen values, and errors that show them."""

import math
from typing import Any

import pytest

from dp_sips import Sips, UsageError
from dp_sips.mechanisms import MECHANISMS, find_mechanism
from dp_sips.mechanisms.sips import geometric_shares


def test_shares() -> None:
    assert geometric_shares(3, 0.5) == (0.25, 0.5, 1.0)
    assert geometric_shares(3, 1) == (1, 1, 1)
    assert geometric_shares(2, 2.0) == (2.0, 1.0)


@pytest.mark.parametrize("rounds", [0, -1, 2.5, "3", None, True])
def test_bad_rounds(rounds: Any) -> None:
    with pytest.raises(UsageError, match=f"rounds must be .* got {rounds!r}"):
        Sips(rounds=rounds)


@pytest.mark.parametrize("ratio", [0, -1, math.nan, math.inf, "0.3", None, True])
def test_bad_ratio(ratio: Any) -> None:
    with pytest.raises(UsageError, match=f"ratio must be .* got {ratio!r}"):
        Sips(ratio=ratio)


@pytest.mark.parametrize("ratio", [1e-100, 1e100])
def test_shares_that_no_float_holds(ratio: float) -> None:
    with pytest.raises(UsageError, match="ratio must be nearer to 1 for 9 rounds, got 1e"):
        Sips(rounds=9, ratio=ratio)


def test_names() -> None:
    for name, mechanism in MECHANISMS.items():
        assert find_mechanism(name) == mechanism()
        assert mechanism.name == name
    assert find_mechanism(Sips(rounds=5)) == Sips(rounds=5)


def test_are_values() -> None:
    assert Sips() == Sips(rounds=3, ratio=1 / 3)
    assert hash(Sips()) == hash(Sips())
    frozen: Any = Sips()
    with pytest.raises(AttributeError):
        frozen.rounds = 9
    assert repr(Sips(rounds=2, ratio=0.5)) == "Sips(rounds=2, ratio=0.5, min_users=1)"
