"""pandas data frames. This module is imported only when the caller passes one."""

from typing import Any

import pandas as pd
import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.arrow_tables import open_table
from dp_sips.sources.base import Feed
from dp_sips.sources.columns import Columns
from dp_sips.sources.types import is_list

_LABEL = "the data frame"


def open_pandas(frame: pd.DataFrame, columns: Columns) -> Feed:
    """Share the needed columns with Arrow; only columns of Python objects are copied."""
    names = columns.pick(frame.columns, _LABEL)
    table = pa.table([_column(frame[name], name) for name in names], names=names)
    dtypes = {
        name: _item_dtype(frame[name].dtype, table.schema.field(name).type)
        for name in columns.items
    }
    feed = open_table(table, columns)
    return Feed(_LABEL, feed.schema, feed.parts, lambda items: _frame(items, dtypes), feed.rows)


def _column(series: "pd.Series[Any]", name: str) -> Any:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        # Arrow's own message would show a value.
        raise InputError(
            f"column {name!r} of {_LABEL} (dtype {series.dtype}) mixes types or holds objects that "
            "are no plain values: give it one type first, for example .astype(str)"
        ) from error


def _item_dtype(dtype: Any, kind: pa.DataType) -> Any:
    """Return the dtype of one item; of a list column, what pandas makes of its elements."""
    if not is_list(kind):
        return dtype
    return pd.ArrowDtype(kind.value_type) if isinstance(dtype, pd.ArrowDtype) else None


def _frame(items: pa.Table, dtypes: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame({name: _series(items[name], dtype) for name, dtype in dtypes.items()})


def _series(column: pa.ChunkedArray, dtype: Any) -> Any:
    """Rebuild a column under its very dtype, without a detour over floats for nulls."""
    if dtype is None:
        return column.to_pandas()
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(column, dtype)
    if dtype.kind == "O" and not pd.api.types.is_extension_array_dtype(dtype):
        return pd.Series(column.to_pylist(), dtype=object)
    if hasattr(dtype, "__from_arrow__"):
        return pd.Series(dtype.__from_arrow__(column))
    return column.to_pandas().astype(dtype)


def _categories(column: pa.ChunkedArray, dtype: pd.CategoricalDtype) -> "pd.Series[Any]":
    """Keep only the categories that are released: the others are values of the data.

    Where they have an order, it stays; where they have none, the one they have may be the data's.
    """
    known = dtype.categories
    released = known.intersection(pd.Index(column.drop_null().unique().to_pylist()), sort=False)
    if not dtype.ordered:
        released = released.sort_values()
    values = column.to_pylist()
    return pd.Series(pd.Categorical(values, categories=released, ordered=dtype.ordered))
