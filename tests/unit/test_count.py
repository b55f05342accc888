"""count_users: items with noisy counts in every kind of table, and one certificate for both."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import dp_sips
from dp_sips import Counts, InputError, UsageError, count_users, select_partitions

USERS = 400
OPTIONS: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-9, "max_items": 2, "mechanism": "sips"}
NAMES: dict[str, Any] = {"user": "who", "item": "what"}
ROWS = [
    (who, what) for who in range(USERS) for what in ("jam", "tea", f"own {who}")
    if what != "tea" or who % 2
] + [(USERS + n, f"odd {n}") for n in range(100)]  # fmt: skip
TABLE = pa.table({"who": [who for who, _ in ROWS], "what": [what for _, what in ROWS]})
EXACT = {"jam": USERS, "tea": USERS // 2, None: 100}


def rows_of(table: Any) -> list[tuple[Any, int]]:
    """Return items and counts of an Arrow table."""
    return list(zip(table["what"].to_pylist(), table["users"].to_pylist(), strict=True))


def arrow(table: Any) -> pa.Table:
    """Return any library's table as an Arrow table."""
    if isinstance(table, pd.DataFrame):
        return pa.Table.from_pandas(table, preserve_index=False)
    if isinstance(table, (pl.DataFrame, pl.LazyFrame)):
        return table.lazy().collect().to_arrow()
    if isinstance(table, dict):
        return pa.table(table)
    return table if isinstance(table, pa.Table) else table.to_arrow_table()


MAKE: dict[str, Callable[[], Any]] = {
    "arrow": lambda: TABLE,
    "pandas": TABLE.to_pandas,
    "pandas objects": lambda: TABLE.to_pandas().astype({"what": object}),
    "pandas categories": lambda: TABLE.to_pandas().astype({"what": "category"}),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars lazy": lambda: pl.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    "duckdb": lambda: duckdb.from_arrow(TABLE),
    "columns": TABLE.to_pydict,
    "stream": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
}


class TestTables:
    @pytest.mark.parametrize("kind", MAKE)
    @pytest.mark.parametrize("keys", [None, ["tea", "jam", "tea"]])
    def test_the_kind_that_goes_in_comes_out(self, kind: str, keys: list[str] | None) -> None:
        options = OPTIONS if keys is None else OPTIONS | {"mechanism": "auto"}
        counts = count_users(MAKE[kind](), **NAMES, **options, keys=keys, other=True)
        selection = select_partitions(MAKE[kind](), **NAMES, **OPTIONS)
        assert type(counts.table) is type(selection.items)
        assert type(counts.selection.items) is type(selection.items)
        found = arrow(counts.table)
        assert found.column_names == ["what", "users"]
        assert found.schema.field("users").type == pa.int64()
        assert [item for item, _ in rows_of(found)] == ["jam", "tea", None]
        for item, users in rows_of(found):
            assert abs(users - EXACT[item]) < 9 * counts.standard_deviation

    def test_pairs_come_out_as_pairs(self) -> None:
        counts = count_users(ROWS, **OPTIONS, other=True)
        assert [item for item, _ in counts.table] == ["jam", "tea", None]
        assert all(type(users) is int for _, users in counts.table)
        assert counts.selection.items == ["jam", "tea"]

    @pytest.mark.parametrize(
        ("dtype", "with_null"),
        [("int16", "Int16"), ("uint32", "UInt32"), ("bool", "boolean"), ("Int64", "Int64")],
    )
    def test_pandas_dtypes_without_nulls_get_one(self, dtype: str, with_null: str) -> None:
        frame = pd.DataFrame({"who": range(300), "what": pd.Series([1] * 300, dtype=dtype)})
        without, within = (
            count_users(frame, **NAMES, **OPTIONS, other=other).table for other in (False, True)
        )
        assert str(without["what"].dtype) == dtype
        assert str(within["what"].dtype) == with_null
        assert within["what"].isna().tolist() == [False, True]
        assert str(within["users"].dtype) == "int64"

    def test_files_come_out_as_arrow(self, tmp_path: Path) -> None:
        pyarrow.csv.write_csv(TABLE, tmp_path / "rows.csv")
        table = count_users(tmp_path / "rows.csv", **NAMES, **OPTIONS).table
        assert [item for item, _ in rows_of(table)] == ["jam", "tea"]

    def test_categories_that_are_not_released_stay_hidden(self) -> None:
        frame = TABLE.to_pandas().astype({"what": "category"})
        table = count_users(frame, **NAMES, **OPTIONS, other=True).table
        assert table["what"].cat.categories.tolist() == ["jam", "tea"]


