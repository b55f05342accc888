"""Every engine has the reference's weights to the bit, and its release for the same test key."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips.privacy.blocks import integer_blocks
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.privacy.weights import weight
from dp_sips.progress import Progress
from dp_sips.sources import open_source

UTC = dt.UTC
# hypothesis runs many examples against one engine, which keeps nothing between them.
SETTINGS = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def table(rows: list[tuple[Any, ...]], *kinds: Any, user: Any = None) -> Any:
    """Return the columns u, i0, i1 …, of these item types."""
    users, *items = zip(*rows, strict=True)
    columns = [pa.array(users, user)] + [
        pa.array(values, kind.value_type).dictionary_encode().cast(kind)
        if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)
        else pa.array(values, kind.value_type).dictionary_encode()
        if pa.types.is_dictionary(kind)
        else pa.array(values, kind)
        for values, kind in zip(items, kinds, strict=True)
    ]
    return pa.table(columns, names=["u", *(f"i{n}" for n in range(len(items)))])


def streamed(data: Any, rows: int) -> Any:
    """Return a reader of tiny batches: runs of a user go on over their borders."""
    return pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=rows))


def crowd(values: list[Any], users: int = 40, seed: int = 5) -> list[tuple[Any, ...]]:
    """Give each user some of the values, the first ones to most users, in scattered rows."""
    random = np.random.default_rng(seed)
    popular = np.linspace(0.95, 0.05, len(values))
    held = [
        (u, v) for u in range(users) for v in np.flatnonzero(random.random(len(values)) < popular)
    ]
    held += [held[i] for i in random.integers(0, len(held), len(held) // 3)]
    order = random.permutation(len(held))
    return [(held[i][0], *_tuple(values[held[i][1]])) for i in order]


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


LONG = "a long word, longer than the fifteen bytes that a block has room for"
DAY = dt.datetime(2024, 2, 29, 12, 30, 1, 5)  # noqa: DTZ001
KINDS: dict[str, tuple[list[Any], tuple[Any, ...]]] = {
    "int64": (list(range(30)), (pa.int64(),)),
    "negative": ([*range(-20, 10), -(2**63), 2**63 - 1], (pa.int64(),)),
    "int8": (list(range(-128, 128, 9)), (pa.int8(),)),
    "uint64": ([0, 1, 2**63 - 1, 2**63, 2**64 - 1, *range(9, 20)], (pa.uint64(),)),
    "uint8": ([0, 1, 127, 128, 255, 7], (pa.uint8(),)),
    "bool": ([True, False], (pa.bool_(),)),
    "date32": (
        [dt.date(1970, 1, 1) + dt.timedelta(n * 999) for n in range(-9, 20)],
        (pa.date32(),),
    ),
    "date64": ([dt.date(1960, 1, n) for n in range(1, 20)], (pa.date64(),)),
    "timestamp": ([DAY + dt.timedelta(seconds=n) for n in range(20)], (pa.timestamp("us"),)),
    "timestamp tz": (
        [dt.datetime(1969 + n, 5, 1, tzinfo=UTC) for n in range(20)],
        (pa.timestamp("ms", "Europe/Berlin"),),
    ),
    "time": ([dt.time(n, 1) for n in range(20)], (pa.time32("s"),)),
    "time64": ([dt.time(n, 1, 5, 9) for n in range(20)], (pa.time64("us"),)),
    "duration": ([dt.timedelta(n) for n in range(-5, 20)], (pa.duration("s"),)),
    "decimal": ([Decimal(n) / 4 for n in range(-9, 20)], (pa.decimal128(12, 2),)),
    "decimal256": ([Decimal(10) ** n for n in range(1, 40, 3)], (pa.decimal256(60, 2),)),
    "decimal64": ([Decimal(n) / 4 for n in range(-9, 20)], (pa.decimal64(12, 2),)),
    "decimal32": ([Decimal(n) / 4 for n in range(-9, 20)], (pa.decimal32(7, 2),)),
    "text": (["", "a", "ab", "A", "a ", "x" * 15, "x" * 16, LONG, LONG + "!"], (pa.string(),)),
    "nul bytes": (["", "\0", "\0\0", "a", "a\0", "x" * 15, "x" * 14 + "\0"], (pa.string(),)),
    "unicode": (["ä", "a\u0308", "日本語の長い言葉です", "🙂", "ß", "ss"], (pa.large_string(),)),
    "long text": ([f"{n} {LONG * (n % 5 + 1)}" for n in range(25)], (pa.string(),)),
    "string view": (["", "a", LONG, "ä"], (pa.string_view(),)),
    "binary": ([b"", b"\0", b"\xff" * 9, b"\xff" * 40, b"a"], (pa.binary(),)),
    "large binary": ([bytes([n]) * n for n in range(1, 33)], (pa.large_binary(),)),
    "fixed binary": ([bytes([n]) * 16 for n in range(12)], (pa.binary(16),)),
    "dictionary": (["b", "a", LONG, "", "ä"], (pa.dictionary(pa.int32(), pa.string()),)),
    "int dictionary": ([5, -1, 3, 2**40], (pa.dictionary(pa.int32(), pa.int64()),)),
    "two columns": (
        [(n % 4, "abc"[n % 3]) for n in range(12)],
        (pa.int64(), pa.string()),
    ),
    "two texts": (
        [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), (LONG, LONG)],
        (pa.string(), pa.string()),
    ),
    "three columns": (
        [(n % 2 == 0, LONG[: n % 20], dt.date(2024, 1, 1 + n % 3)) for n in range(24)],
        (pa.bool_(), pa.string(), pa.date32()),
    ),
    "swapped integers": (
        [(1, 2, 3), (3, 2, 1), (2, 1, 3), (1, 2, 4)],
        (pa.int8(), pa.int64(), pa.int32()),
    ),
}
NULLS: dict[str, tuple[list[Any], tuple[Any, ...]]] = {
    "int": ([None, 0, 1, -1], (pa.int64(),)),
    "text": ([None, "", "None", LONG], (pa.string(),)),
    "bool": ([None, True, False], (pa.bool_(),)),
    "timestamp": ([None, DAY], (pa.timestamp("us", "UTC"),)),
    "decimal": ([None, Decimal(0), Decimal(1)], (pa.decimal128(9, 1),)),
    "dictionary": ([None, "a", "b"], (pa.dictionary(pa.int32(), pa.string()),)),
    "two columns": ([(None, None), (None, "a"), (0, None), (0, "a")], (pa.int64(), pa.string())),
    "all null": ([None], (pa.string(),)),
}


def names(data: Any) -> dict[str, Any]:
    return {"user": "u", "item": [name for name in data.schema.names if name != "u"]}


def assert_agree(one: Any, other: Any, data: Any, *, rows: int = 29, **options: Any) -> Any:
    """Compare the weights of two rounds and the whole release; return the release."""
    columns = names(data) | {key: options[key] for key in ("nulls",) if key in options}
    most = options.get("max_items", 3)

    def removed(block: bytes) -> bool:
        return block[0] % 2 == 0

    expected = other.weights(data, most, removed, seed=1, **columns)
    assert one.weights(streamed(data, rows), most, removed, seed=1, **columns) == expected
    assert expected[0]
    options = {"max_items": most, "mechanism": "sips", **columns, **options}
    found = one.release(streamed(data, rows), **options).items
    expected_items = other.release(data, **options).items
    assert found.equals(expected_items)
    assert found.schema == expected_items.schema
    found.validate(full=True)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_items(kind: str, engine: Any, reference: Any) -> None:
    values, types = KINDS[kind]
    data = table(crowd(values), *types)
    released = assert_agree(engine, reference, data)
    assert len(released) > 0
    own = [data.schema.field(name).type for name in names(data)["item"]]
    assert [field.type for field in released.schema] == own
    rows = set(zip(*(column.to_pylist() for column in released.columns), strict=True))
    assert rows <= set(zip(*(data[name].to_pylist() for name in names(data)["item"]), strict=True))


@pytest.mark.parametrize("kind", NULLS)
def test_null_items_as_a_group(kind: str, engine: Any, reference: Any) -> None:
    values, types = NULLS[kind]
    data = table(crowd(values), *types)
    assert len(assert_agree(engine, reference, data, nulls="group"))


@pytest.mark.parametrize("nulls", ["group", "drop"])
def test_null_integers_where_rows_are_together(nulls: str, engine: Any, reference: Any) -> None:
    """A null is not 0, and repeats of both are dropped before they are numbered."""
    items = [None, 0, 0, 1, None, 0, 2, 1]
    users = np.repeat(np.arange(60), len(items))
    data = pa.table({"u": users, "i": pa.array(items * 60, pa.int64())})
    released = assert_agree(engine, reference, data, nulls=nulls)
    expected = {0, 1, 2, None} if nulls == "group" else {0, 1, 2}
    assert set(released["i"].to_pylist()) == expected


def test_a_dictionary_whose_indices_are_used_up(engine: Any, reference: Any) -> None:
    """A null needs a number of its own, which the indices' type has no room for."""
    indices = pa.array([*range(128)] * 20 + [None] * 50, pa.int8())
    words = pa.DictionaryArray.from_arrays(indices, [f"w{n}" for n in range(128)])
    data = pa.table({"u": range(len(indices)), "i": words})
    assert len(assert_agree(engine, reference, data, nulls="group"))


