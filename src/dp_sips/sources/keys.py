"""Keys: public items to be counted, brought to the types of the data's own items."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dp_sips.errors import InputError, UsageError
from dp_sips.sources.base import Feed, Part, Source
from dp_sips.sources.columns import Columns
from dp_sips.sources.declared import check_casts
from dp_sips.sources.files import open_files
from dp_sips.sources.opening import open_any_table
from dp_sips.sources.python_pairs import open_columns
from dp_sips.sources.types import JSON_TEXT, is_list
from dp_sips.sources.values import ANY_KIND, encode


@dataclass(frozen=True)
class KeyColumns(Columns):
    """The item columns alone; the first takes the place of the user."""

    @property
    def lists(self) -> bool:
        """No value is a list of keys."""
        return False

    def _required(self, known: Iterable[object], label: str) -> str:
        del known, label
        assert self.user is not None
        return self.user


def read_keys(keys: Any, source: Source, name: str = "keys") -> pa.Table:
    """Return keys as a table of the source's item columns, in the types of its batches.

    Args:
        keys: A path of a file, a table or a dict of columns that has the item columns; or a list
            of items (of tuples, where an item has several columns).
        source: The data whose items are meant.
        name: What the caller calls the keys.

    Public: the keys, whose values may be shown in messages.
    """
    first, *others = source.item_schema.names
    feed = _open(keys, KeyColumns(first, tuple(others), source.item_types), name)
    _check(feed, source.item_types)
    typed = Source(feed, "group", source.item_types)
    empty = [pa.array([], getattr(kind, "value_type", kind)) for kind in source.item_schema.types]
    batches = [
        [_carried(typed, batch.column(place), place, part) for place in range(len(empty))]
        for part in feed.parts
        for batch in part.batches()
    ]
    columns = map(pa.chunked_array, zip(empty, *batches, strict=True))
    return pa.table(list(columns), names=source.item_schema.names)


def read_rows(table: Any, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table of items, of any kind, or of a file, as Python values."""
    first, *others = names
    feed = _open(table, KeyColumns(first, tuple(others), {}), "items")
    source = Source(feed, "group")
    for part in feed.parts:
        for batch in part.batches():
            yield from zip(*source.values(batch), strict=True)


def _open(keys: Any, columns: KeyColumns, name: str) -> Feed:
    if isinstance(keys, (str, os.PathLike)):
        return open_files([keys], columns)
    if isinstance(keys, Mapping):
        return open_columns(keys, columns)
    if type(keys).__name__ == "Series":  # of pandas or Polars: a list of items
        return _listed(keys.to_list(), columns, name)
    if type(keys).__module__.split(".")[0].lstrip("_") == "duckdb":
        from dp_sips.sources.duckdb_relations import read_relation

        keys = read_relation(keys)
    if isinstance(keys, pa.Table) and any(field.metadata == JSON_TEXT for field in keys.schema):
        return open_columns(_own_kinds(keys), columns)
    found = open_any_table(keys, columns)
    return _listed(keys, columns, name) if found is None else found


def _own_kinds(keys: pa.Table) -> dict[str, list[Any]]:
    """Return the columns of a release of several kinds, each value of its own kind again."""
    columns = {}
    for field, column in zip(keys.schema, keys.columns, strict=True):
        values = column.to_pylist()
        if field.metadata == JSON_TEXT:
            values = [text and json.loads(text, parse_float=Decimal) for text in values]
        columns[field.name] = values
    return columns


def _listed(keys: Any, columns: KeyColumns, name: str) -> Feed:
    """Read a list of items."""
    if not isinstance(keys, Iterable) or isinstance(keys, (bytes, bytearray)):
        raise UsageError(
            f"{name} must be a selection, a table, a file or a list, got {type(keys).__name__}"
        )
    names = (str(columns.user), *columns.items)
    rows = list(keys) if len(names) > 1 else [(key,) for key in keys]
    if not all(isinstance(row, tuple) and len(row) == len(names) for row in rows):
        raise UsageError(f"{name} must be tuples of {len(names)} values: {', '.join(names)}")
    values = {name: [row[n] for row in rows] for n, name in enumerate(names)}
    return open_columns(values, columns)


def _check(feed: Feed, types: Mapping[str, pa.DataType]) -> None:
    """Reject columns that can hold no key of the data."""
    for part in feed.parts:
        schema = part.schema or feed.schema
        for field in schema:
            if is_list(field.type):
                raise InputError(f"column {field.name!r} of {part.label} holds lists, not keys")
        check_casts(schema, types, part.label)


def _carried(keys: Source, column: pa.Array, place: int, part: Part) -> pa.Array:
    """Bring a column of keys to the type of the items."""
    own = keys.feed.schema.field(place)
    if own.name not in keys.types and own.type != ANY_KIND:
        return encode(column.to_pylist(), own.name, part.label)
    carried = keys.carry(column, place, part)
    return carried.dictionary_decode() if pa.types.is_dictionary(carried.type) else carried
