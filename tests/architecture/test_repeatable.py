"""Tests are repeatable: what they draw follows from their names (tests/repeatable.py)."""

import ast
from pathlib import Path

import numpy as np
import pytest
from tests.repeatable import DRAWS

from dp_sips.mechanisms.discrete import with_noise
from dp_sips.privacy.noise import Key

TESTS = Path(__file__).parents[1]
HERE = "tests/architecture/test_repeatable.py"


def drawn(name: str, *, fresh: bool = False) -> tuple[bytes, bytes, list[int]]:
    """Return what two runs and some counts have of the system's randomness under this name."""
    with DRAWS.of(name, fresh=fresh):
        one, other = Key.fresh(), Key.fresh()
        noise = with_noise(np.zeros(20, dtype=np.int64), 1000.0, one)
    assert not one.is_test
    return one._secret, other._secret, noise.tolist()


def test_draws_follow_from_the_name() -> None:
    assert drawn("a") == drawn("a")
    assert not set(drawn("a")[:2]) & set(drawn("b")[:2])
    assert drawn("a")[2] != drawn("b")[2]


def test_no_two_draws_are_the_same() -> None:
    for fresh in (False, True):
        one, other, noise = drawn("a", fresh=fresh)
        assert one != other
        assert len(set(noise)) > 1


def test_fresh_ones_differ_each_time() -> None:
    first, again = drawn("a", fresh=True), drawn("a", fresh=True)
    assert not set(first[:2]) & set(again[:2])
    assert first[2] != again[2]


AT_IMPORT = Key.fresh()


@pytest.fixture(scope="module")
def shared() -> Key:
    return Key.fresh()


@pytest.fixture
def own() -> Key:
    return Key.fresh()


def first_of(name: str) -> bytes:
    with DRAWS.of(name):
        return Key.fresh()._secret


def test_each_draws_for_itself(own: Key, shared: Key) -> None:
    """Whichever test comes first, what is shared is the same."""
    assert own._secret == first_of(f"{HERE}::test_each_draws_for_itself")
    assert shared._secret == first_of(f"{HERE}::shared[0]")
    assert AT_IMPORT._secret == first_of(HERE)


@pytest.mark.fresh
def test_the_mark_is_seen(own: Key, shared: Key) -> None:
    assert own._secret != first_of(f"{HERE}::test_the_mark_is_seen")
    assert shared._secret == first_of(f"{HERE}::shared[0]")


def test_generators_have_seeds() -> None:
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                unseeded = node.func.attr in {"default_rng", "Random"} and not node.args
                assert not unseeded, f"{path.name}:{node.lineno} has a generator without a seed"
