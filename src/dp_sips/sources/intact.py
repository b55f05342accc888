"""Corrupt batches are refused: Arrow takes offsets, views and indices from a file as they are.

Only what can point outside of its buffers is looked at, once a batch: that costs a nanosecond or
two a row, and nothing for numbers. What text says is checked by `Utf8Check`, after nulls are gone.
"""

import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.errors import InputError
from dp_sips.sources.batches import same_bytes
from dp_sips.sources.types import is_list

_OFFSETS = {
    pa.string(): pa.int32(),
    pa.binary(): pa.int32(),
    pa.large_string(): pa.int64(),
    pa.large_binary(): pa.int64(),
}
_VIEW_LISTS = (pa.ListViewArray, pa.LargeListViewArray)


class IntactCheck:
    """Looks at batches as they come; at a dictionary that many of them share, once."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._good: dict[int, pa.Array] = {}

    def __call__(self, batch: pa.RecordBatch) -> None:
        """Reject a batch with a value that is not within its buffers or its type's range."""
        for place, column in enumerate(batch.columns):
            try:
                self._check(column, place)
            except (pa.ArrowInvalid, IndexError) as error:
                # Arrow's own message may hold a value.
                raise InputError(
                    f"{self._label} cannot be read: the column {batch.schema.names[place]!r} is "
                    "corrupt"
                ) from error

    def _check(self, array: pa.Array, place: int) -> None:
        array.validate()
        if isinstance(array, pa.ExtensionArray):
            self._check(array.storage, place)
        elif isinstance(array, pa.DictionaryArray):
            self._check_shared(array.dictionary, place)
            _check_within(array.indices, len(array.dictionary) - 1)
        elif isinstance(array, _VIEW_LISTS):
            self._check_shared(array.values, place)
            _check_views(array)
        elif is_list(array.type):
            self._check(_own_values(array), place)
        elif array.type in _OFFSETS:
            _check_ascending(_offsets(array))
        elif array.type == pa.string_view():
            array.view(pa.binary_view()).validate(full=True)
        else:
            array.validate(full=True)

    def _check_shared(self, values: pa.Array, place: int) -> None:
        good = self._good.get(place)
        if good is None or not same_bytes(good, values):
            self._check(values, place)
            self._good[place] = values


def _own_values(lists: pa.Array) -> pa.Array:
    """Return the values of these lists, not those of the array that they may be a slice of."""
    if isinstance(lists, pa.FixedSizeListArray):
        size = lists.type.list_size
        return lists.values.slice(lists.offset * size, len(lists) * size)
    offsets = lists.offsets
    _check_ascending(offsets)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return lists.values.slice(first, last - first)


def _offsets(values: pa.Array) -> pa.Array:
    """Return where each value begins, and where the last one ends, in the buffer of all."""
    buffer = values.buffers()[1]
    count = len(values) + 1 if len(values) else 0
    return pa.Array.from_buffers(_OFFSETS[values.type], count, [None, buffer], 0, values.offset)


def _check_ascending(offsets: pa.Array) -> None:
    """Reject values that end before they begin; that the last ends in the buffer is known."""
    if not pc.all(pc.less_equal(offsets[:-1], offsets[1:]), min_count=0).as_py():
        raise IndexError("a value ends before it begins")


def _check_views(lists: pa.Array) -> None:
    offsets, sizes = (part.cast(pa.int64()) for part in (lists.offsets, lists.sizes))
    for bounds in (offsets, sizes, pc.add(offsets, sizes)):
        _check_within(bounds, len(lists.values))


def _check_within(numbers: pa.Array, most: int) -> None:
    span = pc.min_max(numbers).as_py()
    if span["min"] is not None and not 0 <= span["min"] <= span["max"] <= most:
        raise IndexError("a place is out of range")
