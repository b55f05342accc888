"""A source: where rows come from, and the way back to the caller's kind of table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from dp_sips.errors import InputError, UsageError
from dp_sips.room import is_out_of_memory
from dp_sips.sources.batches import exploded, in_pieces, plain_nulls, settle_nulls
from dp_sips.sources.declared import as_declared
from dp_sips.sources.intact import IntactCheck
from dp_sips.sources.reasons import reason
from dp_sips.sources.types import (
    batch_type,
    element,
    from_batch_type,
    is_list,
    to_batch_type,
)
from dp_sips.sources.utf8 import Utf8Check
from dp_sips.sources.values import AnyKind, describe, encode, python_values

USERS = "users"
"""The column of counts beside released items."""

Keep = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Leaves out rows that do not count: by a fixed rule, for each row by itself."""

Unpack = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
"""Makes rows of other things, such as lines of JSON."""


@dataclass(frozen=True)
class Part:
    """One file, or a whole table: a name for messages, and how to read it.

    `schema` is given where it may differ from the feed's: in columns whose type is declared.
    """

    label: str
    read: Callable[[], Iterable[pa.RecordBatch]]
    schema: pa.Schema | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the batches; whatever is wrong with them is an `InputError` that names the part."""
        check = IntactCheck(self.label)
        with reading(self.label):
            for batch in self.read():
                check(batch)
                yield batch


@dataclass(frozen=True)
class Feed:
    """What a kind of input has to say: the needed columns, the user's first, and how to get them.

    Batches come in the order of `schema`, in any size; their text may be dictionary-encoded. A
    column of `AnyKind` comes as the bytes that carry it, or as lists of these.

    `restore` turns the item columns, and any beside them, into the caller's kind of table.

    Where `frame` is a Spark table of the same rows, these need not leave Spark; `unpack` makes rows
    of what the frame has, where that is something else.

    `once` says that the rows cannot be read a second time.
    """

    label: str
    schema: pa.Schema
    parts: tuple[Part, ...]
    restore: Callable[[pa.Table], Any]
    rows: int | None = None
    frame: Any = None
    unpack: Unpack | None = None
    once: bool = False


@dataclass(frozen=True)
class Source:
    """A stream of Arrow batches of users and items; of those that `keep` leaves, if it is given.

    Public: the types and names of the columns, and `keep`. Sensitive: every value, and the number
    of rows.
    """

    feed: Feed
    nulls: str
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    keep: Keep | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in the types that were declared or that they have; of lists, the elements."""
        return pa.schema([(f.name, self._own_type(f)) for f in self.feed.schema])

    @cached_property
    def user_type(self) -> pa.DataType:
        """The type of the users in each batch."""
        return batch_type(self.schema.field(0).type)

    @cached_property
    def item_schema(self) -> pa.Schema:
        """The item columns under their own names, as batches carry them."""
        return pa.schema([(item.name, batch_type(item.type)) for item in list(self.schema)[1:]])

    @property
    def has_lists(self) -> bool:
        """Whether an item column holds lists, by its type."""
        return any(is_list(column.type) for column in self.feed.schema)

    def rows(self) -> int | None:
        """Return the number of raw rows where it is known without reading them."""
        return self.feed.rows

    def restore(self, items: pa.Table) -> Any:
        """Turn released items (of `item_schema`) into the caller's kind of table."""
        return self.feed.restore(from_batch_type(items, self._own_items))

    def restore_counts(self, items: pa.Table, users: pa.Array) -> Any:
        """Turn released items and a count for each into the caller's kind of table.

        There may be one more count than items: that row's item is null.
        """
        rows = pa.array([*range(items.num_rows), None][: len(users)], pa.int64())
        own = from_batch_type(items.take(rows), self._own_items)
        return self.feed.restore(own.append_column(USERS, users))

    def describe(self, items: pa.Table) -> dict[str, str]:
        """Name the types of released items: where none is declared, those that they have."""
        kinds = zip(self._own_items, items.columns, strict=True)
        return {
            own.name: describe(column.combine_chunks())
            if isinstance(own.type, AnyKind)
            else str(column.type)
            for own, column in kinds
        }

    def counts_as_batched(self, counts: Mapping[Any, int]) -> dict[Any, int]:
        """Return public counts of items, with each item as `item_schema` has it."""
        several = len(self._own_items) > 1
        columns = zip(*counts, strict=True) if several else [counts]
        parts = [
            encode(list(values), own.name, "the histogram").to_pylist()
            if isinstance(own.type, AnyKind)
            else values
            for values, own in zip(columns, self._own_items, strict=False)
        ]
        items = zip(*parts, strict=True) if several else parts[0]
        return dict(zip(items, counts.values(), strict=True))

    @property
    def item_types(self) -> dict[str, pa.DataType]:
        """The types of item columns that have one; of dictionaries, that of the values."""
        return {
            name: getattr(batch_type(kind), "value_type", batch_type(kind))
            for name, kind in zip(self._own_items.names, self._own_items.types, strict=True)
            if not isinstance(kind, AnyKind)
        }

    def values(self, batch: pa.RecordBatch) -> list[list[Any]]:
        """Return the columns of a batch as Python values."""
        return [
            python_values(column) if isinstance(kind, AnyKind) else column.to_pylist()
            for column, kind in zip(batch.columns, self.schema.types, strict=True)
        ]

    @property
    def _own_items(self) -> pa.Schema:
        return pa.schema(list(self.schema)[1:])

    def _own_type(self, column: pa.Field) -> pa.DataType:
        return self.types.get(column.name, element(column.type))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows: the column "user" first, then the items.

        Take columns by position: an item column may be called "user" as well.
        """
        settled = self._settled() if self.keep is None else map(self.keep, self._settled())
        return (batch for batch in settled if batch.num_rows)

    def _settled(self) -> Iterator[pa.RecordBatch]:
        """Yield one batch, possibly without rows, or more for each raw batch with rows."""
        check = Utf8Check()
        for part in self.feed.parts:
            with reading(part.label):
                for raw in part.batches():
                    for piece in in_pieces(raw):
                        if piece.num_rows:
                            yield from self._finished(piece, part, check)

    def _finished(
        self, piece: pa.RecordBatch, part: Part, check: Utf8Check
    ) -> Iterator[pa.RecordBatch]:
        names = self.feed.schema.names
        if self.nulls == "error":
            settle_nulls(piece, self.nulls, names, part.label)
        # Users first: Arrow cannot repeat views or extension values for the elements of a list.
        users, *items = piece.columns
        piece = _batch([self.carry(users, 0, part), *items], names)
        for batch in exploded(piece, keep_null=self.nulls == "group"):
            users, *items = batch.columns
            columns = [users, *(self.carry(item, i, part) for i, item in enumerate(items, 1))]
            for column, name in zip(columns, names, strict=True):
                check(column, name, part.label)
            ready = _batch(columns, ["user", *self.item_schema.names])
            yield settle_nulls(ready, self.nulls, names, part.label)

    def carry(self, column: pa.Array, place: int, part: Part) -> pa.Array:
        """Bring a column of a part to the type in which batches carry it."""
        own = self.schema.field(place)
        if own.name in self.types:
            raw = element((part.schema or self.feed.schema).field(place).type)
            column = as_declared(column, raw, own.type, f"column {own.name!r} of {part.label}")
        return plain_nulls(to_batch_type(column, batch_type(own.type)))


def _batch(columns: Iterable[pa.Array], names: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=names)


@contextmanager
def reading(label: str) -> Iterator[None]:
    """Turn every failure of Arrow or the file system into an `InputError` that names the input.

    Arrow's own words may show a value, or a whole row: they are in no message, and in no cause.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except UnicodeError as error:
        raise InputError(f"{label} has text that is not UTF-8: convert it first") from error
    except PermissionError:
        raise InputError(f"{label} cannot be read: permission denied") from None
    except (pa.ArrowException, OSError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"{label} cannot be read: {reason(error)}") from None


def single_use(stream: Iterable[pa.RecordBatch], label: str) -> Callable[[], Any]:
    """Hand out a stream that cannot be rewound, once."""
    left = [stream]

    def read() -> Iterable[pa.RecordBatch]:
        if not left:
            raise UsageError(f"{label} was read already and cannot be read twice: pass a new one")
        return left.pop()

    return read
