"""Columns without a type: each value is taken by itself, and carries its own kind.

JSON, pandas columns of objects and plain Python data have no schema. A type inferred from all rows
would let one user change what the values of others mean. So such a column is carried as bytes that
say of what kind each value is (kinds.py), whatever else the column holds. What comes out has a type
that follows from the released values alone.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dp_sips.errors import InputError
from dp_sips.sources import kinds
from dp_sips.sources.flat import as_arrow, flat
from dp_sips.sources.kinds import CARRIED, Kind

Part = tuple[NDArray[np.int64], pa.Array]
"""Some rows of a column, and their values."""


class AnyKind(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column in which each value carries its own kind."""

    def __init__(self) -> None:
        super().__init__(CARRIED, "dp_sips.any_kind")

    def __arrow_ext_serialize__(self) -> bytes:
        """Return its parameters: there are none."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> "AnyKind":
        """Return the one type there is."""
        del storage_type, serialized
        return cls()


ANY_KIND: Final = AnyKind()
_LISTS: Final = (list, tuple, set, frozenset, np.ndarray)
_TIMES: Final = (kinds.LOCAL_TIME, kinds.INSTANT)
_PLAIN: Final = "use text, whole numbers, bytes, truth values, dates, times or decimals"


def encode(
    values: Sequence[Any], name: str, label: str, declared: pa.DataType | None = None
) -> pa.Array:
    """Return Python values as bytes, each by its own kind; None is null.

    Whole numbers of more than 64 bits need a declared type that can hold their digits.

    Sensitive: the values. No message shows one, but that a column has values of some kind.
    """
    types = set(map(type, values)) - {type(None)}
    found = {_checked(kinds.kind_of_type(kind), kind, name, label) for kind in types}
    if len(found) == 1 and kinds.LOCAL_TIME not in found:
        return _encoded(found.pop(), values, name, label, declared)
    groups: dict[Any, list[int]] = {}
    for row, value in enumerate(values):
        if value is not None:
            groups.setdefault(kinds.kind_of(value), []).append(row)
    parts = [
        (np.array(rows), _encoded(kind, [values[row] for row in rows], name, label, declared))
        for kind, rows in groups.items()
    ]
    return _in_rows(parts, len(values), CARRIED)


def encode_items(
    values: Sequence[Any],
    name: str,
    label: str,
    *,
    lists: bool,
    declared: pa.DataType | None = None,
) -> pa.Array:
    """Return values as bytes or, where one of them is a list of items, lists of bytes."""
    if not any(isinstance(value, _LISTS) for value in values):
        return encode(values, name, label, declared)
    if not lists:
        raise InputError(f"column {name!r} of {label} has lists: only a single item column may")
    rows = [_listed(value) for value in values]
    ends = np.cumsum([0, *map(len, rows)])
    items = encode([item for row in rows for item in row], name, label, declared)
    null = pa.array([value is None for value in values])
    return pa.LargeListArray.from_arrays(pa.array(ends), items, mask=null)


def _listed(value: Any) -> Sequence[Any]:
    """Return the items of a list; anything else is one item, and null none."""
    if isinstance(value, _LISTS):
        return list(value)
    return [] if value is None else [value]


def encode_array(values: pa.Array) -> pa.Array:
    """Return Arrow's text, 64-bit integers, truth values or nulls as bytes."""
    match values.type:
        case kind if pa.types.is_null(kind):
            return pa.nulls(len(values), CARRIED)
        case kind if pa.types.is_boolean(kind):
            return kinds.BOOL.to_bytes(values)
        case kind if pa.types.is_integer(kind):
            return kinds.INTEGER.to_bytes(values)
    return kinds.TEXT.to_bytes(values)


def python_values(values: pa.Array) -> list[Any]:
    """Return the Python values that they were."""
    found: list[Any] = [None] * len(values)
    for rows, part in _decoded(values):
        plain = part.to_pylist()
        if pa.types.is_decimal(part.type):
            plain = [_short(value) for value in plain]
        for row, value in zip(rows.tolist(), plain, strict=True):
            found[row] = value
    return found


def listed(column: pa.ChunkedArray) -> list[Any]:
    """Return the Python values of a released column, of any type."""
    if not isinstance(column.type, AnyKind):
        return column.to_pylist()  # type: ignore[no-any-return]
    return python_values(column.cast(CARRIED).combine_chunks())


def texts(values: pa.Array, name: str, label: str) -> pa.Array:
    """Return values that are all text."""
    if any(part.type != pa.string() for _, part in _decoded(values)):
        raise InputError(
            f"column {name!r} of {label} has values that are not text: declare its type, as "
            f'types={{{name!r}: "int64"}} (--type {name}=int64)'
        )
    return values.cast(pa.large_string())


