"""Polars data frames, eager and lazy. This module is imported only when the caller passes one."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import polars as pl
import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.base import Feed, Part
from dp_sips.sources.batches import ROWS, batch_rows
from dp_sips.sources.columns import Columns

_EAGER = "the data frame"
_LAZY = "the lazy frame"


def open_eager(frame: pl.DataFrame, columns: Columns) -> Feed:
    """Read a frame that is in memory, slice by slice."""
    needed = frame.select(columns.pick(frame.columns, _EAGER))
    rows = batch_rows(needed.height, int(needed.estimated_size()))
    part = Part(_EAGER, lambda: _to_arrow(needed.iter_slices(rows)))
    schema = _arrow_schema(needed.schema, _EAGER)
    dtypes = _item_dtypes(needed.schema, columns)
    return Feed(_EAGER, schema, (part,), lambda items: _frame(items, dtypes), needed.height)


def open_lazy(frame: pl.LazyFrame, columns: Columns) -> Feed:
    """Run the query when batches are asked for, with Polars' streaming engine."""
    with _running():
        known = frame.collect_schema()
    names = columns.pick(known.names(), _LAZY)
    needed = frame.select(names)
    dtypes = {name: known[name] for name in names}

    def read() -> Iterator[pa.RecordBatch]:
        with _running():
            yield from _to_arrow(needed.collect_batches(chunk_size=ROWS, maintain_order=True))

    return Feed(
        _LAZY,
        _arrow_schema(dtypes, _LAZY),
        (Part(_LAZY, read),),
        lambda items: _frame(items, _item_dtypes(dtypes, columns)).lazy(),
    )


@contextmanager
def _running() -> Iterator[None]:
    """Turn a failed query into an `InputError`; Polars' own message may show values."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        name = type(error).__name__
        raise InputError(
            f"{_LAZY} cannot be read: its query failed ({name}); run .collect() on it to see why"
        ) from None


def _to_arrow(frames: Iterable[pl.DataFrame]) -> Iterator[pa.RecordBatch]:
    for frame in frames:
        yield from frame.to_arrow().to_batches()


def _arrow_schema(dtypes: Mapping[str, Any], label: str) -> pa.Schema:
    return pa.schema([(name, _arrow_type(name, dtypes[name], label)) for name in dtypes])


def _arrow_type(name: str, dtype: Any, label: str) -> pa.DataType:
    try:
        # Polars exports objects as their addresses in memory, which mean nothing.
        if dtype.is_nested() or dtype != pl.Object:
            return pl.DataFrame(schema={name: dtype}).to_arrow().schema.field(0).type
    except pa.ArrowException:
        pass
    raise InputError(
        f"column {name!r} of {label} has the type {dtype}, which Arrow does not know: cast it first"
    )


def _item_dtypes(dtypes: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """Return the dtypes of the items; of a list column, of its elements; not declared ones."""
    items = (name for name in columns.items if name not in columns.types)
    return {name: getattr(dtypes[name], "inner", dtypes[name]) for name in items}


def _frame(items: pa.Table, dtypes: dict[str, Any]) -> pl.DataFrame:
    own = {name: _released_dtype(dtype, items[name]) for name, dtype in dtypes.items()}
    return pl.DataFrame(items).with_columns(pl.col(name).cast(own[name]) for name in own)


def _released_dtype(dtype: Any, column: pa.ChunkedArray) -> Any:
    """Keep only the categories that are released: the others are values of the data.

    Polars numbers all categories of a process in the order in which they appear, which the released
    ones would show: they become an enum.
    """
    released = set(column.unique().to_pylist()) - {None}
    if isinstance(dtype, pl.Enum):
        return pl.Enum([category for category in dtype.categories if category in released])
    return pl.Enum(sorted(released)) if isinstance(dtype, pl.Categorical) else dtype
