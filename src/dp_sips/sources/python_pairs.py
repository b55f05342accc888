"""Plain Python data: users and their items, or a dict of columns.

Without `user=` and `item=`, data is a mapping from users to items, or pairs of these. With them it
is a mapping from names to columns. So the caller says which it is, and no key or value does. A
list, tuple, set or other iterable is a list of items; any other value is one item: this, too, is
decided for each value by itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.base import Feed, Part, single_use
from dp_sips.sources.batches import ROWS
from dp_sips.sources.columns import Columns
from dp_sips.sources.values import ANY_KIND, encode, encode_items, listed

_SHAPE = 'expected a mapping {"ann": ["tea", "jam"]} or pairs ("ann", "tea") or ("ann", ["tea"])'
_NAMES = ("user", "item")


def open_pairs(data: Iterable[Any], types: Mapping[str, pa.DataType]) -> Feed:
    """Read users and their items, when batches are asked for."""
    label = f"the {type(data).__name__}"
    pairs = data.items() if isinstance(data, Mapping) else data
    once = iter(pairs) is pairs
    if once:
        read = single_use(_pair_batches(pairs, label, types), label)
    else:
        read = partial(_pair_batches, pairs, label, types)
    schema = pa.schema([(name, ANY_KIND) for name in _NAMES])
    return Feed(label, schema, (Part(label, read),), _as_list, once=once)


def open_columns(data: Mapping[Any, Any], columns: Columns) -> Feed:
    """Read the named columns of a mapping."""
    label = f"the {type(data).__name__}"
    names = _named(data, columns, label)
    lengths = {len(data[name]) for name in names}
    if len(lengths) > 1:
        raise InputError(f"the columns {', '.join(map(repr, names))} of {label} differ in length")
    schema = pa.schema([(name, ANY_KIND) for name in names])
    part = Part(label, lambda: _column_batches(data, names, label, columns))
    return Feed(label, schema, (part,), _as_columns)


def _named(data: Mapping[Any, Any], columns: Columns, label: str) -> list[str]:
    """Return the names of the columns; if one is missing, show no key: it may be a user."""
    names = columns.pick([columns.user, *columns.items], label)
    for name in names:
        if (
            name not in data
            or isinstance(data[name], (str, bytes))
            or not hasattr(data[name], "__len__")
        ):
            raise InputError(
                f"{label} has no column {name!r}: user= and item= name the columns of a mapping; "
                "leave them out if it maps users to items"
            )
    return names


def _column_batches(
    data: Mapping[Any, Any], names: list[str], label: str, columns: Columns
) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(data[names[0]]), ROWS):
        parts = (list(data[name][start : start + ROWS]) for name in names)
        encoded = [
            encode_items(
                values,
                name,
                label,
                lists=columns.lists and place > 0,
                declared=columns.types.get(name),
            )
            for place, (values, name) in enumerate(zip(parts, names, strict=True))
        ]
        yield pa.RecordBatch.from_arrays(encoded, names=names)


def _pair_batches(
    pairs: Iterable[Any], label: str, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    for chunk in _chunks(pairs):
        columns = [
            encode(values, name, label, types.get(name))
            for values, name in zip(chunk, _NAMES, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=_NAMES)


def _chunks(pairs: Iterable[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
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
        raise InputError(f"{_SHAPE}; got an element of type {type(pair).__name__}{_hint(pair)}")
    user, items = pair
    one = isinstance(items, (str, bytes)) or not isinstance(items, Iterable)
    return user, (items,) if one else items


def _hint(element: Any) -> str:
    if isinstance(element, str):
        return " (paths need user= and item=)"
    rows = " (of rows that are mappings, make a data frame, and name user= and item=)"
    return rows if isinstance(element, Mapping) else ""


def _as_list(items: pa.Table) -> list[Any]:
    """Return the items; with counts beside them, pairs."""
    values, *others = map(listed, items.columns)
    return list(zip(values, *others, strict=True)) if others else values


def _as_columns(items: pa.Table) -> dict[str, list[Any]]:
    return {name: listed(items[name]) for name in items.column_names}
