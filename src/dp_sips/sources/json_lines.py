"""JSON lines: one object per line. A JSON string is text, whatever it looks like."""

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pajson
import pyarrow.types as kinds

from dp_sips.errors import InputError
from dp_sips.sources.columns import Columns
from dp_sips.sources.looks import Look
from dp_sips.sources.nesting import check_nesting
from dp_sips.sources.types import element, is_list

BLOCK = 1 << 24
_LONGEST_LOOK = 1 << 26


def look(path: Path, columns: Columns) -> Look:
    """Infer the types of the needed columns from the first lines."""
    needed = {columns.user, *columns.items}
    whole = _infer(path, needed)
    names = columns.pick(whole.names, str(path))
    schema = pa.schema([(name, _settled(whole.field(name).type)) for name in names])

    def read(agreed: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            yield from _open(path, agreed)
        except pa.ArrowInvalid as error:
            raise InputError(_misfit(path, agreed, str(error))) from error

    return Look(schema, read)


def _infer(path: Path, needed: set[str | None]) -> pa.Schema:
    """Look at the first block of lines, and at more while a needed field shows no value."""
    size = BLOCK
    while True:
        lines, whole = _first_lines(path, size)
        schema = _schema_of(path, lines)
        shown = {field.name for field in schema if not kinds.is_null(element(field.type))}
        if whole or needed <= shown or size >= _LONGEST_LOOK:
            return schema
        size *= 4


def _first_lines(path: Path, size: int) -> tuple[bytes, bool]:
    """Return the whole lines among the first `size` bytes, and whether that is all of the file."""
    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(size)
        if len(head) < size:
            return head, True
    if b"\n" not in head:
        raise InputError(_too_long(path))
    return head[: head.rfind(b"\n") + 1], False


def _schema_of(path: Path, lines: bytes) -> pa.Schema:
    check_nesting(lines, str(path))
    try:
        options = pajson.ReadOptions(block_size=max(len(lines), 1))
        return pajson.read_json(io.BytesIO(lines), read_options=options).schema
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{path} cannot be read as JSON lines: {_without_value(str(error))}; expected one "
            'object per line, like {"user": 1, "item": "a"}'
        ) from error


def _settled(kind: pa.DataType) -> pa.DataType:
    # Arrow takes text that looks like a time for one, and then trips over the first that does not.
    if is_list(kind):
        return pa.list_(_settled(kind.value_type))
    return pa.string() if kinds.is_timestamp(kind) else kind


def _open(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    reader = pajson.open_json(
        _Shallow(pa.input_stream(str(path), compression="detect"), str(path)),
        read_options=pajson.ReadOptions(block_size=BLOCK),
        parse_options=pajson.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        ),
    )
    for batch in reader:
        yield batch.select(schema.names)


class _Shallow(io.RawIOBase):
    """A stream of JSON lines that fails where a line nests too deep."""

    def __init__(self, stream: pa.NativeFile, label: str) -> None:
        self._stream = stream
        self._label = label
        self._unended = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        content = bytes(self._stream.read(size))
        lines = self._unended + content
        check_nesting(lines, self._label)
        self._unended = lines[lines.rfind(b"\n") + 1 :]
        return content


def _too_long(path: Path) -> str:
    size = BLOCK >> 20
    return f"{path} has a line of more than {size} MB: spread the user's items over several lines"


def _misfit(path: Path, schema: pa.Schema, message: str) -> str:
    if "straddl" in message:
        return _too_long(path)
    types = ", ".join(f"{field.name!r} {field.type}" for field in schema)
    return (
        f"{path} cannot be read: {_without_value(message)} (the first lines have {types}; "
        "each line must be one object with values of these types)"
    )


def _without_value(message: str) -> str:
    return message.split(", couldn't parse", maxsplit=1)[0]