@pytest.mark.parametrize("kind", KINDS)
def test_all_singletons_and_one_that_all_hold(kind: str, engine: Any, reference: Any) -> None:
    values, types = KINDS[kind]
    rows = [(n, *_tuple(value)) for n, value in enumerate(values)]
    rows += [(n, *_tuple(values[0])) for n in range(60)]
    released = assert_agree(engine, reference, table(rows, *types), rho=50, delta=1e-12)
    assert len(released) == 1


@pytest.mark.parametrize(
    "kind",
    ["int64", "negative", "uint64", "text", "long text", "binary", "decimal", "date32", "bool"],
)
def test_kinds_of_users(kind: str, engine: Any, reference: Any) -> None:
    values, (user,) = KINDS[kind]
    rows = [(values[u % len(values)], i) for u, i in crowd(list(range(20)))]
    assert_agree(engine, reference, table(rows, pa.int64(), user=user))


def test_users_and_items_of_the_same_values(engine: Any, reference: Any) -> None:
    assert_agree(engine, reference, table([(n % 9, n % 7) for n in range(200)], pa.int64()))


def test_categories_that_no_row_has(any_engine: Any) -> None:
    words = pa.array(["a", "unused", "b", "a"])
    indices: Any = pa.array([0, 2, 3] * 40, pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, words)
    data = pa.table({"u": list(range(120)), "i": column})
    released = any_engine.release(data, user="u", item="i").items["i"]
    assert released.to_pylist() == ["a", "b"]
    assert released.type == column.type
    assert released.combine_chunks().dictionary.to_pylist() == ["a", "b"]


