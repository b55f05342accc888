"""pandas data frames. This module is imported only when the caller passes one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import pandas as pd
import pyarrow as pa

from dp_sips.errors import InputError, UsageError
from dp_sips.sources.base import Feed, Part
from dp_sips.sources.batches import ROWS
from dp_sips.sources.columns import Columns
from dp_sips.sources.types import is_list
from dp_sips.sources.values import ANY_KIND, encode, encode_items, listed

_LABEL = "the data frame"
_WITHOUT_NULLS: Final[dict[str, Callable[[Any], str]]] = {
    "b": lambda _: "boolean",
    "i": lambda dtype: f"Int{8 * dtype.itemsize}",
    "u": lambda dtype: f"UInt{8 * dtype.itemsize}",
}
"""Kinds of dtypes that have no null, and the dtype that has one."""


def open_pandas(frame: pd.DataFrame, columns: Columns) -> Feed:
    """Share the needed columns with Arrow; only columns of Python objects are copied."""
    _check_index(frame, columns)
    names = columns.pick(frame.columns, _LABEL)
    for name in names:
        _check_float(frame[name].dtype, name, columns)
    arrays = [
        _column(
            frame[name], name, columns.types.get(name), lists=columns.lists and name != columns.user
        )
        for name in names
    ]
    table = pa.table(arrays, names=names)
    kinds = [_kind(frame[name].dtype, table[name].type) for name in names]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    dtypes = {
        name: _item_dtype(frame[name].dtype, schema.field(name).type, columns.types.get(name))
        for name in columns.items
    }
    part = Part(_LABEL, lambda: table.to_batches(max_chunksize=ROWS))
    return Feed(_LABEL, schema, (part,), lambda items: _frame(items, dtypes), len(frame))


def reject_reader(reader: Any, columns: Columns) -> NoReturn:
    """Ask for the path of a file that pandas would read in chunks, or for all of it."""
    del columns
    raise UsageError(
        f"cannot read a {type(reader).__name__}, which pandas returns with chunksize=: pass the "
        "path of the file itself, which is read in pieces, too, or, if it is neither CSV nor JSON "
        "lines, leave chunksize= out"
    )


def _check_index(frame: pd.DataFrame, columns: Columns) -> None:
    for name in (columns.user, *columns.items):
        if name is not None and name in frame.index.names and name not in frame.columns:
            raise InputError(
                f"{name!r} is in the index of {_LABEL}, not a column: pass frame.reset_index()"
            )


def _check_float(dtype: Any, name: str, columns: Columns) -> None:
    """Name the way out of the floats that pandas makes of whole numbers with gaps."""
    if dtype.kind == "f" and name not in columns.types:
        raise InputError(
            f"column {name!r} of {_LABEL} has the dtype {dtype}, and floats have no dependable "
            'equality: if they are whole numbers with gaps, use .astype("Int64")'
        )


def _is_untyped(dtype: Any) -> bool:
    """Whether values are Python objects, or categories that are."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _is_untyped(dtype.categories.dtype)
    return dtype.kind == "O" and not pd.api.types.is_extension_array_dtype(dtype)


def _kind(dtype: Any, found: pa.DataType) -> pa.DataType:
    """Return the type of the values: how many categories there are is not for the certificate."""
    if _is_untyped(dtype):
        return ANY_KIND
    return found.value_type if isinstance(dtype, pd.CategoricalDtype) else found


def _column(
    series: "pd.Series[Any]", name: str, declared: pa.DataType | None, *, lists: bool
) -> Any:
    if isinstance(series.dtype, pd.CategoricalDtype) and _is_untyped(series.dtype):
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        categories = encode(series.cat.categories.tolist(), name, _LABEL, declared)
        return pa.DictionaryArray.from_arrays(codes, categories)
    if _is_untyped(series.dtype):
        values = series.to_numpy(copy=True)
        values[series.isna().to_numpy()] = None
        return encode_items(values.tolist(), name, _LABEL, lists=lists, declared=declared)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Without its cause, which would show a value.
        raise InputError(
            f"column {name!r} of {_LABEL} (dtype {series.dtype}) holds what Arrow does not know: "
            "give it another type first, for example .astype(str)"
        ) from None


def _item_dtype(dtype: Any, kind: pa.DataType, declared: pa.DataType | None) -> Any:
    """Return the dtype of one item; of a list column, what pandas makes of its elements."""
    if declared is not None:
        return pd.ArrowDtype(declared)
    if not is_list(kind):
        return dtype
    return pd.ArrowDtype(kind.value_type) if isinstance(dtype, pd.ArrowDtype) else None


def _frame(items: pa.Table, dtypes: dict[str, Any]) -> pd.DataFrame:
    names = items.column_names  # counts may be beside the items
    return pd.DataFrame({name: _series(items[name], dtypes.get(name)) for name in names})


def _series(column: pa.ChunkedArray, dtype: Any) -> Any:
    """Rebuild a column under its very dtype, without a detour over floats for nulls."""
    if dtype is None:
        return column.to_pandas()
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(listed(column), dtype)
    if _is_untyped(dtype):
        return pd.Series(listed(column), dtype=object)
    if hasattr(dtype, "__from_arrow__"):
        return pd.Series(dtype.__from_arrow__(column))
    if column.null_count and dtype.kind in _WITHOUT_NULLS:
        return pd.Series(column.to_pylist(), dtype=_WITHOUT_NULLS[dtype.kind](dtype))
    return column.to_pandas().astype(dtype)


def _categories(values: list[Any], dtype: pd.CategoricalDtype) -> "pd.Series[Any]":
    """Keep only the categories that are released: the others are values of the data.

    Where they have an order, it stays; where they have none, the one they have may be the data's.
    """
    released = pd.Index([value for value in dict.fromkeys(values) if value is not None])
    if dtype.ordered:
        released = dtype.categories.intersection(released, sort=False)
    else:
        # Values of different kinds stay in the order of the release.
        with suppress(TypeError):
            released = released.sort_values()
    return pd.Series(pd.Categorical(values, categories=released, ordered=dtype.ordered))