def typed(values: pa.Array) -> pa.Array:
    """Return the values in the one Arrow type that they all have.

    Values of several kinds come as text, each as JSON writes it. No value at all is text, too.
    """
    parts = list(_decoded(values))
    if len(parts) > 1:
        found = [None if value is None else _json(value) for value in python_values(values)]
        return pa.array(found, pa.string())
    return _in_rows(parts, len(values), parts[0][1].type if parts else pa.string())


def are_several(values: pa.Array) -> bool:
    """Whether the values are of several kinds."""
    return sum(1 for _ in _decoded(values)) > 1


def describe(values: pa.Array) -> str:
    """Name the types of the values."""
    return " or ".join(sorted({str(part.type) for _, part in _decoded(values)})) or str(pa.string())


def converted(
    values: pa.Array, kind: pa.DataType, convert: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Bring the values of each kind to one type."""
    parts = [(rows, convert(part)) for rows, part in _decoded(values)]
    return _in_rows(parts, len(values), kind)


def _checked(kind: Kind | None, python_type: type, name: str, label: str) -> Kind:
    if kind is not None:
        return kind
    if issubclass(python_type, float):
        raise InputError(
            f"column {name!r} of {label} has floats, which have no dependable equality: {_PLAIN}"
        )
    raise InputError(
        f"column {name!r} of {label} has values of the type {python_type.__name__}, which cannot "
        f"be a user or an item: {_PLAIN}"
    )


def _encoded(
    kind: Kind, values: Sequence[Any], name: str, label: str, declared: pa.DataType | None
) -> pa.Array:
    fix = f'types={{{name!r}: "string"}} (--type {name}=string)'
    fix = f"declare its type, as {fix}" if kind is kinds.INTEGER else "use text"
    misfit = f"column {name!r} of {label} has a value that does not fit {kind.type}: {fix}"
    if kind in _TIMES and any(getattr(value, "nanosecond", 0) for value in values):
        raise InputError(misfit)  # or Arrow would cut nanoseconds off
    try:
        if kind is kinds.INTEGER and _holds_digits(declared) and not _all_fit(values):
            # Those that fit mean the same in either way.
            return kinds.TEXT.encode(None if value is None else str(int(value)) for value in values)
        return kind.encode(values)
    except (pa.ArrowException, OverflowError, ValueError):
        # Without its cause, which may show the value.
        raise InputError(misfit) from None


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are text."""
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)


def _holds_digits(declared: pa.DataType | None) -> bool:
    """Whether whole numbers are brought to this type by their digits."""
    if declared is None:
        return False
    number = pa.types.is_integer(declared) or pa.types.is_decimal(declared)
    return bool(number or is_text(declared))


def _all_fit(integers: Sequence[Any]) -> bool:
    return all(value is None or -(1 << 63) <= value < 1 << 63 for value in integers)


def _decoded(values: pa.Array) -> Iterator[Part]:
    """Yield the values of each kind, without nulls, in the order of kinds."""
    tags = pa.array([kind.tag for kind in kinds.TAGGED], CARRIED)
    places = pc.index_in(pc.binary_slice(values, 0, 1), value_set=tags)
    places = pc.if_else(values.is_valid(), pc.fill_null(places, len(tags)), -1)
    codes = flat(places.cast(pa.int64()))
    for code, kind in enumerate((*kinds.TAGGED, kinds.TEXT)):
        rows = np.flatnonzero(codes == code)
        if len(rows):
            yield rows, kind.from_bytes(values.take(as_arrow(rows)))


def _in_rows(parts: Sequence[Part], total: int, kind: pa.DataType) -> pa.Array:
    """Put values back where they were; what is left is null."""
    if not parts:
        return pa.nulls(total, kind)
    places = np.full(total, -1)
    rows = np.concatenate([rows for rows, _ in parts])
    places[rows] = np.arange(len(rows))
    values = pa.concat_arrays([part for _, part in parts])
    return values.take(pa.array(places, mask=places < 0))


def spelled(value: Decimal) -> str:
    """Return the digits of a decimal, which do not depend on the scale of others beside it."""
    return f"{_short(value):f}"


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        text = spelled(value)
        return text if "." in text else f"{text}.0"
    return json.dumps(value, ensure_ascii=False, default=str)


def _short(value: Decimal) -> Decimal:
    """Drop the zeros that the column's scale added."""
    # Not by normalize(), which rounds to 28 digits.
    text = f"{value:f}"
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)
