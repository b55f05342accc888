"""Matching: every engine seats the users that the reference seats, and releases the same."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips import Matching, plan
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.privacy.weights import UNIT
from dp_sips.progress import Progress
from dp_sips.sources import open_source

ASKED: dict[str, Any] = {"epsilon": 3.0, "delta": 0.05}
LONG = "a long word, longer than the fifteen bytes of a block: "
SETTINGS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
Seats = tuple[int, int, int]
"""Seats, spare seats and laps."""

seat_plans = st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(1, 3))
row_lists = st.lists(st.tuples(st.integers(-3, 12), st.integers(-8, 12)), min_size=1, max_size=90)


def crowd(rows: int, kind: str, seed: int = 3) -> Any:
    """Return scattered rows with repeats; some items are popular, and some users have many."""
    random = np.random.default_rng(seed)
    users = random.zipf(1.3, rows) % 90
    items = random.zipf(1.4, rows) % 60 - 20
    table: dict[str, Any] = {"u": users}
    if kind == "int":
        table["i"] = items
    elif kind == "text":
        table["i"] = [LONG * (item % 3) + str(item) for item in items]
    else:
        table["i"] = items % 7
        table["j"] = [f"word {item}" for item in items]
    return pa.table(table)


def table(rows: list[tuple[int, int]]) -> Any:
    return pa.table({"u": [user for user, _ in rows], "i": [item for _, item in rows]})


def names(data: Any) -> dict[str, Any]:
    return {"user": "u", "item": [name for name in data.schema.names if name != "u"]}


def seated(
    rounds: Any, data: Any, seats: Seats, most: int = 100, *, seed: int = 1, **bounds: Any
) -> dict[bytes, int]:
    """Return how many users are seated at each item, by its block."""
    made = Bounds(most, once=True, **bounds)
    found = rounds.seated(data, seats, made, seed, **names(data))
    assert all(weight % UNIT == 0 for weight in found.values())
    return {block: weight // UNIT for block, weight in found.items()}


@pytest.mark.parametrize("kind", ["int", "text", "two columns"])
@pytest.mark.parametrize("seats", [(1, 0, 1), (2, 1, 2), (8, 2, 3), (1000, 10, 3)])
def test_kinds_of_items(engine: Any, reference: Any, kind: str, seats: Seats) -> None:
    data = crowd(900, kind)
    assert seated(engine, data, seats) == seated(reference, data, seats)


@pytest.mark.parametrize("most", [1, 3, 8])
def test_users_with_more_items_than_count(engine: Any, reference: Any, most: int) -> None:
    data = crowd(900, "int")
    assert seated(engine, data, (2, 1, 2), most) == seated(reference, data, (2, 1, 2), most)


@pytest.mark.parametrize("kind", ["int", "text", "two columns"])
def test_a_public_histogram(engine: Any, reference: Any, kind: str) -> None:
    data = crowd(900, kind)
    rows = list(zip(*(data[name].to_pylist() for name in names(data)["item"]), strict=True))
    several = kind == "two columns"
    counts = {row if several else row[0]: n % 5 for n, row in enumerate(sorted(set(rows))[3:])}
    found = seated(engine, data, (2, 1, 2), public_counts=counts)
    assert found == seated(reference, data, (2, 1, 2), public_counts=counts)
    assert found != seated(engine, data, (2, 1, 2))


@pytest.mark.parametrize("kind", ["int", "text", "two columns"])
def test_releases(engine: Any, reference: Any, kind: str) -> None:
    data = crowd(900, kind)
    options: dict[str, Any] = {"mechanism": "matching", "rho": None, **ASKED, **names(data)}
    expected = reference.release(data, **options).items
    assert engine.release(data, **options).items.equals(expected)
    assert len(expected)


def test_words_that_tie(engine: Any, reference: Any) -> None:
    """Lists of 60,000 items of five digits: some share all bits of a word, and blocks decide."""
    items = range(20_000, 80_000)
    rows = [(user, item) for user in range(2) for item in items] + [(2, 25_000), (2, 26_000)]
    data = table(rows)
    for seats in ((1, 0, 1), (2, 0, 1)):
        assert seated(engine, data, seats, 2**20) == seated(reference, data, seats, 2**20)


def a_third(blocks: Any, weights: Any) -> Any:
    return (weights > 0) & (blocks[:, 0] % 3 == 0)


def two_votes(_: Any, weights: Any) -> Any:
    return weights >= 2 * UNIT


def test_removed_items_are_on_no_list(engine: Any, reference: Any) -> None:
    def rest(rounds: Any) -> Any:
        data = crowd(900, "int")
        source = open_source(data, nulls="error", **names(data))
        loaded = rounds.engine.load(source, Bounds(20), Key.for_tests(1), Progress(show=False))
        loaded.remove(loaded.decide(loaded.weigh(20), a_third))
        loaded.remove(loaded.decide(loaded.settle(2, 1, 2, 20), two_votes))
        found = sorted(loaded.released()["i"].to_pylist())
        loaded.close()
        return found

    assert rest(engine) == rest(reference)


def test_votes_are_counted_again_where_sets_or_seats_differ(engine: Any, reference: Any) -> None:
    """A look and a round may ask for the same votes: with other weights, seats or sets between."""

    def told(rounds: Any) -> Any:
        data = crowd(900, "int")
        source = open_source(data, nulls="error", **names(data))
        key, shown = Key.for_tests(1), Progress(show=False)
        loaded = rounds.engine.load(source, Bounds(20, once=True), key, shown)
        sums: list[int] = []
        for seats in (2, 2, 3, 2):
            sums.append(loaded.measure_items(loaded.settle(seats, 1, 2, 20), squares))
            sums.append(loaded.measure_items(loaded.weigh(7), squares))
        loaded.remove(loaded.decide(loaded.settle(2, 1, 2, 20), two_votes))
        sums.append(loaded.measure_items(loaded.settle(2, 1, 2, 20), squares))
        loaded.remove(loaded.decide_on_evidence(loaded.weigh_by_claim(12), drop_most))
        sums.append(loaded.measure_items(loaded.settle(2, 1, 2, 20), squares))
        loaded.close()
        return sums

    found = told(engine)
    assert found == told(reference)
    assert found[0] == found[2] == found[6] != found[4]
    assert len({found[0], *found[-2:]}) == 3


def squares(weights: Any) -> Any:
    return (weights >> np.uint64(20)).astype(np.int64) ** 2


def drop_most(blocks: Any, weights: Any, evidence: Any) -> Any:
    claims = np.where(blocks[:, 0] % 3 == 0, np.uint8(16), np.uint8(0)).astype(np.uint8)
    return evidence, np.zeros(len(weights), dtype=np.bool_), claims


@SETTINGS
@given(rows=row_lists, seats=seat_plans, most=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_any_rows(
    engine: Any,
    reference: Any,
    *,
    rows: list[tuple[int, int]],
    seats: Seats,
    most: int,
    seed: int,
) -> None:
    data = table(rows)
    expected = seated(reference, data, seats, most, seed=seed)
    assert seated(engine, data, seats, most, seed=seed) == expected
    again = table([*rows[::-1], *rows])
    assert seated(engine, again, seats, most, seed=seed) == expected


@SETTINGS
@given(rows=row_lists, seats=seat_plans, most=st.integers(1, 9), data=st.data())
def test_any_user_removed(
    any_engine: Any, *, rows: list[tuple[int, int]], seats: Seats, most: int, data: st.DataObject
) -> None:
    """The theorem, in integers: an additional user adds 1 to one item, or nothing."""
    gone = data.draw(st.sampled_from(sorted({user for user, _ in rows})))
    rest = [row for row in rows if row[0] != gone] or [(99, 99)]
    whole = rows if rest[0][0] != 99 else [*rows, (99, 99)]
    after, before = (seated(any_engine, table(r), seats, most, seed=2) for r in (rest, whole))
    steps = [before.get(block, 0) - after.get(block, 0) for block in before | after]
    assert min(steps) >= 0
    assert sum(steps) <= 1


def test_everybody_votes_where_seats_suffice(any_engine: Any) -> None:
    rows = [(user, item) for user in range(40) for item in range(10)]
    assert sorted(seated(any_engine, table(rows), (3, 1, 3)).values()) == [4] * 10
    assert sum(seated(any_engine, table(rows), (3, 0, 3)).values()) == 30
    assert sum(seated(any_engine, table(rows), (50, 0, 1)).values()) == 40


def test_an_item_that_everybody_holds_is_full(any_engine: Any) -> None:
    """Nobody is turned away from the other items, and those before it on lists would win all votes.

    Of 1,800 users with 3 items each, 1,800 / (2 · 3²) = 100 ask it first.
    """
    rows = [(user, item) for user in range(1800) for item in (9999, 2 * user, 2 * user + 1)]
    for seed in range(3):
        assert max(seated(any_engine, table(rows), (14, 9, 3), seed=seed).values()) == 23


def test_short_lists_go_first(any_engine: Any) -> None:
    """Who has only the item 1 keeps its seats; who has 23, too, goes on to it."""
    rows = [(user, 1) for user in range(6)] + [(user, 23) for user in range(3)]
    assert sorted(seated(any_engine, table(rows), (3, 0, 1)).values()) == [3, 3]


def test_the_plan_runs_as_it_says(reference: Any) -> None:
    """Seats of the plan are the engine's: 60 users of one item weigh all that it can hold."""
    step = plan(Matching(), **ASKED).rounds[0]
    seats = (step.seats, step.spare, step.laps)
    found = seated(reference, table([(user, 1) for user in range(60)]), seats)
    assert list(found.values()) == [step.seats + step.spare]
