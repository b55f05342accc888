"""The three rules for nulls."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from dp_sips.errors import InputError, UsageError
from dp_sips.sources import open_source

TABLE = pa.table({"u": [1, 1, 2], "i": ["a", None, "b"], "j": [1, 2, None]})


def test_error_names_the_column_and_the_ways_on(read: Any) -> None:
    with pytest.raises(InputError, match=r"'i' of the table has nulls: .*\"drop\".*\"group\""):
        read(TABLE)
    with pytest.raises(InputError, match=r"'j' of the table has nulls"):
        read(TABLE, item="j")


def test_drop_and_group(read: Any) -> None:
    both = ["i", "j"]
    assert read(TABLE, nulls="drop") == Counter([(1, "a"), (2, "b")])
    assert read(TABLE, nulls="drop", item=both) == Counter([(1, "a", 1)])
    assert read(TABLE, nulls="group", item=both) == Counter(
        [(1, "a", 1), (1, None, 2), (2, "b", None)]
    )


def test_null_users_are_dropped_or_an_error(read: Any) -> None:
    table = pa.table({"u": [1, None], "i": [1, None]})
    assert read(table, nulls="drop") == Counter([(1, 1)])
    with pytest.raises(InputError, match="column 'u' of the table has nulls: ") as caught:
        read(table)
    assert "group" not in str(caught.value)


def test_null_users_are_no_group(read: Any) -> None:
    table = pa.table({"u": [1, None], "i": [1, 2]})
    fix = 'nulls="group" is for items: fill in the users first, or .* nulls="drop"'
    with pytest.raises(InputError, match=f"column 'u' of the table has nulls, and {fix}"):
        read(table, nulls="group")


def test_nulls_hidden_in_a_dictionary(read: Any) -> None:
    indices = pa.array([0, 1, 2, None], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a", None, "b"]))
    table = pa.table({"u": [1, 2, 3, 4], "i": column})
    assert read(table, nulls="drop") == Counter([(1, "a"), (3, "b")])
    assert read(table, nulls="group") == Counter([(1, "a"), (2, None), (3, "b"), (4, None)])


def test_nulls_hidden_in_a_dictionary_of_views(read: Any) -> None:
    values = pa.array(["a", None, "b"], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), values)
    table = pa.table({"u": [1, 2, 3], "i": column})
    assert read(table, nulls="drop") == Counter([(1, "a"), (3, "b")])
    assert read(table, nulls="group") == Counter([(1, "a"), (2, None), (3, "b")])


def test_a_null_list_stays_where_it_was() -> None:
    table = pa.table({"u": [1, 1, 1, 2], "i": [["a"], None, ["b", "c"], None]})
    source = open_source(table, user="u", item="i", nulls="group")
    rows = [row for batch in source.batches() for row in batch.column(1).to_pylist()]
    assert rows == ["a", None, "b", "c", None]


def test_a_column_of_nulls(read: Any, items: Any) -> None:
    table = pa.table({"u": [1, 2], "i": pa.nulls(2)})
    with pytest.raises(InputError, match="column 'i' of the table has nulls"):
        read(table)
    assert read(table, nulls="drop") == Counter()
    assert read(table, nulls="group") == Counter([(1, None), (2, None)])
    source = open_source(table, user="u", item="i", nulls="group")
    assert source.restore(items(source, [None])).schema == pa.schema({"i": pa.null()})
    with pytest.raises(InputError, match="column 'i' of the table has nulls"):
        read(table, user="i", item="u", nulls="group")


def test_no_rows_and_none_left_are_no_error(read: Any) -> None:
    """No data and one person's data must not differ by an error."""
    assert read(TABLE.slice(0, 0)) == Counter()
    nulls = pa.table({"u": [1], "i": pa.array([None], pa.int64())})
    assert read(nulls, nulls="drop") == Counter()
    assert read(pa.table({"u": [1], "i": pa.array([[]], pa.list_(pa.int64()))})) == Counter()


def test_unknown_rule(read: Any) -> None:
    with pytest.raises(UsageError, match=r"nulls must be one of error, drop, group, got 'keep'"):
        read(TABLE, nulls="keep")
