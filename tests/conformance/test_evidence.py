"""Cumulative evidence on every engine: the same sets, the same evidence, the same release.

Beside the engines stands a plain recomputation of the whole mechanism, from the definition in
mechanisms/evidence.py and the noise of a test key.
"""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips import plan
from dp_sips.engines.encoding import value_blocks
from dp_sips.mechanisms import Cumulative
from dp_sips.mechanisms.cumulative import EvidenceRound
from dp_sips.mechanisms.evidence import STEP_BITS
from dp_sips.privacy import bounding
from dp_sips.privacy.blocks import combine
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key, Purpose, gaussian
from dp_sips.progress import Progress
from dp_sips.sources import open_source

SETTINGS = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
OPTIONS: dict[str, Any] = {"user": "u", "item": "i", "max_items": 4, "rho": 2.0, "delta": 0.01}
STEPS = 2**STEP_BITS
LONG = "a long word, longer than the fifteen bytes that a block has room for"


def table(rows: list[tuple[Any, Any]], kind: Any = None) -> Any:
    users, items = zip(*rows, strict=True)
    return pa.table({"u": pa.array(users, pa.int64()), "i": pa.array(items, kind)})


def crowd(items: int, users: int, seed: int) -> list[tuple[int, int]]:
    """Give each user some items, the first ones to most users, and one of its own."""
    random = np.random.default_rng(seed)
    popular = np.geomspace(0.9, 0.02, items)
    held = [
        (u, int(i)) for u in range(users) for i in np.flatnonzero(random.random(items) < popular)
    ]
    held += [(u, items + u) for u in range(users)]
    return [held[n] for n in random.permutation(len(held))]


def block_of(item: Any, kind: Any, key: Key) -> Any:
    scrambler = key.scrambler(Purpose.LONG_ITEMS)
    return combine([value_blocks(pa.array([item], kind), scrambler)], scrambler)[0]


def recomputed(
    rows: list[tuple[Any, Any]], rounds: Any, key: Key, kind: Any = None
) -> tuple[set[Any], dict[Any, list[float]]]:
    """Return the release, and the evidence of each item after each round in which it was active."""
    kind = kind or pa.int64()
    blocks = {item: block_of(item, kind, key) for _, item in set(rows)}
    held = defaultdict(set)
    for user, item in rows:
        held[user].add(item)
    sets = {}
    for user, items in held.items():
        own = value_blocks(pa.array([user], pa.int64()), key.scrambler(Purpose.LONG_USERS))
        word = bounding.user_words(key, own)
        ranked = sorted(
            items,
            key=lambda i: int(bounding.rank(word, bounding.item_words(key, blocks[i][None, :]))[0]),
        )
        sets[user] = ranked[: rounds[0].max_items]
    claims = {item: 16 for items in sets.values() for item in items}
    found: set[Any] = set()
    totals: dict[Any, float] = defaultdict(float)
    seen: dict[Any, list[float]] = defaultdict(list)
    for index, step in enumerate(rounds):
        weights: dict[Any, float] = defaultdict(float)
        for kept in sets.values():
            left = [item for item in kept if item in claims]
            total = sum(claims[item] for item in left)
            for item in left:
                weights[item] += math.floor(STEPS * math.sqrt(claims[item] / total)) / STEPS
        noise = key.noise_of_round(index)
        for item in list(claims):
            drawn = float(gaussian(noise(blocks[item][None, :]))[0])
            rounded = round(step.sigma * drawn * STEPS) / STEPS
            totals[item] += step.count * (weights[item] + rounded)
            average = totals[item] / step.counted
            seen[item].append(average)
            claims[item] = (0, 1, 4, 9, 16)[sum(average >= edge for edge in step.edges)]
            if average >= step.threshold:
                found.add(item)
            if average >= step.threshold or claims[item] == 0:
                del claims[item]
    return found, seen


def released(result: Any) -> list[Any]:
    return list(result.items["i"].to_pylist())


def test_a_release_is_the_references(engine: Any, reference: Any) -> None:
    rows = crowd(25, 60, seed=3)
    options = OPTIONS | {"mechanism": Cumulative(rounds=3)}
    found = released(engine.release(table(rows), **options))
    assert found == released(reference.release(table(rows), **options))
    assert 0 < len(found) < 25 + 60


@pytest.mark.parametrize("rounds", [1, 2, 5, 17, 30])
def test_any_number_of_rounds(rounds: int, engine: Any, reference: Any) -> None:
    rows = crowd(25, 60, seed=3)
    for seed in (1, 2):
        options = OPTIONS | {"mechanism": Cumulative(rounds=rounds), "seed": seed}
        found = released(engine.release(table(rows), **options))
        assert found == released(reference.release(table(rows), **options))
        assert 0 < len(found) < 25 + 60


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), lambda n: n),
        (pa.string(), lambda n: f"{n}"),
        (pa.string(), lambda n: f"{LONG} {n}"),
        (pa.binary(), lambda n: bytes([n]) * n),
        (pa.date32(), lambda n: n),
    ],
    ids=["int", "short text", "long text", "bytes", "date"],
)
def test_any_kind_of_item(kind: Any, value: Any, engine: Any, reference: Any) -> None:
    rows = [(u, value(i)) for u, i in crowd(25, 60, seed=4)]
    options = OPTIONS | {"mechanism": Cumulative(rounds=6)}
    data = table(rows, kind)
    found = released(engine.release(data, **options))
    assert found == released(reference.release(data, **options))
    assert found


