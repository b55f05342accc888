"""Users that take turns: the memory engine pays what the reference pays, and releases the same."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips import Dpsu, Gw, MemoryEngine, PolicyLaplace, plan, select_partitions
from dp_sips.engines.reference import ReferenceEngine
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source
from dp_sips.sources.batches import ROWS

ENGINES = {f"memory-{n}": MemoryEngine(threads=n) for n in (1, 2, 8)}
# Little noise and many items that fill up.
ASKED: dict[str, Any] = {"epsilon": 3.0, "delta": 0.05}
MECHANISMS = [Dpsu(), Dpsu(0.0), PolicyLaplace(), Gw(), Gw(0), Gw(ties="rows"), "single"]
LONG = "a long word, longer than the fifteen bytes of a block: "


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    return ENGINES[request.param]


def crowd(rows: int, kind: str, seed: int = 3) -> Any:
    """Return scattered rows with repeats; some items are popular."""
    random = np.random.default_rng(seed)
    users = random.integers(0, 60, rows)
    items = random.zipf(1.4, rows) % 40
    table = {"u": pa.array(users)}
    if kind == "int":
        table["i"] = pa.array(items)
    elif kind == "text":
        table["i"] = pa.array([LONG * (item % 3) + str(item) for item in items])
    else:
        table["i"] = pa.array(items % 7)
        table["j"] = pa.array([f"word {item}" for item in items])
    return pa.table(table)


def streamed(data: Any, rows: int) -> Any:
    return pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=rows))


def names(data: Any) -> dict[str, Any]:
    return {"user": "u", "item": [name for name in data.schema.names if name != "u"]}


def paid(engine: Any, data: Any, made: Any, seed: int, **options: Any) -> dict[bytes, int]:
    """Return the weight of each item after all users have paid."""
    source = open_source(data, **({"nulls": "error"} | options))
    key = Key.for_tests(seed)
    loaded = engine.load(source, made.bounds, key, Progress(show=False))
    found: dict[bytes, int] = {}

    def note(blocks: Any, weights: Any) -> Any:
        held = np.flatnonzero(weights)
        found.update((blocks[row].tobytes(), int(weights[row])) for row in held)
        return weights > 0

    pay = loaded.pay_favourites if made.mechanism.name == "gw" else loaded.pay_shares
    loaded.decide(pay(made.rounds[0].policy, made.max_items), note)
    loaded.close()
    return found


def assert_agree(engine: Any, data: Any, mechanism: Any, most: int, rows: int, *, seed: int) -> int:
    """Compare weights and release; return how many items were released."""
    most = 1 if mechanism == "single" else most
    made = plan(mechanism, max_items=most, **ASKED)
    reference = ReferenceEngine()
    if mechanism != "single":
        expected = paid(reference, data, made, seed, **names(data))
        assert paid(engine, streamed(data, rows), made, seed, **names(data)) == expected
    options: dict[str, Any] = {
        "mechanism": mechanism, "max_items": most, "seed": seed, "insecure_test": True, **ASKED,
        **names(data),
    }  # fmt: skip
    released = select_partitions(streamed(data, rows), engine=engine, **options).items
    assert released.equals(select_partitions(data, engine=reference, **options).items)
    return len(released)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("kind", ["int", "text", "two columns"])
def test_kinds_of_items(engine: Any, mechanism: Any, kind: str) -> None:
    assert assert_agree(engine, crowd(900, kind), mechanism, 100, 97, seed=1) > 0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("most", [1, 3, 8])
def test_users_with_more_items_than_count(engine: Any, mechanism: Any, most: int) -> None:
    assert_agree(engine, crowd(1500, "int"), mechanism, most, 64, seed=2)


@pytest.mark.parametrize("kind", ["int", "text", "two columns"])
def test_a_public_histogram(engine: Any, kind: str) -> None:
    data = crowd(900, kind)
    rows = list(zip(*(data[name].to_pylist() for name in names(data)["item"]), strict=True))
    several = kind == "two columns"
    histogram = {row if several else row[0]: n % 5 for n, row in enumerate(sorted(set(rows))[3:])}
    assert_agree(engine, data, Gw(histogram=histogram), 100, 50, seed=4)
    assert_agree(engine, data, Gw(histogram=histogram), 4, 50, seed=4)


def test_users_whose_rows_are_together(engine: Any) -> None:
    data = crowd(900, "int").sort_by("u")
    for mechanism in MECHANISMS:
        assert_agree(engine, data, mechanism, 100, 31, seed=5)


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    rows=st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 12)), min_size=1, max_size=90),
    mechanism=st.sampled_from(MECHANISMS),
    most=st.integers(1, 9),
    cut=st.integers(1, 30),
    seed=st.integers(0, 2**32),
)
def test_any_rows(
    engine: Any, *, rows: list[Any], mechanism: Any, most: int, cut: int, seed: int
) -> None:
    data = pa.table({"u": [u for u, _ in rows], "i": [i for _, i in rows]})
    assert_agree(engine, data, mechanism, most, cut, seed=seed)


def test_repeats_make_a_favourite(engine: Any) -> None:
    """All have a and b; who has b more often backs it."""
    rows = [(user, item) for user in range(200) for item in "aab" + "bb" * (user % 2)]
    data = pa.table({"u": [u for u, _ in rows], "i": [i for _, i in rows]})
    made = plan(Gw(buffer=1000.0), **ASKED)
    for runs in (engine, ReferenceEngine()):
        assert sorted(paid(runs, data, made, 1, user="u", item="i").values()) == [100, 100]


def test_a_histogram_of_other_items_is_refused(engine: Any) -> None:
    from dp_sips import UsageError

    data = crowd(50, "int")
    with pytest.raises(UsageError, match=r"items of the histogram must be like .*\(i: int64\)"):
        select_partitions(
            data, user="u", item="i", mechanism=Gw(histogram={"x": 1}), engine=engine, **ASKED
        )


@pytest.mark.parametrize("ties", ["items", "rows"])
def test_a_long_list_moves_nobodys_vote(engine: Any, ties: str) -> None:
    """Lists are taken a few at a time, the fewer the longer some user's is: that must not show."""
    lists: list[Any] = [None, [7]] * 6
    users = [n // 2 for n in range(len(lists))]
    long = [np.ones(ROWS * (len(lists) + 1), dtype=np.int64)]
    kind = pa.list_(pa.int64())
    few = pa.table({"u": users, "i": pa.array(lists, kind)})
    more = pa.table({"u": [*users, 999], "i": pa.array([*lists, *long], kind)})
    made = plan(Gw(ties=ties, buffer=1000.0), **ASKED)
    without, with_it = (
        paid(engine, data, made, 1, user="u", item="i", nulls="group") for data in (few, more)
    )
    assert len(with_it) - len(without) <= 1
    assert {item: with_it[item] for item in without} == without


def test_more_items_count_than_fit_into_a_word(engine: Any) -> None:
    assert_agree(engine, crowd(200, "int"), Gw(), 2**64, 50, seed=6)
