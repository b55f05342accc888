"""JSON lines: one object per line. Each value carries its own kind, and a missing one is null.

Arrow reads a block of lines in which each field has values of one kind; Python reads any other.
Both give the same bytes for the same value (values.py), so which of them reads a line, which
depends on the lines beside it, changes nothing but the time.
"""

import io
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.json as pajson

from dp_sips.errors import InputError
from dp_sips.sources.columns import Columns
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.first_bytes import explaining
from dp_sips.sources.headers import FileHeader
from dp_sips.sources.nesting import check_nesting
from dp_sips.sources.types import is_list
from dp_sips.sources.utf8 import Utf8Check
from dp_sips.sources.values import ANY_KIND, encode_array, encode_items

BLOCK = 1 << 24
_FIRST_LINES: Final = 1 << 16
_KINDS: Final = (pa.string(), pa.int64(), pa.bool_())
"""What Arrow reads as it is written."""
_EXPECTED: Final = 'expected one object per line, like {"user": 1, "item": "a"}'


def read_header(file: DataFile, columns: Columns) -> FileHeader:
    """Return the fields that the caller names: a file of JSON lines has no header."""
    schema = schema_of(columns, str(file), file.in_path)
    return FileHeader(schema, lambda: _read(file, schema, columns))


def schema_of(columns: Columns, label: str, in_path: Container[str] = ()) -> pa.Schema:
    """Return the named fields that are not in the path, as columns without a type."""
    named = (columns.user, *columns.items)
    names = columns.pick([name for name in named if name is not None], label)
    inside = [name for name in names if name not in in_path]
    # A field that no line has: it has as many rows as the others.
    return pa.schema([(name, ANY_KIND) for name in inside or [""]])


def list_column(columns: Columns) -> str | None:
    """Return the field whose value may be a list of items."""
    return columns.items[0] if columns.items and columns.lists else None


def _read(file: DataFile, schema: pa.Schema, columns: Columns) -> Iterator[pa.RecordBatch]:
    parser = Parser(schema, str(file), list_column(columns), columns.types)
    with explaining(file, "json"):
        yield from map(parser, _blocks(file))


def _blocks(file: DataFile) -> Iterator[bytes]:
    """Yield whole lines, a block at a time."""
    with file.stream() as stream:
        rest = b""
        while head := stream.read(BLOCK):
            whole, newline, begun = (rest + head).rpartition(b"\n")
            if len(begun) > BLOCK:
                size = BLOCK >> 20
                raise InputError(
                    f"{file} has a line of more than {size} MB: spread the user's items over "
                    "several lines"
                )
            if newline:
                yield whole
            rest = begun
        yield rest


@dataclass(frozen=True)
class Lines:
    """Reads batches with one column of lines."""

    schema: pa.Schema
    label: str
    lists: str | None
    types: Mapping[str, pa.DataType]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream the needed fields."""
        parser = Parser(self.schema, self.label, self.lists, self.types)
        for batch in batches:
            yield parser(b"\n".join(batch.column(0).cast(pa.large_binary()).to_pylist()))


class Parser:
    """Turns blocks of lines into batches; remembers which kinds the last block had.

    `lists` is the field whose value may be a list of items; `types` are those that are declared.
    """

    def __init__(
        self, schema: pa.Schema, label: str, lists: str | None, types: Mapping[str, pa.DataType]
    ) -> None:
        self._schema = schema
        self._label = label
        self._lists = lists
        self._types = types
        self._guess: pa.Schema | None = None
        self._check = Utf8Check()

    def __call__(self, block: bytes) -> pa.RecordBatch:
        """Return the needed fields of the block's lines."""
        check_nesting(block, self._label)
        columns = (self._by_arrow(block) if block.strip() else None) or self._by_python(block)
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)

    def _by_arrow(self, block: bytes) -> list[pa.Array] | None:
        """Read fields that have one kind of values each; of any other block, return nothing."""
        try:
            self._guess = self._guess or self._guessed(block)
            table = _parsed(block, self._guess, "ignore")
        except (pa.ArrowException, UnicodeError):
            self._guess = None
            return None
        columns = [table[name].combine_chunks() for name in self._schema.names]
        pairs = list(zip(columns, self._schema.names, strict=True))
        if any(is_list(column.type) and name != self._lists for column, name in pairs):
            return None
        return [self._encoded(*pair) for pair in pairs]

    def _guessed(self, block: bytes) -> pa.Schema:
        """Guess the kinds by the first lines; a wrong guess costs time, and nothing else."""
        end = block.find(b"\n", _FIRST_LINES)
        found = _parsed(block[:end] if end > 0 else block, None, "infer").schema
        kinds = [_kind(found, name) for name in self._schema.names]
        if not {kind.value_type if is_list(kind) else kind for kind in kinds} <= set(_KINDS):
            raise pa.ArrowInvalid("for Python")
        return pa.schema(list(zip(self._schema.names, kinds, strict=True)))

    def _encoded(self, column: pa.Array, name: str) -> pa.Array:
        values = column.values if is_list(column.type) else column
        self._check(values, name, self._label)
        values = encode_array(values)
        if not is_list(column.type):
            return values
        return pa.ListArray.from_arrays(column.offsets, values, mask=column.is_null())

    def _by_python(self, block: bytes) -> list[pa.Array]:
        rows = list(self._objects(block))
        return [
            encode_items(
                [row.get(name) for row in rows],
                name,
                self._label,
                lists=name == self._lists,
                declared=self._types.get(name),
            )
            for name in self._schema.names
        ]

    def _objects(self, block: bytes) -> Iterator[dict[str, Any]]:
        try:
            for line in block.decode("utf-8-sig").split("\n"):
                if line.strip():
                    yield dict(_DECODER.decode(line).items())
        except (ValueError, AttributeError, RecursionError):
            # Without its cause, which shows the line.
            raise InputError(f"{self._label} cannot be read as JSON lines: {_EXPECTED}") from None


def _parsed(block: bytes, schema: pa.Schema | None, others: str) -> pa.Table:
    return pajson.read_json(
        io.BytesIO(block),
        read_options=pajson.ReadOptions(block_size=len(block) + 1),
        parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
    )


def _kind(schema: pa.Schema, name: str) -> pa.DataType:
    """Return how to read a field: text stays text, and what Arrow cannot keep is for Python."""
    kind = schema.field(name).type if name in schema.names else pa.string()
    plain = kind.value_type if is_list(kind) else kind
    if pa.types.is_timestamp(plain) or pa.types.is_null(plain):
        plain = pa.string()
    return pa.list_(plain) if is_list(kind) else plain


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)
