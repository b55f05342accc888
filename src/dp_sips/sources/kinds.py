"""Kinds of values, and the bytes that stand for a value of each kind.

Text is its own UTF-8; a value of any other kind begins with a byte that no UTF-8 has:

    F5  a truth value                       FA  a point in time, of any time zone
    F6  a whole number of 64 bits           FB  bytes
    F7  a decimal, without trailing zeros   FC  a time of day
    F8  a date                              FD  a duration
    F9  a local time, without a time zone

So 1, "1", Decimal(1) and True are four values. Within a kind, bytes sort as the values do.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from numbers import Integral
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.sources.flat import as_arrow, flat

CARRIED: Final = pa.large_binary()
"""The Arrow type of the bytes."""
_SIGN: Final = np.uint64(1 << 63)
_WIDTH: Final = 9
"""Bytes of what is a number to Arrow: its kind, and 64 bits."""
_MOST_DIGITS: Final = 38
"""Digits of a decimal before the point, and after it: then any set of them has an Arrow type."""
_NEGATIVE, _ZERO, _POSITIVE = b"\0", b"\1", b"\2"
_INVERTED: Final = bytes(range(255, -1, -1))


@dataclass(frozen=True)
class Kind:
    """A kind of value.

    Attributes:
        tag: The first byte; text has none.
        type: The Arrow type; of decimals, one that holds them all.
        to_bytes: From Arrow values of that type, with nulls.
        from_bytes: Back, without nulls.
    """

    tag: bytes
    type: pa.DataType
    to_bytes: Callable[[pa.Array], pa.Array]
    from_bytes: Callable[[pa.Array], pa.Array]

    def encode(self, values: Iterable[Any]) -> pa.Array:
        """Return Python values of this kind as bytes; None is null."""
        return self.to_bytes(pa.array(list(values), self.type))


def kind_of(value: Any) -> Kind | None:
    """Return the kind of a Python value, if it has one."""
    python_type: type = type(value)
    kind = kind_of_type(python_type)
    return INSTANT if kind is LOCAL_TIME and value.tzinfo is not None else kind


@cache
def kind_of_type(python_type: type) -> Kind | None:
    """Return the kind of a type's values; of times, that of local ones."""
    found = (kind for parent, kind in _PYTHON_TYPES if issubclass(python_type, parent))
    return next(found, None)


def _text_to_bytes(values: pa.Array) -> pa.Array:
    return values.cast(CARRIED)


def _text_from_bytes(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _number(tag: bytes, kind: pa.DataType) -> Kind:
    """Return a kind whose values are numbers to Arrow: 64 bits, the largest first, in order."""

    def to_bytes(values: pa.Array) -> pa.Array:
        numbers = _cast(values, kind, pa.int64())
        matrix = np.empty((len(numbers), _WIDTH), np.uint8)
        matrix[:, 0] = tag[0]
        words = flat(pc.fill_null(numbers, 0)).view(np.uint64) ^ _SIGN
        matrix[:, 1:] = words.astype(">u8").view(np.uint8).reshape(-1, _WIDTH - 1)
        return _fixed(matrix, valid=numbers.is_valid())

    def from_bytes(values: pa.Array) -> pa.Array:
        fixed = values.cast(pa.binary(_WIDTH))
        matrix = np.frombuffer(fixed.buffers()[1], np.uint8).reshape(-1, _WIDTH)
        matrix = matrix[fixed.offset : fixed.offset + len(fixed), 1:]
        words = np.ascontiguousarray(matrix).view(">u8").ravel().astype(np.uint64) ^ _SIGN
        return _cast(as_arrow(words.view(np.int64)), pa.int64(), kind)

    return Kind(tag, kind, to_bytes, from_bytes)


def _cast(values: pa.Array, source: pa.DataType, target: pa.DataType) -> pa.Array:
    """Cast between 64-bit integers and a type; of dates, Arrow does it by way of 32 bits."""
    by_way = values.cast(pa.int32()) if pa.date32() in (source, target) else values
    return by_way.cast(target)


def _fixed(matrix: Any, valid: pa.Array) -> pa.Array:
    buffers = [None, pa.py_buffer(matrix.tobytes())]
    values = pa.Array.from_buffers(pa.binary(_WIDTH), len(matrix), buffers).cast(CARRIED)
    return values if matrix.size == 0 else pc.if_else(valid, values, pa.scalar(None, CARRIED))


def _tagged(tag: bytes, kind: pa.DataType, to: Any, back: Any) -> Kind:
    """Return a kind whose values become bytes one by one."""

    def to_bytes(values: pa.Array) -> pa.Array:
        found = [None if value is None else tag + to(value) for value in values.to_pylist()]
        return pa.array(found, CARRIED)

    def from_bytes(values: pa.Array) -> pa.Array:
        found = [back(value[1:]) for value in values.to_pylist()]
        return pa.array(found) if pa.types.is_decimal(kind) else pa.array(found, kind)

    return Kind(tag, kind, to_bytes, from_bytes)


def _decimal_to_bytes(value: Decimal) -> bytes:
    """Return sign, exponent and digits: negative ones inverted, the largest first."""
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    whole = len(text) + int(exponent)
    text = text.rstrip("0")
    if not text:
        return _ZERO
    size = bytes([128 + whole]) + text.encode()
    # The end of a negative number's digits must come after any more of them.
    return _NEGATIVE + (size + b"\0").translate(_INVERTED) if sign else _POSITIVE + size


def _decimal_from_bytes(content: bytes) -> Decimal:
    if content == _ZERO:
        return Decimal(0)
    size = content[1:] if content[:1] == _POSITIVE else content[1:-1].translate(_INVERTED)
    digits = tuple(map(int, size[1:].decode()))
    return Decimal((int(content[:1] == _NEGATIVE), digits, size[0] - 128 - len(digits)))


def _itself(content: bytes) -> bytes:
    return content


TEXT: Final = Kind(b"", pa.large_string(), _text_to_bytes, _text_from_bytes)
BOOL: Final = _number(b"\xf5", pa.bool_())
INTEGER: Final = _number(b"\xf6", pa.int64())
DECIMAL: Final = _tagged(
    b"\xf7",
    pa.decimal256(2 * _MOST_DIGITS, _MOST_DIGITS),
    _decimal_to_bytes,
    _decimal_from_bytes,
)
DATE: Final = _number(b"\xf8", pa.date32())
LOCAL_TIME: Final = _number(b"\xf9", pa.timestamp("us"))
INSTANT: Final = _number(b"\xfa", pa.timestamp("us", "UTC"))
BYTES: Final = _tagged(b"\xfb", pa.large_binary(), _itself, _itself)
TIME: Final = _number(b"\xfc", pa.time64("us"))
DURATION: Final = _number(b"\xfd", pa.duration("us"))

TAGGED: Final = (
    BOOL, INTEGER, DECIMAL, DATE, LOCAL_TIME, INSTANT, BYTES, TIME, DURATION,
)  # fmt: skip
"""All kinds but text."""

_PYTHON_TYPES: tuple[tuple[type, Kind], ...] = (
    (str, TEXT),
    (bool, BOOL),
    (np.bool_, BOOL),
    (Integral, INTEGER),
    (bytes, BYTES),
    (datetime, LOCAL_TIME),
    (date, DATE),
    (time, TIME),
    (timedelta, DURATION),
    (Decimal, DECIMAL),
)
"""The first fitting row counts: to Python a bool is an int, and a datetime a date."""