class TestKeys:
    def test_an_earlier_selection(self) -> None:
        selection = select_partitions(TABLE, **NAMES, **OPTIONS)
        counts = count_users(TABLE, **NAMES, epsilon=4, delta=1e-4, keys=selection)
        assert [item for item, _ in rows_of(counts.table)] == ["jam", "tea"]

    def test_earlier_counts(self) -> None:
        earlier = count_users(TABLE, **NAMES, **OPTIONS, other=True)
        counts = count_users(TABLE, **NAMES, epsilon=4, delta=1e-4, keys=earlier)
        assert [item for item, _ in rows_of(counts.table)] == ["jam", "tea"]

    def test_keys_that_nobody_holds_are_counted(self) -> None:
        counts = count_users(TABLE, **NAMES, epsilon=4, delta=1e-4, keys=["none"])
        ((item, users),) = rows_of(counts.table)
        assert item == "none"
        assert abs(users) < 9 * counts.standard_deviation

    def test_nothing_is_selected_and_no_budget_goes_to_it(self) -> None:
        counts = count_users(TABLE, **NAMES, epsilon=1, delta=1e-6, keys=["jam"])
        after = count_users(TABLE, **NAMES, epsilon=1, delta=1e-6, mechanism="sips")
        assert counts.standard_deviation < after.standard_deviation
        assert counts.certificate["mechanism"] == {"name": "given-keys", "parameters": {}}
        assert counts.certificate["rounds"] == []

    @pytest.mark.parametrize(
        "option",
        [{"share": 0.5}, {"mechanism": "sips"}, {"selection_max_items": 9}, {"items_per_user": 3}],
    )
    def test_options_of_a_selection_are_refused(self, option: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match=f"leave out {next(iter(option))}"):
            count_users(TABLE, **NAMES, epsilon=1, delta=1e-6, keys=["jam"], **option)

    def test_a_null_key_would_be_taken_for_others(self) -> None:
        with pytest.raises(InputError, match="keys have nulls"):
            count_users(TABLE, **NAMES, epsilon=1, delta=1e-6, keys=["jam", None])


class TestOther:
    def test_is_not_mistaken_for_the_null_item(self) -> None:
        with pytest.raises(UsageError, match="makes null an item"):
            count_users(TABLE, **NAMES, **OPTIONS, other=True, nulls="group")

    def test_counts_users_without_a_key_once(self) -> None:
        counts = count_users({1: "abc", 2: "xyz", 3: "c"}, rho=1e5, delta=1e-9, keys=[], other=True)
        assert abs(counts.table[0][1] - 3) < 9 * counts.standard_deviation

    def test_costs_no_noise(self) -> None:
        deviations = {
            count_users(TABLE, **NAMES, **OPTIONS, other=other).standard_deviation
            for other in (True, False)
        }
        assert len(deviations) == 1


