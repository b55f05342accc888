"""Which column types can be a user or an item, and the type in which batches carry them.

Most types are carried as they are. Four kinds are not, and return on the way out: views, which
Arrow cannot filter or compare yet, travel as large text or large binary; small decimals, which it
cannot encode yet, as larger ones; extension types (UUID and the like) as their storage; a column
without any value as text. Of columns without a type, see values.py.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds

from dp_sips.errors import InputError
from dp_sips.sources.values import AnyKind, are_several, typed

JSON_TEXT: Final = {b"content-type": b"application/json"}
"""The metadata of a text column whose values are written as JSON writes them."""
_ALLOWED: tuple[Callable[[pa.DataType], bool], ...] = (
    kinds.is_integer,
    kinds.is_string,
    kinds.is_large_string,
    kinds.is_binary,
    kinds.is_large_binary,
    kinds.is_fixed_size_binary,
    kinds.is_boolean,
    kinds.is_date,
    kinds.is_timestamp,
    kinds.is_time,
    kinds.is_decimal,
    kinds.is_duration,
)
_LISTS: tuple[Callable[[pa.DataType], bool], ...] = (
    kinds.is_list,
    kinds.is_large_list,
    kinds.is_fixed_size_list,
    kinds.is_list_view,
    kinds.is_large_list_view,
)


def is_list(kind: pa.DataType) -> bool:
    """Whether each value of this type is a list of items."""
    return any(check(kind) for check in _LISTS)


def element(kind: pa.DataType) -> pa.DataType:
    """Return the type of one item: a list's element type, else the type itself."""
    return kind.value_type if is_list(kind) else kind


def batch_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which batches carry values of this (non-list) type."""
    if isinstance(kind, pa.BaseExtensionType):
        return batch_type(kind.storage_type)
    if kinds.is_dictionary(kind):
        return pa.dictionary(kind.index_type, batch_type(kind.value_type), kind.ordered)
    if kinds.is_string_view(kind):
        return pa.large_string()
    if kinds.is_binary_view(kind):
        return pa.large_binary()
    if kinds.is_decimal32(kind) or kinds.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return pa.string() if kinds.is_null(kind) else kind


def check_types(schema: pa.Schema, types: Mapping[str, pa.DataType], label: str) -> None:
    """Reject a column that has no dependable equality; the first field is the user's.

    Where a type is declared, that one counts.
    """
    user, *items = schema
    if is_list(user.type):
        raise InputError(
            f"column {user.name!r} of {label} has the type {user.type}, which cannot be a user"
        )
    for item in items:
        if is_list(item.type) and len(items) > 1:
            raise InputError(
                f"column {item.name!r} of {label} holds lists, and item names several columns: "
                "a list column can only be the one item column"
            )
    for field in schema:
        _check(field, types.get(field.name, element(field.type)), label)


def _check(field: pa.Field, kind: pa.DataType, label: str) -> None:
    plain = batch_type(kind)
    plain = plain.value_type if kinds.is_dictionary(plain) else plain
    if kinds.is_floating(plain):
        raise InputError(
            f"column {field.name!r} of {label} has the type {field.type}: cast it first (to "
            "integers, decimals or text), or declare such a type with types=: floats have no "
            "dependable equality"
        )
    if not any(check(plain) for check in _ALLOWED):
        raise InputError(
            f"column {field.name!r} of {label} has the type {field.type}, which cannot be a user "
            "or an item: cast it first, to integers, text, bytes, bools, dates, times or decimals"
        )


def to_batch_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Bring a column to its carried type; text may stay dictionary-encoded, as it is faster."""
    if array.type == kind:
        return array
    if isinstance(array, pa.ExtensionArray):
        return to_batch_type(array.storage, kind)
    if isinstance(array, pa.DictionaryArray):
        if array.type.value_type == kind:
            return array
        return _to_carried_dictionary(array, kind)
    return array.cast(kind)


def _to_carried_dictionary(array: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    encoded = kinds.is_dictionary(kind)
    indices = array.indices.cast(kind.index_type) if encoded else array.indices
    values = to_batch_type(array.dictionary, kind.value_type if encoded else kind)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=array.type.ordered)


def from_batch_type(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Bring released items back to the caller's own column types."""
    columns = [_own(table.column(i), element(field.type)) for i, field in enumerate(schema)]
    return pa.table(columns, names=schema.names)


def typed_table(table: pa.Table) -> pa.Table:
    """Give columns without a type the one that their values have.

    A column of several kinds, which is text as JSON writes it, says so in its metadata.
    """
    columns, fields = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        own, mark = column, None
        if isinstance(column.type, AnyKind):
            carried = column.cast(column.type.storage_type).combine_chunks()
            own, mark = typed(carried), JSON_TEXT if are_several(carried) else None
        columns.append(own)
        fields.append(pa.field(name, own.type, metadata=mark))
    return pa.table(columns, schema=pa.schema(fields))


def _own(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    if kinds.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if kinds.is_dictionary(kind):
        return pa.chunked_array([_own_dictionary(part, kind) for part in column.chunks])
    return column.cast(kind)


def _own_dictionary(array: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    if kinds.is_null(kind.value_type):
        return pa.nulls(len(array), kind)
    values = array.dictionary.cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered)
