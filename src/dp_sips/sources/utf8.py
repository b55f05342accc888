"""Text is UTF-8 or refused: Arrow takes any bytes that a Parquet, Arrow or JSON file calls text."""

from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips.errors import InputError


def check_utf8(column: pa.Array, name: str, label: str) -> None:
    """Refuse a text column, or a dictionary of texts, with bytes that are no UTF-8."""
    values = column.dictionary if isinstance(column, pa.DictionaryArray) else column
    offset = _OFFSETS.get(values.type)
    # Most text is ASCII, which shows sixteen times faster.
    if offset is None or _is_ascii(values, offset):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(not_utf8(name, label)) from error


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