def test_dictionaries_show_no_order_of_appearance(any_engine: Any) -> None:
    for order in (["x", "y", "z"], ["z", "x", "y"]):
        rows = [(user, word) for user in range(40) for word in order]
        data = table(rows, pa.dictionary(pa.int32(), pa.string()))
        released = any_engine.release(data, user="u", item="i0").items["i0"].combine_chunks()
        assert released.dictionary.to_pylist() == ["x", "y", "z"]


def test_more_values_than_one_dictionary_has_room_for(engine: Any, reference: Any) -> None:
    def batch(number: int) -> Any:
        words = pa.array([f"{number} {n}" for n in range(100)])
        indices: Any = pa.array(np.tile(np.arange(100, dtype=np.int8), 20))
        column = pa.DictionaryArray.from_arrays(indices, words)
        users = np.repeat(np.arange(20), 100)
        return pa.record_batch([pa.array(users), column], names=["u", "i"])

    batches = [batch(number) for number in range(3)]
    found = []
    for runs in (engine, reference):
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        options: dict[str, Any] = {"user": "u", "item": "i", "rho": 500, "max_items": 300}
        found.append(runs.release(reader, **options).items["i"].to_pylist())
    assert found[0] == found[1]
    assert len(found[0]) == 300


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view])
def test_list_columns(kind: Any, engine: Any, reference: Any) -> None:
    held = crowd([f"word {n}" for n in range(30)])
    lists = [[item for user, item in held if user == u] for u in range(40)]
    data = pa.table({"u": list(range(40)), "i": pa.array(lists, kind(pa.string()))})
    released = assert_agree(engine, reference, data)
    assert released.schema.field(0).type == pa.string()


