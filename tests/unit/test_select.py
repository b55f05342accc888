"""select_partitions: the loop, its keys, and its errors."""

from typing import Any

import pyarrow as pa
import pytest

from dp_sips import InputError, MemoryEngine, Selection, UsageError, select_partitions
from dp_sips.engines import find_engine
from dp_sips.engines.reference import ReferenceEngine

DATA = {user: ["all", f"only {user}"] for user in range(60)}
BUDGET: dict[str, Any] = {"rho": 1.0, "delta": 1e-6}


def test_a_popular_item_is_released_and_rare_ones_are_not() -> None:
    assert select_partitions(DATA, **BUDGET).items == ["all"]


def test_an_empty_release() -> None:
    assert select_partitions({1: ["a"], 2: ["b"]}, **BUDGET).items == []


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_an_empty_release_has_its_types(engine: str) -> None:
    for kind in (pa.int8(), pa.string(), pa.dictionary(pa.int8(), pa.string())):
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        values = pa.array([1] if plain == pa.int8() else ["a"], plain)
        column = values.dictionary_encode().cast(kind) if plain != kind else values
        data = pa.table({"u": [1], "i": column})
        items = select_partitions(data, user="u", item="i", engine=engine, **BUDGET).items
        assert items.schema == pa.schema([("i", kind)])
        assert items.num_rows == 0


class TestKeys:
    def test_a_release_without_a_seed_is_private_and_never_the_same(self) -> None:
        close = {user: [f"item {n}" for n in range(80)] for user in range(30)}
        options: dict[str, Any] = {"rho": 1.0, "delta": 1e-3, "max_items": 30}
        releases = [select_partitions(close, **options) for _ in range(5)]
        assert all(release.private for release in releases)
        assert len({tuple(release.items) for release in releases}) > 1

    def test_a_seed_repeats_and_marks(self) -> None:
        close = {user: [f"item {n}" for n in range(80)] for user in range(30)}
        options: dict[str, Any] = {"rho": 1.0, "delta": 1e-3, "insecure_test": True}
        one, two, other = (select_partitions(close, seed=s, **options) for s in (4, 4, 5))
        assert one.items == two.items != other.items
        assert not one.private

    def test_a_seed_needs_the_flag(self) -> None:
        with pytest.raises(UsageError, match=r"a seed \(4\) makes the release repeatable"):
            select_partitions(DATA, seed=4, **BUDGET)

    def test_the_flag_needs_a_seed(self) -> None:
        with pytest.raises(UsageError, match="only with a seed"):
            select_partitions(DATA, insecure_test=True, **BUDGET)

    @pytest.mark.parametrize("seed", [1.5, "4", True])
    def test_bad_seeds(self, seed: Any) -> None:
        with pytest.raises(UsageError, match=f"seed must be a whole number .*, got {seed!r}"):
            select_partitions(DATA, seed=seed, insecure_test=True, **BUDGET)


class TestEngines:
    def test_by_name_and_by_value(self) -> None:
        assert find_engine("auto") == find_engine("memory") == MemoryEngine()
        assert find_engine("reference") == ReferenceEngine()
        engine = MemoryEngine(threads=2)
        assert find_engine(engine) is engine
        for name in ("auto", "memory", "reference", engine):
            assert select_partitions(DATA, engine=name, **BUDGET).items == ["all"]

    def test_bad_engines(self) -> None:
        bad: Any
        with pytest.raises(UsageError, match="unknown engine 'memmory': did you mean 'memory'"):
            find_engine("memmory")
        for bad in (5, MemoryEngine):
            with pytest.raises(UsageError, match=f"must be a name or an engine, got {bad!r}"):
                find_engine(bad)


class TestNothingIsReadBeforeParametersAreRight:
    class Untouchable:
        def __iter__(self) -> Any:
            raise AssertionError("read")

        def __arrow_c_stream__(self, _: Any = None) -> Any:
            raise AssertionError("read")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"delta": 2},
            {"rho": -1},
            {"max_items": 0},
            {"mechanism": "x"},
            {"engine": "x"},
            {"seed": 1},
            {"nulls": "x"},
            {"epsilon": 1},
            {"backend": "x"},
        ],
    )
    def test_error(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            select_partitions(self.Untouchable(), user="u", item="i", **BUDGET | wrong)


class TestNulls:
    TABLE = pa.table({"u": [*range(50)], "i": pa.array([None] * 40 + ["a"] * 10)})

    def test_rules(self) -> None:
        with pytest.raises(InputError, match="null"):
            select_partitions(self.TABLE, user="u", item="i", **BUDGET)
        dropped = select_partitions(self.TABLE, user="u", item="i", nulls="drop", **BUDGET)
        assert dropped.items["i"].to_pylist() in ([], ["a"])
        grouped = select_partitions(self.TABLE, user="u", item="i", nulls="group", **BUDGET)
        assert None in grouped.items["i"].to_pylist()


def test_found_items_leave_the_sets() -> None:
    """In one round every user spends most of its weight on what all have; in three it does not."""
    data = {u: [f"all {n}" for n in range(20)] + [f"few {u % 16}"] for u in range(240)}
    options: dict[str, Any] = {"rho": 1.0, "delta": 1e-6}
    one = select_partitions(data, mechanism="weighted-gaussian", **options)
    more = select_partitions(data, mechanism="sips", **options)
    assert isinstance(one, Selection)
    assert len(more.items) > len(one.items)
    assert sum(item.startswith("few") for item in more.items) == 16
