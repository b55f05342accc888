"""`public_items`, on every engine: as if nobody held them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips import count_users

SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LONG = "a long word, longer than the fifteen bytes that a block has room for"
WORDS = [*map(str, range(20)), LONG, LONG + "!", ""]
PUBLIC = ["0", "3", LONG, "nobody's"]
HOW: dict[str, Any] = {"user": "u", "item": "i", "epsilon": 3.0, "delta": 0.01, "rho": None}


def crowd(users: int = 90, seed: int = 3) -> Any:
    """Give some of the words to each user, in scattered, repeated rows; the first users hold 0."""
    random = np.random.default_rng(seed)
    held = np.argwhere(random.random((users, len(WORDS))) < np.linspace(0.7, 0.2, len(WORDS)))
    held = held[random.permutation(np.append(np.arange(len(held)), np.arange(40)))]
    pairs = [(int(u), WORDS[i]) for u, i in held if u > 4] + [(u, "0") for u in range(5)]
    return pa.table({"u": [u for u, _ in pairs], "i": [item for _, item in pairs]})


def without(data: Any, items: list[Any]) -> Any:
    return data.filter(pc.invert(pc.is_in(data.column("i"), pa.array(items))))


@pytest.mark.parametrize("mechanism", ["sips", "cumulative", "matching", "mad2r", "auto"])
def test_releases_are_those_of_the_other_items(
    any_engine: Any, reference: Any, mechanism: str
) -> None:
    how = HOW | {"mechanism": mechanism, "max_items": 100 if mechanism == "auto" else 4}
    ours = any_engine.release(crowd(), **how, public_items=PUBLIC)
    theirs = reference.release(without(crowd(), PUBLIC), **how)
    assert ours.items.equals(theirs.items)
    assert ours.items.num_rows > 0


@pytest.mark.parametrize("mechanism", ["weighted-gaussian", "mad", "dpsu", "gw", "policy-laplace"])
def test_every_mechanism_that_an_engine_has(engine: Any, reference: Any, mechanism: str) -> None:
    if mechanism in {"dpsu", "gw", "policy-laplace"} and not engine.engine.takes_turns:
        mechanism = "sips"
    how = HOW | {"mechanism": mechanism, "max_items": 5, "public_items": PUBLIC}
    assert engine.release(crowd(), **how).items.equals(reference.release(crowd(), **how).items)


def test_all_items_are_public(any_engine: Any) -> None:
    for mechanism in ("sips", "cumulative", "matching", "auto"):
        how = HOW | {"mechanism": mechanism, "max_items": 100}
        released = any_engine.release(crowd(), **how, public_items=WORDS)
        assert released.items.num_rows == 0


rows = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), min_size=1, max_size=80)


@SETTINGS
@given(pairs=rows, public=st.lists(st.integers(0, 15)), max_items=st.integers(1, 5))
def test_any_data_is_as_if_nobody_held_them(
    any_engine: Any, reference: Any, *, pairs: Any, public: list[int], max_items: int
) -> None:
    data = pa.table({"u": [u for u, _ in pairs], "i": [i for _, i in pairs]})
    how = HOW | {"mechanism": "sips", "max_items": max_items, "delta": 0.5}
    ours = any_engine.release(data, **how, public_items=public)
    theirs = reference.release(without(data, public), **how)
    assert ours.items.equals(theirs.items)


def test_counts_of_new_items_and_of_users_who_hold_none(any_engine: Any, reference: Any) -> None:
    how: dict[str, Any] = {"user": "u", "item": "i", "epsilon": 9.0, "delta": 0.01, "other": True}
    how |= {"seed": 4, "insecure_test": True, "max_items": 3, "public_items": PUBLIC}
    for mechanism in ("sips", "cumulative"):
        counts = count_users(crowd(), engine=any_engine.engine, mechanism=mechanism, **how).table
        theirs = count_users(crowd(), engine=reference.engine, mechanism=mechanism, **how).table
        assert counts.equals(theirs)
        items = counts.column("i").to_pylist()
        assert not set(items) & set(PUBLIC)
        # Five users hold nothing but a public item: they are among those who hold none of the new.
        assert items[-1] is None
        assert counts.column("users").to_pylist()[-1] == pytest.approx(5, abs=12)