class TestCertificate:
    def test_covers_selection_and_counts(self) -> None:
        counts = count_users(TABLE, **NAMES, **OPTIONS, share=0.3)
        certificate = counts.certificate
        assert certificate["asked"] == {"epsilon": 4.0, "delta": 1e-9, "rho": None}
        assert certificate["mechanism"]["name"] == "sips"
        assert certificate["count"] == {
            "column": "users",
            "max_items": 2,
            "share": 0.3,
            "other": False,
            "noise": "discrete Gaussian",
            "standard_deviation": counts.standard_deviation,
        }
        assert counts.guarantee.delta(epsilon=4.0) <= 1e-9
        assert counts.guarantee.rho > dp_sips.plan("sips", epsilon=2.8, delta=0.75e-9).guarantee.rho
        assert json.loads(counts.to_json()) == certificate

    def test_says_nothing_about_the_data(self) -> None:
        """Two data sets with the same release have the same certificate."""
        one, other = (
            count_users({u: ["jam", f"own {u}"] for u in range(n)}, **OPTIONS).certificate
            for n in (300, 417)
        )
        assert one | {"time": "of the run"} == other | {"time": "of the run"}

    def test_public_attributes_are_pinned(self) -> None:
        counts = count_users(TABLE, **NAMES, **OPTIONS)
        assert {name for name in dir(counts) if not name.startswith("_")} == {
            "table", "standard_deviation", "selection", "guarantee", "plan", "private",
            "certificate", "to_json", "report",
        }  # fmt: skip
        assert counts.plan is counts.selection.plan

    def test_a_test_seed_is_not_private(self) -> None:
        one, other = (
            count_users(TABLE, **NAMES, **OPTIONS, seed=1, insecure_test=True) for _ in range(2)
        )
        assert not one.private
        assert one.table.equals(other.table)
        assert count_users(TABLE, **NAMES, **OPTIONS).private


class TestNoise:
    def test_is_what_is_stated(self) -> None:
        counts = count_users({}, epsilon=1, delta=1e-6, keys=list(range(4000)), max_items=3)
        users = np.array([users for _, users in counts.table])
        stated = counts.standard_deviation
        # Four and a half deviations of a sample's variance: off in about one run in 150,000.
        assert 0.9 < users.var() / stated**2 < 1.1
        assert abs(users.mean()) < 5 * stated / np.sqrt(len(users))

    def test_fewer_keys_than_max_items_need_less(self) -> None:
        few, many = (
            count_users({}, epsilon=1, delta=1e-6, keys=list(range(n))).standard_deviation
            for n in (2, 500)
        )
        assert few < many / 2

    def test_rho_is_the_papers_currency(self) -> None:
        counts = count_users(TABLE, **NAMES, rho=0.5, delta=1e-5, mechanism="sips", share=0.2)
        assert counts.guarantee.rho <= 0.5
        assert counts.certificate["asked"] == {"epsilon": None, "delta": 1e-5, "rho": 0.5}


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"share": 1.0}, r"share must be in \(0, 1\)"),
            ({"max_items": 0}, "max_items must be a whole number"),
            ({"epsilon": None}, "give either epsilon or rho"),
            ({"delta": None}, "delta is missing"),
            ({"max_partitions": 3}, "here it is called max_items"),
            ({"shares": 0.5}, "did you mean 'share'"),
            ({"seed": 3}, "insecure_test"),
            ({"selection_max_items": 0}, "selection_max_items must be a whole number"),
            ({"engine": "abacus"}, "unknown engine"),
            ({"keys": 7, "mechanism": "auto"}, "keys must be a selection, a table, a file or"),
        ],
    )
    def test_say_what_is_wrong(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            count_users(TABLE, **NAMES | OPTIONS | options)

    def test_an_item_column_of_that_name(self) -> None:
        with pytest.raises(UsageError, match="an item column is called 'users'"):
            count_users(TABLE.rename_columns(["who", "users"]), user="who", item="users", **OPTIONS)

    def test_opendp_is_asked_for_before_any_data_is_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dp_sips.mechanisms.discrete.find_spec", lambda _: None)
        with pytest.raises(UsageError, match=r"dp-sips\[counts\]"):
            count_users("no such file", **NAMES, **OPTIONS)


def test_counts_are_a_value_of_their_own() -> None:
    counts = count_users({1: ["a"]}, **OPTIONS)
    assert isinstance(counts, Counts)
    assert counts.table == []
    assert counts.selection.items == []
    assert "selection" not in repr(counts)
