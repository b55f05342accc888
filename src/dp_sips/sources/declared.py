"""Types that the caller declares: their names, and how values are brought to them."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

from dp_sips.errors import InputError, UsageError, did_you_mean
from dp_sips.sources.types import element
from dp_sips.sources.values import AnyKind, converted, is_text, spelled

_UNITS: Final = ("s", "ms", "us", "ns")
_NAMES: Final = {
    "string": pa.string(),
    "str": pa.string(),
    "text": pa.string(),
    "int": pa.int64(),
    "integer": pa.int64(),
    "bigint": pa.int64(),
    **{str(kind): kind for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): kind for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "datetime": pa.timestamp("us"),
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in _UNITS},
    "binary": pa.binary(),
    "bytes": pa.binary(),
}
_FIRST_NAMES: Final = {kind: name for name, kind in reversed(_NAMES.items())}
"""The first name of each type: "int" of int64."""
_WRITTEN: Final = {
    pa.date32(): "write dates as 2026-01-31, or ",
    **{pa.timestamp(unit): "write times as 2026-01-31 13:45:00, or " for unit in _UNITS},
}
_WIDEST: Final = "s"
"""The unit of timestamps that every date fits."""
_DECIMAL: Final = re.compile(r"(?:decimal|decimal128|numeric)\((\d+),\s*(\d+)\)")
_LONGEST_DECIMAL: Final = 38

Cast = Callable[[pa.Array, pa.DataType], pa.Array]


def declared_types(types: Mapping[str, Any] | None) -> dict[str, pa.DataType]:
    """Return the Arrow types that names, or Arrow types themselves, stand for."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise UsageError(f'types must be a mapping, as {{"zip": "string"}}, got {types!r}')
    return {column: _declared(column, kind) for column, kind in types.items()}


def as_declared(values: pa.Array, raw: pa.DataType, kind: pa.DataType, where: str) -> pa.Array:
    """Bring the values of a column to the type that its caller declared.

    Sensitive: the values; the message says that one does not fit, and not which.
    """
    if not isinstance(raw, AnyKind):
        return _fitted(_cast, values, kind, where)
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    return converted(values, kind, lambda part: _fitted(_cast_each, part, kind, where))


def _fitted(bring: Cast, values: pa.Array, kind: pa.DataType, where: str) -> pa.Array:
    try:
        return bring(values, kind)
    except pa.ArrowException:
        # Without its cause, which shows the value.
        raise InputError(
            f"{where} has a value that is not of the type {_named(kind)}: {_fix(values.type, kind)}"
        ) from None


def _fix(found: pa.DataType, kind: pa.DataType) -> str:
    """Say how to write text, or which unit holds times; any other value needs another type."""
    if kinds.is_dictionary(found):
        found = found.value_type
    if is_text(found):
        return f"{_WRITTEN.get(kind, '')}declare another type"
    if not kinds.is_timestamp(kind) or not (kinds.is_timestamp(found) or kinds.is_date(found)):
        return "declare another type"
    unit = found.unit if kinds.is_timestamp(found) else _WIDEST
    return f"declare a unit that fits, as {pa.timestamp(unit, kind.tz)}, or another type"


def check_casts(schema: pa.Schema, types: Mapping[str, pa.DataType], label: str) -> None:
    """Reject a declaration that no value could follow, before any is read."""
    for field in (field for field in schema if field.name in types):
        raw, kind = element(field.type), types[field.name]
        plain = pa.string() if isinstance(raw, AnyKind) else raw
        try:
            _cast(pa.nulls(0, plain), kind)
        except pa.ArrowException:
            raise InputError(
                f"column {field.name!r} of {label} is {plain}, and cannot be read as {_named(kind)}"
            ) from None


def _named(kind: pa.DataType) -> str:
    """Return a type as one declares it."""
    return _FIRST_NAMES.get(kind) or str(kind).replace("decimal128", "decimal")


def _cast_each(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast values without a type: as text, decimals do not take on the scale of others."""
    if kinds.is_decimal(values.type) and is_text(kind):
        values = pa.array(map(spelled, values.to_pylist()), pa.string())
    return _cast(values, kind)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if kinds.is_decimal(kind) and kinds.is_integer(values.type):
        # Arrow refuses small integers where the type's largest would not fit.
        values = values.cast(pa.string())
    return values.cast(kind)


def _declared(column: str, kind: Any) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return element(kind)
    if not isinstance(kind, str):
        raise UsageError(f"the type of {column!r} must be a name or an Arrow type, got {kind!r}")
    name = kind.strip().lower()
    if (decimal := _DECIMAL.fullmatch(name)) and 0 < int(decimal[1]) <= _LONGEST_DECIMAL:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if name not in _NAMES:
        known = (*_NAMES, "decimal(10,2)")
        raise UsageError(f"unknown type {kind!r} of {column!r}: {did_you_mean(name, known)}")
    return _NAMES[name]
