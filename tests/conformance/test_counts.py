"""Every engine counts the users of keys as the reference does, and one user moves little."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips import count_users
from dp_sips.engines.encoding import table_blocks
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source

SETTINGS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LONG = "a long word, longer than the fifteen bytes that a block has room for"
KINDS: dict[str, tuple[list[Any], Any]] = {
    "integers": (list(range(30)), pa.int64()),
    "text": (["", "a", "b", LONG, LONG + "!", *map(str, range(20))], pa.string()),
    "dictionary": (["b", "a", LONG, "ä"], pa.dictionary(pa.int32(), pa.string())),
}
row_lists = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), min_size=1, max_size=100)


def table(rows: list[tuple[Any, Any]], kind: Any = None) -> Any:
    values = pa.array([item for _, item in rows], getattr(kind, "value_type", kind))
    items = values.dictionary_encode() if pa.types.is_dictionary(kind or pa.int64()) else values
    return pa.table({"u": [user for user, _ in rows], "i": items})


def crowd(values: list[Any], seed: int = 3) -> list[tuple[int, Any]]:
    """Give 60 users some of the values, the first ones to most, in scattered, repeated rows."""
    random = np.random.default_rng(seed)
    popular = np.linspace(0.9, 0.1, len(values))
    held = [
        (u, int(v)) for u in range(60) for v in np.flatnonzero(random.random(len(values)) < popular)
    ]
    held += [held[n] for n in random.integers(0, len(held), 50)]
    return [(held[n][0], values[held[n][1]]) for n in random.permutation(len(held))]


def counted(
    any_engine: Any,
    rows: list[tuple[int, int]],
    keys: list[int],
    max_items: int,
    *,
    bounds: Bounds | None = None,
    seed: int = 1,
) -> tuple[list[int], int]:
    """Return an engine's exact counts of keys, and of users who hold none of them."""
    source, key = open_source(table(rows), user="u", item="i"), Key.for_tests(seed)
    loaded = any_engine.engine.load(
        source, bounds or Bounds(0, whole=True), key, Progress(show=False)
    )
    blocks = table_blocks(pa.table({"i": pa.array(keys, pa.int64())}), key)
    counts, others = loaded.count(blocks, max_items, others=True)
    loaded.close()
    return counts.tolist(), others


def holders(rows: list[tuple[int, int]], keys: list[int]) -> tuple[dict[int, set[int]], int]:
    """Return the keys that each user holds, and how many users hold none."""
    sets: dict[int, set[int]] = defaultdict(set)
    for user, item in rows:
        sets[user] |= {item} & set(keys)
    return sets, sum(not held for held in sets.values())


@SETTINGS
@given(rows=row_lists, keys=st.lists(st.integers(0, 15), unique=True), max_items=st.integers(1, 6))
def test_any_counts_are_those_of_the_sets(
    any_engine: Any, *, rows: list[tuple[int, int]], keys: list[int], max_items: int
) -> None:
    counts, others = counted(any_engine, rows, keys, max_items)
    sets, none = holders(rows, keys)
    assert others == none
    assert sum(counts) == sum(min(len(held), max_items) for held in sets.values())
    if all(len(held) <= max_items for held in sets.values()):
        assert counts == [sum(key in held for held in sets.values()) for key in keys]


