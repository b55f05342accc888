"""Reduced weights and `min_users`, on every engine as on the reference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips import count_users
from dp_sips.mechanisms.claims import CLAIMS
from dp_sips.mechanisms.evidence import STEP_BITS
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source

SETTINGS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), min_size=1, max_size=90)
M = 4


def table(pairs: list[tuple[int, int]]) -> Any:
    return pa.table({"u": [user for user, _ in pairs], "i": [item for _, item in pairs]})


def crowd(users: int = 120, items: int = 30, seed: int = 3) -> Any:
    """Give some of the items to each user, the first ones to most."""
    random = np.random.default_rng(seed)
    held = random.random((users, items)) < np.linspace(0.5, 0.005, items)
    return table([(int(u), int(i)) for u, i in np.argwhere(held)])


def load(rounds: Any, data: Any, bounds: Bounds) -> Any:
    source = open_source(data, user="u", item="i")
    return rounds.engine.load(source, bounds, Key.for_tests(1), Progress(show=False))


def weights(rounds: Any, data: Any, max_items: int, m: int, step_bits: int = 30) -> Any:
    loaded = load(rounds, data, Bounds(max_items))
    found = rounds.read(loaded, loaded.weigh(max_items, step_bits, m))
    loaded.close()
    return {block: weight for block, weight in found.items() if weight}


def some_claims(blocks: Any, sums: Any, evidence: Any) -> Any:
    """Drop some items, lower the claims of others, and release none."""
    claims = np.array(CLAIMS, dtype=np.uint8)[(blocks[:, 0] * np.uint64(7)) % np.uint64(5)]
    return evidence + 1.0, np.zeros(len(sums), dtype=bool), claims


def weights_by_claim(rounds: Any, data: Any, max_items: int, m: int) -> list[Any]:
    """Return the weights of a round, and of one in which items have other claims."""
    loaded = load(rounds, data, Bounds(max_items, once=True))
    found = []
    for _ in range(2):
        sums = loaded.weigh_by_claim(STEP_BITS, m)
        found.append({b: w for b, w in rounds.read(loaded, sums).items() if w})
        loaded.remove(loaded.decide_on_evidence(sums, some_claims))
    loaded.close()
    return found


@SETTINGS
@given(pairs=rows, max_items=st.integers(1, 7), m=st.integers(1, 6), bits=st.sampled_from([6, 30]))
def test_any_engine_reduces_as_the_reference(
    engine: Any, reference: Any, *, pairs: list[tuple[int, int]], max_items: int, m: int, bits: int
) -> None:
    expected = weights(reference, table(pairs), max_items, m, bits)
    assert weights(engine, table(pairs), max_items, m, bits) == expected


@SETTINGS
@given(pairs=rows, max_items=st.integers(1, 7), m=st.integers(1, 6))
def test_any_engine_reduces_claimed_weights_as_the_reference(
    engine: Any, reference: Any, *, pairs: list[tuple[int, int]], max_items: int, m: int
) -> None:
    expected = weights_by_claim(reference, table(pairs), max_items, m)
    assert weights_by_claim(engine, table(pairs), max_items, m) == expected


def test_weights_of_a_crowd(engine: Any, reference: Any) -> None:
    data = crowd()
    assert weights(engine, data, 6, M) == weights(reference, data, 6, M)
    assert weights(engine, data, 6, M) != weights(reference, data, 6, 1)


def test_claimed_weights_where_the_driver_has_no_items(engine: Any, reference: Any) -> None:
    data = crowd()
    expected = weights_by_claim(reference, data, 6, M)
    assert expected[0] != expected[1]
    if hasattr(engine.engine, "driver_items"):
        engine = replace(engine, engine=replace(engine.engine, driver_items=0))
    assert weights_by_claim(engine, data, 6, M) == expected


MECHANISMS = ("weighted-gaussian", "sips", "sips-rule", "matching", "cumulative", "auto")
HOW: dict[str, Any] = {"user": "u", "item": "i", "epsilon": 2.0, "delta": 0.01, "rho": None}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_releases_are_alike(engine: Any, reference: Any, mechanism: str) -> None:
    how = HOW | {"mechanism": mechanism, "min_users": M, "max_items": 100}
    ours, theirs = engine.release(crowd(), **how), reference.release(crowd(), **how)
    assert ours.items.equals(theirs.items)
    assert 0 < ours.items.num_rows < 30


def rare() -> Any:
    """Give one item to M users, another to M − 1, and to each of many users one of their own."""
    own = [(user, 100 + user) for user in range(200)]
    return table([*((u, 0) for u in range(M)), *((u, 1) for u in range(M - 1)), *own])


@pytest.mark.parametrize("mechanism", ["sips", "matching", "cumulative"])
def test_any_release_never_has_what_fewer_users_hold(any_engine: Any, mechanism: str) -> None:
    """With so much noise that, without `min_users`, an item of M − 1 users often comes out."""
    how = HOW | {"mechanism": mechanism, "max_items": 100, "epsilon": 0.5, "delta": 0.6}
    data, found = rare(), {1: set[int](), M: set[int]()}
    for seed in range(8):
        for m, items in found.items():
            released = any_engine.release(data, **how, min_users=m, seed=seed).items
            items.update(released.column("i").to_pylist())
    assert found[M] <= {0}
    assert found[1] - {0}


def test_counts_follow_the_items_of_enough_users(any_engine: Any) -> None:
    how: dict[str, Any] = {"user": "u", "item": "i", "epsilon": 5.0, "delta": 0.01}
    test: dict[str, Any] = {"engine": any_engine.engine, "seed": 4, "insecure_test": True}
    counts = count_users(crowd(), **how, **test, min_users=30)
    kept = crowd().to_pandas().groupby("i").size()
    assert counts.table.num_rows > 0
    assert all(kept[item] >= 30 for item in counts.table.column("i").to_pylist())
