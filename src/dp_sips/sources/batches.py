"""What happens to each raw batch: cut, exploded, its nulls settled."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.errors import InputError
from dp_sips.sources.finding import NUMBER, kind_of
from dp_sips.sources.flat import as_arrow, flat
from dp_sips.sources.types import is_list

ROWS = 1 << 18
"""Rows in a batch: large enough that Python's share is nothing, small enough for the cache."""
_BYTES = 1 << 24
"""Bytes in a batch that is read or copied: long texts come in fewer rows."""


def batch_rows(rows: int, size: int) -> int:
    """Return how many rows make a batch, where this many rows have this size in bytes."""
    return max(1, min(ROWS, _BYTES * rows // max(size, 1)))


def in_pieces(batch: pa.RecordBatch, rows: int = ROWS) -> Iterator[pa.RecordBatch]:
    """Cut a batch into pieces of at most `rows` rows, without copying."""
    if batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def exploded(batch: pa.RecordBatch, *, keep_null: bool) -> Iterator[pa.RecordBatch]:
    """Give each element of the list column (the second one) a row of its own.

    A null list counts as one null item, which `keep_null` keeps. Long lists are taken a few rows
    at a time, so that the repeated users never outgrow a batch by much.
    """
    if not is_list(batch.column(1).type):
        yield batch
        return
    elements = pc.sum(pc.list_value_length(batch.column(1))).as_py() or 0
    rows = max(1, ROWS * batch.num_rows // max(elements, batch.num_rows, 1))
    for piece in in_pieces(batch, rows):
        yield from in_pieces(_explode(piece, keep_null=keep_null))


def _explode(batch: pa.RecordBatch, *, keep_null: bool) -> pa.RecordBatch:
    """Repeat each user by its list's length; a null list, if kept, is one null in its place."""
    users, lists = batch.columns
    # Not by list_parent_indices: that counts the values that a null list may cover, too.
    lengths = pc.fill_null(pc.list_value_length(lists), int(keep_null))
    parents = np.repeat(np.arange(len(lists)), lengths)
    values = pc.list_flatten(lists)
    if keep_null and lists.null_count:
        null = flat(lists.is_null().cast(pa.uint8())).view(np.bool_)[parents]
        values = values.take(pa.array(np.cumsum(~null) - 1, mask=null))
    return pa.record_batch([users.take(as_arrow(parents)), values], names=["user", "item"])


def settle_nulls(batch: pa.RecordBatch, nulls: str, names: list[str], label: str) -> pa.RecordBatch:
    """Apply the caller's rule for nulls; the first column is the user's.

    Public: the names of the file and the column. Sensitive, and in no message: the values.
    """
    found = [i for i, column in enumerate(batch.columns) if column.null_count]
    if not found or (nulls == "group" and found[0] > 0):
        return batch
    if nulls != "drop":
        raise InputError(_null_message(names[found[0]], label, nulls, user=found[0] == 0))
    valid = batch.column(found[0]).is_valid()
    for i in found[1:]:
        valid = pc.and_(valid, batch.column(i).is_valid())
    return batch.filter(valid)


def _null_message(name: str, label: str, nulls: str, *, user: bool) -> str:
    if user and nulls == "group":
        return (
            f'column {name!r} of {label} has nulls{_missing(label)}, and nulls="group" is for '
            'items: fill in the users first, or leave such rows out with nulls="drop"'
        )
    fix = 'nulls="drop" leaves such rows out'
    if not user:
        fix += ', nulls="group" keeps null as an item of its own'
    return f"column {name!r} of {label} has nulls{_missing(label)}: {fix}"


def _missing(label: str) -> str:
    """Say what else is null in a file without a header: a wrong name shows in no other way."""
    is_json = kind_of(Path(label.partition(NUMBER)[0])) == "json"
    return " (so has a line without that field: is the name right?)" if is_json else ""


def plain_nulls(array: pa.Array) -> pa.Array:
    """Move nulls that hide among a dictionary's values to its indices, where the rule sees them."""
    if not isinstance(array, pa.DictionaryArray) or not array.dictionary.null_count:
        return array
    valid = array.dictionary.is_valid()
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    places = pc.if_else(valid, places, None).cast(array.indices.type)
    indices = places.take(array.indices)
    values = array.dictionary.drop_null()
    return pa.DictionaryArray.from_arrays(indices, values, ordered=array.type.ordered)


def same_bytes(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays have the same bytes in memory: quick to tell, and enough to be equal."""
    if len(one) != len(other) or one.offset or other.offset or one.type != other.type:
        return False
    return all(
        a is b is None or (a is not None and b is not None and a.equals(b))
        for a, b in zip(one.buffers(), other.buffers(), strict=True)
    )