@SETTINGS
@given(
    rows=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), min_size=1, max_size=120),
    max_items=st.integers(1, 7),
    rounds=st.integers(1, 12),
    rho=st.sampled_from([0.05, 1.0, 20.0]),
    seed=st.integers(0, 10**6),
)
def test_any_data(
    *, engine: Any, reference: Any, rows: Any, max_items: int, rounds: int, rho: float, seed: int
) -> None:
    options = OPTIONS | {
        "mechanism": Cumulative(rounds=rounds), "max_items": max_items, "rho": rho, "delta": 0.3,
        "seed": seed,
    }  # fmt: skip
    expected = released(reference.release(table(rows), **options))
    assert released(engine.release(table(rows), **options)) == expected
    made = plan(**{k: options[k] for k in ("mechanism", "max_items", "rho", "delta")})
    found, _ = recomputed(rows, made.rounds, Key.for_tests(seed))
    assert sorted(found) == expected


@pytest.mark.parametrize("max_items", [1, 3, 10, 300])
def test_any_engine_does_what_the_definition_says(max_items: int, any_engine: Any) -> None:
    rows = crowd(25, 60, seed=5)
    mechanism = Cumulative()
    made = plan(mechanism, rho=2.0, delta=0.01, max_items=max_items)
    for seed in range(2):
        found, seen = recomputed(rows, made.rounds, Key.for_tests(seed))
        options = OPTIONS | {"max_items": max_items, "mechanism": mechanism, "seed": seed}
        assert released(any_engine.release(table(rows), **options)) == sorted(found)
        assert max(map(len, seen.values())) > 3


def test_any_evidence_stays_with_its_item(any_engine: Any) -> None:
    """What `decide` is handed, round for round, is what it returned for that item before."""
    rows = crowd(25, 60, seed=6)
    key = Key.for_tests(9)
    made = plan(Cumulative(rounds=8), rho=2.0, delta=0.01, max_items=4)
    _, seen = recomputed(rows, made.rounds, key)
    names = {block_of(i, pa.int64(), key).tobytes(): i for _, i in rows}
    source = open_source(table(rows), user="u", item="i", nulls="error")
    loaded = any_engine.engine.load(source, Bounds(4, once=True), key, Progress(show=False))
    noted: dict[Any, list[float]] = defaultdict(list)
    for index, step in enumerate(made.rounds):
        assert isinstance(step, EvidenceRound)
        inner = loaded.decide_on_evidence

        def spy(weights: Any, judge: Any, step: Any = step, inner: Any = inner) -> Any:
            def noting(blocks: Any, sums: Any, evidence: Any) -> Any:
                total, yes, claims = judge(blocks, sums, evidence)
                for block, weight, value in zip(blocks, sums, total, strict=True):
                    if weight:
                        noted[names[block.tobytes()]].append(float(value / step.counted))
                return total, yes, claims

            return inner(weights, noting)

        loaded.decide_on_evidence = spy
        step.run(loaded, key.noise_of_round(index))
        loaded.decide_on_evidence = inner
    assert set(noted) == set(seen)
    for item, values in seen.items():
        assert noted[item] == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize("max_items", [1, 2, 5])
def test_any_cut_keeps_the_first_in_bounding_order(max_items: int, any_engine: Any) -> None:
    """After the first of a user's items are dropped, nothing moves up."""
    rows = [(0, i) for i in range(12)]
    key = Key.for_tests(4)
    user = bounding.user_words(key, value_blocks(pa.array([0]), key.scrambler(Purpose.LONG_USERS)))
    ranked = sorted(
        range(12),
        key=lambda i: int(
            bounding.rank(user, bounding.item_words(key, block_of(i, pa.int64(), key)[None, :]))[0]
        ),
    )
    source = open_source(table(rows), user="u", item="i", nulls="error")
    loaded = any_engine.engine.load(source, Bounds(max_items, once=True), key, Progress(show=False))

    def release_all(blocks: Any, weights: Any, evidence: Any) -> Any:
        del blocks
        return evidence, weights > 0, np.where(weights > 0, np.uint8(16), np.uint8(0))

    def drop_all(blocks: Any, weights: Any, evidence: Any) -> Any:
        del blocks
        return evidence, np.zeros(len(weights), np.bool_), np.zeros(len(weights), np.uint8)

    loaded.remove(loaded.decide_on_evidence(loaded.weigh_by_claim(12), release_all))
    assert sorted(loaded.released()["i"].to_pylist()) == sorted(ranked[:max_items])
    loaded.remove(loaded.decide_on_evidence(loaded.weigh_by_claim(12), release_all))
    assert len(loaded.released()) == max_items

    again = any_engine.engine.load(
        open_source(table(rows), user="u", item="i", nulls="error"),
        Bounds(max_items, once=True),
        key,
        Progress(show=False),
    )
    again.remove(again.decide_on_evidence(again.weigh_by_claim(12), drop_all))
    assert len(again.released()) == 0
    again.remove(again.decide_on_evidence(again.weigh_by_claim(12), release_all))
    assert len(again.released()) == 0


def test_order_of_rows_and_batches_do_not_matter(any_engine: Any) -> None:
    rows = crowd(25, 60, seed=7)
    options = OPTIONS | {"mechanism": Cumulative(rounds=6)}
    expected = released(any_engine.release(table(rows), **options))
    assert expected
    random = np.random.default_rng(1)
    for size in (1, 7, 1000):
        mixed = [rows[n] for n in random.permutation(len(rows))] + rows[:9]
        data = table(mixed)
        reader = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=size))
        assert released(any_engine.release(reader, **options)) == expected


def test_any_items_that_all_users_cut_are_never_released(any_engine: Any) -> None:
    """They occur, and have no weight: luck must not release them."""
    rows = [(u, i) for u in range(3) for i in range(200)]
    options = OPTIONS | {"mechanism": Cumulative(rounds=3), "max_items": 1, "delta": 0.99}
    for seed in range(5):
        found = any_engine.release(table(rows), **options | {"seed": seed})
        assert len(found.items) <= 3