@pytest.mark.parametrize("words", [False, True])
def test_a_user_with_very_many_items(words: bool, engine: Any, reference: Any) -> None:  # noqa: FBT001
    rows: list[tuple[Any, ...]] = [(7, item) for item in range(5000)]
    rows += [(user, item) for user in range(100, 150) for item in range(30)]
    np.random.default_rng(3).shuffle(rows)
    kind = pa.string() if words else pa.int64()
    data = table([(user, str(item) if words else int(item)) for user, item in rows], kind)
    assert_agree(engine, reference, data, max_items=10, rows=997)


@pytest.mark.parametrize("max_items", [1, 2, 7, 100])
def test_truncation(max_items: int, engine: Any, reference: Any) -> None:
    rows = crowd(list(range(50)), users=80)
    assert_agree(engine, reference, table(rows, pa.int64()), max_items=max_items)


def test_tables_grow(engine: Any, reference: Any) -> None:
    """More values than a new hash table has slots, in batches of all sizes."""
    random = np.random.default_rng(11)
    users = random.integers(0, 9000, 30_000)
    items = random.zipf(1.3, 30_000) % 12_000
    data = pa.table({"u": pa.array(users), "i": pa.array(items)})
    assert_agree(engine, reference, data, max_items=2, rows=4001)
    texts = pa.table(
        {"u": pa.array(users).cast(pa.string()), "i": pa.array(items).cast(pa.string())}
    )
    assert_agree(engine, reference, texts, max_items=2, rows=12_001)


@pytest.mark.parametrize("mechanism", ["sips", "weighted-gaussian"])
def test_mechanisms(mechanism: str, engine: Any, reference: Any) -> None:
    for seed in range(5):
        data = table(crowd(list(range(60)), seed=seed), pa.int64())
        assert_agree(engine, reference, data, mechanism=mechanism, seed=seed)


keys = st.integers(0, 2**32)
users = st.integers(-3, 12)
words = st.text(max_size=20)
ordinary = st.lists(st.tuples(users, st.integers(-5, 25)), min_size=1, max_size=120)


@SETTINGS
@given(rows=ordinary, most=st.integers(1, 6), seed=keys, cut=st.integers(1, 40))
def test_any_integers(
    engine: Any, reference: Any, *, rows: list[Any], most: int, seed: int, cut: int
) -> None:
    assert_agree(
        engine, reference, table(rows, pa.int64()), max_items=most, seed=seed, rows=cut, rho=5.0
    )


@SETTINGS
@given(
    rows=st.lists(st.tuples(words, words, st.none() | st.integers(-2, 2)), min_size=1, max_size=60),
    most=st.integers(1, 4),
    seed=keys,
)
def test_any_texts_and_tuples(
    engine: Any, reference: Any, rows: list[Any], most: int, seed: int
) -> None:
    data = table(rows, pa.string(), pa.int8(), user=pa.string())
    options: dict[str, Any] = {"max_items": most, "seed": seed, "nulls": "group", "rho": 5.0}
    assert_agree(engine, reference, data, **options)


