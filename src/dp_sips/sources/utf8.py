"""Text is UTF-8 or refused: Arrow takes any bytes that a Parquet, Arrow or JSON file calls text."""

from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.batches import same_bytes


class Utf8Check:
    """Looks at columns as they come; at a dictionary that many batches share, once."""

    def __init__(self) -> None:
        self._good: dict[str, pa.Array] = {}

    def __call__(self, column: pa.Array, name: str, label: str) -> None:
        """Reject a text column, or a dictionary of texts, with bytes that are not UTF-8."""
        if not isinstance(column, pa.DictionaryArray):
            _check(column, name, label)
        elif name not in self._good or not same_bytes(self._good[name], column.dictionary):
            _check(column.dictionary, name, label)
            self._good[name] = column.dictionary


def _check(values: pa.Array, name: str, label: str) -> None:
    offset = _OFFSETS.get(values.type)
    # Most text is ASCII, which shows sixteen times faster.
    if offset is None or _is_ascii(values, offset):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        # Without its cause, which says in which row.
        raise InputError(not_utf8(name, label)) from None


def not_utf8(name: str, label: str) -> str:
    """Say so, without the text."""
    return f"column {name!r} of {label} is not UTF-8 text: convert it to UTF-8 first"


_OFFSETS: dict[pa.DataType, Any] = {pa.string(): np.int32, pa.large_string(): np.int64}


def _is_ascii(values: pa.Array, offset: Any) -> bool:
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return True
    skipped = values.offset * np.dtype(offset).itemsize
    ends = np.frombuffer(offsets, offset, count=len(values) + 1, offset=skipped)
    return bool(np.frombuffer(data, np.int8)[ends[0] : ends[-1]].min(initial=0) >= 0)
