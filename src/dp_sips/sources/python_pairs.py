"""Plain Python data: a mapping from users to their items, or (user, items) pairs."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any

import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.base import Feed, Part, single_use
from dp_sips.sources.batches import ROWS

_SHAPE = 'expected a mapping {"ann": ["tea", "jam"]} or pairs ("ann", ["tea", "jam"])'
_NAMES = ("user", "item")
_LOCAL_TIME = pa.timestamp("us")
_KINDS: tuple[tuple[type, pa.DataType], ...] = (
    (bool, pa.bool_()),
    (Integral, pa.int64()),
    (str, pa.large_string()),
    (bytes, pa.large_binary()),
    (datetime, _LOCAL_TIME),
    (date, pa.date32()),
    (Decimal, pa.decimal128(38, 18)),
)
"""The first fitting row counts: to Python a bool is an int, and a datetime a date."""

Chunk = tuple[list[Any], list[Any]]


def open_pairs(data: Iterable[Any]) -> Feed:
    """Take the types from the first chunk; the rest is read when batches are asked for."""
    label = f"the {type(data).__name__}"
    pairs = data.items() if isinstance(data, Mapping) else data
    chunks = _chunks(pairs)
    first: Chunk = next(chunks, ([], []))
    types = [_type_of(values, name) for values, name in zip(first, _NAMES, strict=True)]
    schema = pa.schema(list(zip(_NAMES, types, strict=True)))
    if iter(pairs) is pairs:
        read = single_use(_batches(chain([first], chunks), schema), label)
    else:
        chunks.close()
        read = partial(_read, pairs, schema)
    return Feed(label, schema, (Part(label, read),), _as_list)


def _read(pairs: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return _batches(_chunks(pairs), schema)


def _chunks(pairs: Iterable[Any]) -> Generator[Chunk, None, None]:
    """Collect rows until there are enough for a batch; one user's items stay together."""
    users: list[Any] = []
    items: list[Any] = []
    for pair in pairs:
        user, own = _unpacked(pair)
        items.extend(own)
        users.extend([user] * (len(items) - len(users)))
        if len(items) >= ROWS:
            yield users, items
            users, items = [], []
    if items:
        yield users, items


def _unpacked(pair: Any) -> tuple[Any, Iterable[Any]]:
    if not isinstance(pair, (tuple, list)) or len(pair) != len(_NAMES):
        raise InputError(f"{_SHAPE}; got an element of type {type(pair).__name__}{_paths(pair)}")
    user, items = pair
    if items is None:
        return user, (None,)
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise InputError(f"{_SHAPE}; got items of type {type(items).__name__}")
    return user, items


def _paths(pair: Any) -> str:
    return " (paths need user= and item=)" if isinstance(pair, str) else ""


def _type_of(values: list[Any], name: str) -> pa.DataType:
    """Return the one Arrow type of all values, or of none (null)."""
    found = {_arrow_type(kind, name) for kind in set(map(type, values)) - {type(None)}}
    if _LOCAL_TIME in found:
        found |= {pa.timestamp("us", "UTC") for v in values if getattr(v, "tzinfo", None)}
        if all(getattr(v, "tzinfo", True) for v in values):
            found.remove(_LOCAL_TIME)
    if len(found) > 1:
        shown = " and ".join(sorted(map(str, found)))
        raise InputError(f"{name}s are of different types, {shown}: give all of them one type")
    return found.pop() if found else pa.null()


def _arrow_type(kind: type, name: str) -> pa.DataType:
    for python_type, arrow_type in _KINDS:
        if issubclass(kind, python_type):
            return arrow_type
    fix = "floats have no dependable equality: " if issubclass(kind, float) else ""
    raise InputError(
        f"{name}s of type {kind.__name__} are not supported: {fix}use str, int, bytes, bool, date, "
        "datetime or Decimal"
    )


def _batches(chunks: Iterable[Chunk], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        columns = [_array(values, field) for values, field in zip(chunk, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    found = _type_of(values, field.name)
    if found not in (field.type, pa.null()):
        raise InputError(
            f"{field.name}s are of different types, {field.type} and {found}: "
            "give all of them one type"
        )
    try:
        if pa.types.is_timestamp(field.type):
            _refuse_nanoseconds(values)
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        # Arrow's own message would show the value.
        raise InputError(
            f"a value of the {field.name}s does not fit {field.type}: pass all of them as str"
        ) from error


def _refuse_nanoseconds(values: list[Any]) -> None:
    """Refuse times of pandas that are finer than Python's: Arrow would cut them off."""
    if any(getattr(value, "nanosecond", 0) for value in values):
        raise ValueError("nanoseconds")


def _as_list(items: pa.Table) -> list[Any]:
    values: list[Any] = items.column(0).to_pylist()
    return [_short(value) if isinstance(value, Decimal) else value for value in values]


def _short(value: Decimal) -> Decimal:
    """Drop the zeros that the column's scale added."""
    # Not by normalize(), which rounds to 28 digits.
    return Decimal(f"{value:f}".rstrip("0").rstrip("."))
