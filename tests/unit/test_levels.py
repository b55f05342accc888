"""Levels in select_partitions: what comes out, what is spent, and what is refused."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dp_sips import InputError, UsageError, count_users, select_partitions, text, write_tokens
from dp_sips.privacy.noise import Key, Purpose

BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-3, "mechanism": "sips"}
USERS = 400


def visits() -> Any:
    """Everybody is in Paris, and in a German city of their own; one user each is in a country."""
    rows = [
        row
        for user in range(USERS)
        for row in ((user, "FR", "Paris"), (user, "DE", f"city {user}"), (user, f"c{user}", "Rome"))
    ]
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("u", "country", "city"), map(pa.array, columns), strict=True)))


def selected(data: Any, **options: Any) -> Any:
    names = {"user": "u", "item": ["country", "city"], "hierarchy": True}
    return select_partitions(data, **{**names, **BUDGET, **options})


class TestHierarchy:
    def test_levels_and_items(self) -> None:
        selection = selected(visits())
        assert selection.items.to_pylist() == [{"country": "FR", "city": "Paris"}]
        assert [level.column_names for level in selection.levels] == [
            ["country"],
            ["country", "city"],
        ]
        assert selection.levels[0]["country"].to_pylist() == ["DE", "FR"]
        assert selection.levels[1] == selection.items

    def test_a_city_counts_only_in_a_released_country(self) -> None:
        """400 users are in Rome, each in another country: as a column by itself it would be."""
        assert (
            "Rome"
            in select_partitions(visits(), user="u", item="city", **BUDGET)
            .items["city"]
            .to_pylist()
        )
        assert "Rome" not in selected(visits()).items["city"].to_pylist()

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_the_kind_of_table_that_went_in_comes_out(self, kind: Any) -> None:
        data = visits().to_pandas() if kind is pd.DataFrame else pl.from_arrow(visits())
        selection = selected(data)
        assert all(isinstance(table, kind) for table in (selection.items, *selection.levels))
        assert len(selection.items) == 1

    def test_other_tables(self) -> None:
        table = visits()
        assert selected(duckdb.from_arrow(table)).items.fetchall() == [("FR", "Paris")]
        assert selected(pl.from_arrow(table).lazy()).items.collect().rows() == [("FR", "Paris")]  # type: ignore[union-attr]
        columns = {name: table[name].to_pylist() for name in table.column_names}
        assert selected(columns).levels[0] == {"country": ["DE", "FR"]}

    @pytest.mark.parametrize("kind", [pa.int64(), pa.dictionary(pa.int8(), pa.string())])
    def test_types_of_prefixes(self, kind: Any) -> None:
        values = [7, None] if kind == pa.int64() else ["seven", None]
        plain = pa.array(values * USERS)
        column = plain if kind == pa.int64() else plain.dictionary_encode().cast(kind)
        data = pa.table(
            {"u": np.repeat(np.arange(USERS), 2), "a": column, "b": pa.array([1, 2] * USERS)}
        )
        grouped = selected(data, item=["a", "b"], nulls="group").items
        assert grouped.to_pylist() == [{"a": values[0], "b": 1}, {"a": None, "b": 2}]
        assert selected(data, item=["a", "b"], nulls="drop").items.num_rows == 1

    def test_three_levels(self) -> None:
        data = visits().append_column("year", pa.array([2025] * (3 * USERS)))
        selection = selected(data, item=["year", "country", "city"], hierarchy=(1, 1, 2))
        assert [level.num_rows for level in selection.levels] == [1, 2, 1]

    def test_nothing_released_is_nothing_below(self) -> None:
        selection = selected(visits().slice(0, 9))
        assert [level.num_rows for level in selection.levels] == [0, 0]
        assert selection.items.column_names == ["country", "city"]

    @pytest.mark.parametrize("mechanism", ["auto", "cumulative", "matching"])
    def test_every_mechanism_stays_within_what_was_asked(self, mechanism: str) -> None:
        selection = selected(visits(), mechanism=mechanism, epsilon=1, delta=1e-5)
        assert selection.levels[0]["country"].to_pylist() == ["DE", "FR"]
        assert selection.guarantee.delta(epsilon=1) <= 1e-5
        assert selection.plan.asked.delta == 1e-5

    def test_the_last_level_gets_what_composition_leaves(self) -> None:
        half = selected(visits(), epsilon=0.5, delta=5e-6, hierarchy=False)
        levels = selected(visits(), epsilon=1, delta=1e-5)
        assert levels.plan.rounds[-1].sigma < 0.75 * half.plan.rounds[-1].sigma
        assert 0.9e-5 < levels.guarantee.delta(epsilon=1) <= 1e-5

    def test_rho_adds_up(self) -> None:
        data = {"epsilon": None, "rho": 0.5, "delta": 1e-3}
        guarantee = selected(visits(), **data).guarantee
        assert guarantee.rho == pytest.approx(0.5)
        assert guarantee.threshold_delta <= 1e-3

    def test_the_certificate_has_every_level(self) -> None:
        certificate = selected(visits(), mechanism="auto").certificate
        assert [level["columns"] for level in certificate["levels"]] == [
            ["country"],
            ["country", "city"],
        ]
        assert all(level["rounds"] for level in certificate["levels"])
        assert certificate["levels"][0]["chosen_by"]["name"] == "auto"
        assert certificate["asked"] == {"epsilon": 2.0, "delta": 1e-3, "rho": None}

    def test_a_seed_repeats(self) -> None:
        close = pa.table(
            {"u": np.arange(900) // 3, "a": np.arange(900) % 3, "b": np.arange(900) * 7 % 20}
        )
        seeds = [
            selected(close, item=["a", "b"], seed=seed, insecure_test=True) for seed in (3, 3, 4)
        ]
        assert seeds[0].items == seeds[1].items
        assert not seeds[0].private


class TestRefused:
    def test_one_column(self) -> None:
        for item in ("country", ["country"], None):
            with pytest.raises(UsageError, match="needs several columns"):
                selected(visits(), item=item)

    def test_shares_that_do_not_fit(self) -> None:
        for shares in ([1], [1, 2, 3], "ab", 2):
            with pytest.raises(UsageError, match="there are 2 levels"):
                selected(visits(), hierarchy=shares)

    def test_what_can_be_read_once(self) -> None:
        stream = pa.RecordBatchReader.from_batches(visits().schema, visits().to_batches())
        with pytest.raises(UsageError, match="can be read only once"):
            selected(stream)
        texts = ((n, "tea jam") for n in range(9))
        with pytest.raises(UsageError, match="can be read only once"):
            select_partitions(texts, item=text.ngrams(None, 2, levels=True), **BUDGET)

    def test_a_hierarchy_of_texts(self) -> None:
        with pytest.raises(UsageError, match="levels=True instead"):
            selected(visits(), item=text.ngrams("city", 2))

    def test_levels_elsewhere(self) -> None:
        item = text.ngrams("city", 2, levels=True)
        with pytest.raises(UsageError, match="count with keys="):
            count_users(visits(), user="u", item=item, epsilon=1, delta=1e-6)
        with pytest.raises(UsageError, match="leave them out"):
            write_tokens(visits(), "never.parquet", user="u", item=item)
        with pytest.raises(UsageError, match="tokenized needs levels"):
            text.ngrams("city", 2, tokenized=True)

    def test_tokens_that_are_no_text(self) -> None:
        item = text.ngrams("u", 2, levels=True, tokenized=True)
        with pytest.raises(InputError, match="not typed as text"):
            select_partitions(visits(), user="city", item=item, **BUDGET)


class TestNgrams:
    TEXTS = pa.table(
        {
            "u": range(USERS),
            "body": [f"red tea or n{n} jam" if n % 2 else f"red jam n{n}" for n in range(USERS)],
        }
    )
    RELEASED = ("jam", "or", "red", "tea"), ("red jam", "red tea", "tea or"), ("red tea or",)

    def test_parts_come_first(self) -> None:
        item = text.ngrams("body", 3, levels=True)
        selection = select_partitions(self.TEXTS, user="u", item=item, **BUDGET)
        assert (
            tuple(tuple(level["body"].to_pylist()) for level in selection.levels) == self.RELEASED
        )
        assert selection.items["body"].to_pylist() == sorted(sum(self.RELEASED, ()))
        assert [level["words"] for level in selection.certificate["levels"]] == [1, 2, 3]

    def test_of_a_file_of_tokens(self, tmp_path: Any) -> None:
        path = tmp_path / "tokens.parquet"
        write_tokens(self.TEXTS, path, user="u", item=text.ngrams("body", 3))
        item = text.ngrams("body", 3, levels=(1, 1, 1), tokenized=True)
        selection = select_partitions(path, user="u", item=item, **BUDGET)
        assert selection.items["body"].to_pylist() == sorted(sum(self.RELEASED, ()))

    def test_a_null_is_a_word_where_it_is_grouped(self) -> None:
        data = pa.table({"u": range(USERS), "body": ["tea or", None] * (USERS // 2)})
        item = text.ngrams("body", 2, levels=True)
        selection = select_partitions(data, user="u", item=item, nulls="group", **BUDGET)
        assert selection.levels[0]["body"].to_pylist() == ["or", "tea", None]
        assert selection.levels[1]["body"].to_pylist() == ["tea or"]

    def test_dictionaries_of_tokens(self) -> None:
        words = pa.array(["tea", "or", "tea or", "or tea"] * USERS).dictionary_encode()
        data = pa.table({"u": np.repeat(np.arange(USERS), 4), "w": words})
        item = text.ngrams("w", 2, levels=True, tokenized=True)
        selection = select_partitions(data, user="u", item=item, **BUDGET)
        assert selection.items["w"].to_pylist() == ["or", "or tea", "tea", "tea or"]


def test_levels_have_noise_of_their_own() -> None:
    key = Key.for_tests(5)
    words = [k.word(Purpose.TURNS) for k in (key, key.of_level(0), key.of_level(1))]
    assert len(set(words)) == 3
    assert key.of_level(1).word(Purpose.TURNS) == words[2]
    assert key.of_level(0).is_test
    assert not Key.fresh().of_level(0).is_test
