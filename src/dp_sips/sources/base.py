"""A source: where rows come from, and the way back to the caller's kind of table."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from dp_sips.errors import InputError, UsageError
from dp_sips.room import is_out_of_memory
from dp_sips.sources.batches import cut, exploded, plain_nulls, settle_nulls
from dp_sips.sources.intact import IntactCheck
from dp_sips.sources.types import carried, element, from_carried, to_carried
from dp_sips.sources.utf8 import Utf8Check


@dataclass(frozen=True)
class Part:
    """One file, or a whole table: a name for messages, and how to read it."""

    label: str
    read: Callable[[], Iterable[pa.RecordBatch]]

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

    Batches come in the order of `schema`, in any size; their text may be dictionary-encoded.
    """

    label: str
    schema: pa.Schema
    parts: tuple[Part, ...]
    restore: Callable[[pa.Table], Any]
    rows: int | None = None


@dataclass(frozen=True)
class Source:
    """A stream of Arrow batches of users and items.

    Public: the types and names of the columns. Sensitive: every value, and the number of rows.
    """

    feed: Feed
    nulls: str

    @cached_property
    def user_type(self) -> pa.DataType:
        """The type of the users in each batch."""
        return carried(self.feed.schema.field(0).type)

    @cached_property
    def item_schema(self) -> pa.Schema:
        """The item columns under their own names; of a list column, its elements."""
        items = list(self.feed.schema)[1:]
        return pa.schema([(item.name, carried(element(item.type))) for item in items])

    def rows(self) -> int | None:
        """Return the number of raw rows where it is known without reading them."""
        return self.feed.rows

    def restore(self, items: pa.Table) -> Any:
        """Turn released items (of `item_schema`) into the caller's kind of table."""
        own = pa.schema(list(self.feed.schema)[1:])
        return self.feed.restore(from_carried(items, own))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows: the column "user" first, then the items.

        Take columns by position: an item column may be called "user" as well.
        """
        seen = kept = False
        for batch in self._settled():
            seen = True
            if batch.num_rows:
                kept = True
                yield batch
        if not kept:
            raise InputError(
                f"no rows are left of {self.feed.label}: each has a null or an empty list"
                if seen
                else f"no rows in {self.feed.label}"
            )

    def _settled(self) -> Iterator[pa.RecordBatch]:
        """Yield one batch, possibly without rows, or more for each raw batch with rows."""
        check = Utf8Check()
        for part in self.feed.parts:
            with reading(part.label):
                for raw in part.batches():
                    for piece in cut(raw):
                        if piece.num_rows:
                            yield from self._finished(piece, part.label, check)

    def _finished(
        self, piece: pa.RecordBatch, label: str, check: Utf8Check
    ) -> Iterator[pa.RecordBatch]:
        types = [self.user_type, *self.item_schema.types]
        own_names = self.feed.schema.names
        if self.nulls == "error":
            settle_nulls(piece, self.nulls, own_names, label)
        # Users first: Arrow cannot repeat views or extension values for the elements of a list.
        users, *items = piece.columns
        piece = _batch([_carry(users, types[0]), *items], own_names)
        for batch in exploded(piece, keep_null=self.nulls == "group"):
            columns = list(map(_carry, batch.columns, types))
            for column, name in zip(columns, own_names, strict=True):
                check(column, name, label)
            ready = _batch(columns, ["user", *self.item_schema.names])
            yield settle_nulls(ready, self.nulls, own_names, label)


def _carry(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return plain_nulls(to_carried(column, kind))


def _batch(columns: Iterable[pa.Array], names: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=names)


@contextmanager
def reading(label: str) -> Iterator[None]:
    """Turn every failure of Arrow or the file system into an `InputError` that names the input."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except UnicodeError as error:
        raise InputError(f"{label} has text that is not UTF-8: convert it first") from error
    except PermissionError as error:
        raise InputError(f"{label} cannot be read: permission denied") from error
    except (pa.ArrowException, OSError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"{label} cannot be read: {error}") from error


def single_use(stream: Iterable[pa.RecordBatch], label: str) -> Callable[[], Any]:
    """Hand out a stream that cannot be rewound, once."""
    left = [stream]

    def read() -> Iterable[pa.RecordBatch]:
        if not left:
            raise UsageError(f"{label} was read already and cannot be read twice: pass a new one")
        return left.pop()

    return read