@SETTINGS
@given(
    rows=row_lists,
    keys=st.lists(st.integers(0, 15), unique=True),
    max_items=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_any_user_moves_few_counts_by_one(
    any_engine: Any,
    *,
    rows: list[tuple[int, int]],
    keys: list[int],
    max_items: int,
    seed: int,
    data: st.DataObject,
) -> None:
    gone = data.draw(st.sampled_from(sorted({user for user, _ in rows})))
    rest = [row for row in rows if row[0] != gone]
    everyone = [*rows, (99, 0)], [*rest, (99, 0)]
    (before, others), (after, fewer) = (
        counted(any_engine, some, keys, max_items, seed=seed) for some in everyone
    )
    moves = [one - other for one, other in zip(before, after, strict=True)]
    own = len({item for user, item in rows if user == gone} & set(keys))
    assert set(moves) <= {0, 1}
    assert sum(moves) == min(own, max_items)
    assert others - fewer == (own == 0)


def test_without_the_cap_a_user_moves_more(any_engine: Any) -> None:
    """Power: the test above sees a count that forgets max_items."""
    rows, keys = [(1, item) for item in range(9)], list(range(9))
    assert sum(counted(any_engine, rows, keys, max_items=4)[0]) == 4
    assert sum(counted(any_engine, rows, keys, max_items=100)[0]) == 9


def test_which_items_count_is_the_same_everywhere(engine: Any, reference: Any) -> None:
    rows = crowd(list(range(40)))
    keys = list(range(0, 40, 2))
    for seed in (1, 2):
        found, expected = (counted(e, rows, keys, 3, seed=seed) for e in (engine, reference))
        assert found == expected


def test_rounds_leave_whole_sets_behind(any_engine: Any) -> None:
    """Sets that rounds cut, or took items out of, are counted as they were read."""
    rows, keys = crowd(list(range(20))), list(range(20))
    sets, _ = holders(rows, keys)
    counts, _ = counted(any_engine, rows, keys, 50, bounds=Bounds(2, once=True, whole=True))
    assert counts == [sum(key in held for held in sets.values()) for key in keys]


@pytest.mark.parametrize("mechanism", ["sips", "cumulative", "matching"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_release_is_the_references(
    engine: Any, reference: Any, kind: str, mechanism: str
) -> None:
    values, arrow = KINDS[kind]
    options: dict[str, Any] = {
        "user": "u", "item": "i", "epsilon": 3, "delta": 1e-3, "mechanism": mechanism,
        "max_items": 4, "other": True, "seed": 5, "insecure_test": True,
    }  # fmt: skip
    data = table(crowd(values), arrow)
    found, expected = (count_users(data, engine=e.engine, **options) for e in (engine, reference))
    assert found.table.num_rows > 2
    assert found.table.equals(expected.table)
    same = {"time": "of the run"}
    assert found.certificate | same == expected.certificate | same


def test_items_of_two_columns_and_null_keys(engine: Any, reference: Any) -> None:
    rows = crowd([("a", 1), ("a", 2), (None, 1), ("b", None), (LONG, 3)])
    data = pa.table(
        {
            "u": [user for user, _ in rows],
            "i": [item[0] for _, item in rows],
            "j": [item[1] for _, item in rows],
        }
    )
    keys = [("a", 1), (None, 1), ("nobody's", 7), ("b", None)]
    found, expected = (
        count_users(
            data, user="u", item=["i", "j"], keys=keys, nulls="group", epsilon=9, delta=1e-3,
            max_items=2, engine=e.engine, seed=5, insecure_test=True,
        ).table
        for e in (engine, reference)
    )  # fmt: skip
    assert found.equals(expected)
    assert found.column("i").to_pylist() == ["a", "b", "nobody's", None]


def test_a_null_key_is_counted_as_any_other(any_engine: Any) -> None:
    data = pa.table({"u": [1, 1, 2, 3], "i": pa.array([None, 5, None, 5])})
    counts = count_users(
        data, user="u", item="i", keys=[None, 5], nulls="group", rho=1e6, delta=1e-3,
        engine=any_engine.engine, seed=5, insecure_test=True,
    )  # fmt: skip
    assert counts.table["users"].to_pylist() == pytest.approx([2, 2], abs=6)


def test_data_without_rows(any_engine: Any) -> None:
    empty = pa.table({"u": pa.array([], pa.int64()), "i": pa.array([], pa.string())})
    options: dict[str, Any] = {
        "user": "u", "item": "i", "epsilon": 1, "delta": 1e-6, "engine": any_engine.engine,
        "seed": 5, "insecure_test": True,
    }  # fmt: skip
    assert count_users(empty, **options).table.num_rows == 0
    assert count_users(empty, other=True, **options).table["i"].to_pylist() == [None]
    assert count_users(empty, keys=["a"], **options).table["i"].to_pylist() == ["a"]
    assert count_users(empty, keys=[], **options).table.num_rows == 0