@SETTINGS
@given(rows=ordinary, seed=keys, cut=st.integers(1, 40), shuffle=st.randoms())
def test_order_and_batches_never_matter(
    any_engine: Any, rows: list[Any], seed: int, cut: int, shuffle: Any
) -> None:
    options: dict[str, Any] = {
        "user": "u", "item": "i0", "max_items": 2, "seed": seed, "rho": 5.0
    }  # fmt: skip
    expected = any_engine.release(table(rows, pa.int64()), **options).items
    shuffled = shuffle.sample(rows, len(rows)) + rows[: len(rows) // 2]
    data = streamed(table(shuffled, pa.int64()), cut)
    assert any_engine.release(data, **options).items.equals(expected)


def test_a_generator_of_pairs(engine: Any, reference: Any) -> None:
    def pairs() -> Iterator[tuple[str, list[str]]]:
        for user in range(50):
            yield f"user {user}", [f"word {n}" for n in range(user % 9 + 1)] * 2

    found = engine.release(pairs(), max_items=4).items
    assert found == reference.release(pairs(), max_items=4).items
    assert found


def test_every_key_is_another_release(any_engine: Any) -> None:
    data = table(crowd(list(range(60))), pa.int64())
    releases = {
        tuple(any_engine.release(data, user="u", item="i0", seed=seed).items["i0"].to_pylist())
        for seed in range(20)
    }
    assert len(releases) > 10


def test_measures_are_the_references(any_engine: Any) -> None:
    """Sums over users, by the sizes of their sets, and over items, by their weights."""
    random = np.random.default_rng(8)
    rows = [(int(u), int(i)) for u, i in random.integers(0, (50, 30), (400, 2))]
    source = open_source(table([*rows, (50, 30)], pa.int64()), user="u", item="i0", nulls="error")
    bounds = Bounds(6, once=True, without=integer_blocks(np.array([30], np.uint64)))  # all of 50's
    loaded = any_engine.engine.load(source, bounds, Key.for_tests(1), Progress(show=False))
    held: dict[int, set[int]] = defaultdict(set)
    for user, item in rows:
        held[user].add(item)
    sizes = [min(6, len(items)) for items in held.values()]
    assert loaded.measure_users(np.ones_like) == len(held)
    assert loaded.measure_users(np.square) == sum(size**2 for size in sizes)
    given = sum(min(6, len(items)) * weight(min(6, len(items))) for items in held.values())
    assert loaded.measure_items(loaded.weigh(6), _as_integers) == given
    flat = sum(k * weight(k, 8, Fraction(3, 10)) for k in sizes)
    assert loaded.measure_items(loaded.weigh(6, 8, Fraction(3, 10)), _as_integers) == flat
    assert loaded.measure_items(loaded.weigh(6), np.ones_like) <= 30
    loaded.close()


def _as_integers(weights: Any) -> Any:
    return weights.astype(np.int64)


@pytest.mark.parametrize("counted", [2, 5])
def test_fewer_items_than_were_loaded_count_in_bounding_order(
    any_engine: Any, reference: Any, counted: int
) -> None:
    """Whatever the order of rows: a round may count fewer items than the bound on sets."""
    random = np.random.default_rng(9)
    rows = [(int(u), int(i)) for u, i in random.integers(0, (20, 40), (300, 2))]
    how: dict[str, Any] = {"bounds": Bounds(30, once=True), "user": "u", "item": "i0"}
    expected = reference.counted(table(rows, pa.int64()), max_items=counted, **how)
    for order in (rows, rows[::-1], sorted(rows)):
        found = any_engine.counted(table(order, pa.int64()), max_items=counted, **how)
        assert found == expected


@pytest.mark.parametrize("mechanism", ["matching", "cumulative", "auto", "sips"])
def test_no_rows_are_an_empty_release(any_engine: Any, mechanism: str) -> None:
    empty = table([(1, 1)], pa.int64()).slice(0, 0)
    for seed in range(3):
        release = any_engine.release(
            empty, user="u", item="i0", mechanism=mechanism, rho=None, epsilon=1.0, seed=seed
        )
        assert len(release.items) == 0
