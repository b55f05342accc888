"""CSV and TSV files. Every column is text: what a value means does not depend on other rows."""

import io
import re
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from dp_sips.errors import InputError
from dp_sips.sources.columns import Columns
from dp_sips.sources.csv_files import Dialect
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.headers import FileHeader
from dp_sips.sources.plain_rows import PlainRows
from dp_sips.sources.utf8 import not_utf8

BLOCK = 1 << 22
_MARK: Final = b"\xef\xbb\xbf"
_OPEN: Final = "ends inside of quotes: is a quote left open?"
_TOO_LONG: Final = f"has a row of more than {BLOCK >> 20} MB: is a quote left open?"
_NOT_UTF8: Final = re.compile(r"In CSV column #(\d+): .*UTF8", re.DOTALL)
_FIELDS: Final = re.compile(r"Expected (\d+) columns, got (\d+)")
_DELIMITERS: Final = ";|\t,"
_NAME_IT: Final = (
    'name its encoding, as encoding="latin-1" of dp_sips.CsvFiles (--encoding latin-1)'
)
_OTHERS: Final = {
    rb"\xff\xfe(?!\0\0)|\xfe\xff": 'is text in UTF-16: say encoding="utf-16" of dp_sips.CsvFiles '
    "(--encoding utf-16)",
    rb"(?i)(\xef\xbb\xbf)?\"?sep=.\"?[\r\n]": "begins with a line for Excel, sep=…, in place of "
    "the header: remove that line",
}
"""How text begins that is not quite CSV; of other kinds of files, see first_bytes.py."""


def read_header(file: DataFile, columns: Columns, dialect: Dialect) -> FileHeader:
    """Read the header, or count the columns of the first row where there is none."""
    with _plainly(file, dialect), _stream(file, dialect) as stream:
        text = stream.read(BLOCK)
        header = _header(file, text, dialect)
    if dialect.header:
        _check_delimiter(file, text, header, columns, dialect)
        _check_names(file, header, columns)
    elif len(header) == 1:
        _check_single(file, header, columns, dialect)
    names = file.pick(columns, header)
    with _plainly(file, dialect, header):  # rows that do not fit the header, before more is done
        _open(file, pa.BufferReader(text + b"\n"), dialect)
    schema = pa.schema([(name, pa.string()) for name in names])
    return FileHeader(schema, lambda: _read(file, header, schema, dialect))


def _read(
    file: DataFile, header: list[str], schema: pa.Schema, dialect: Dialect
) -> Iterator[pa.RecordBatch]:
    """Read all rows: plain ones here, and what is left with Arrow."""
    plain = PlainRows(header, schema.names, dialect.separator(file.path), BLOCK)
    with _plainly(file, dialect, header), _stream(file, dialect) as stream:
        rest = yield from plain.read(stream, has_header=dialect.header)
        if rest is not None:
            yield from _read_with_arrow(file, header, schema, dialect, _Joined(rest, stream))


def _read_with_arrow(
    file: DataFile, header: list[str], schema: pa.Schema, dialect: Dialect, stream: "_Joined"
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a stream; the last one must be the one that we append."""
    separator = dialect.separator(file.path)
    mark = f"{time.time_ns():x}".replace(separator, "g")  # not a digit of any number
    row = separator.join(mark if name == schema.names[0] else "" for name in header)
    stream.end = f"\n{row}\n".encode()
    last = None
    with _open(file, stream, dialect, schema, header) as reader:
        for batch in reader:
            if batch.num_rows:
                if last is not None:
                    yield last
                last = batch
    if last is None or last.column(0)[-1].as_py() != mark:
        raise InputError(f"{file} {_OPEN}")
    yield last.slice(0, last.num_rows - 1)


class _Joined(io.RawIOBase):
    """What was read of a file, the rest of it, and a last row of our own.

    Inside an open quote, that row does not come back as a row. No buffer ends between a carriage
    return and what follows: Arrow would lose the line end after it inside of quotes, so that what a
    value means would depend on where blocks begin, and so on other people's rows.
    """

    def __init__(self, begin: bytes, stream: Any) -> None:
        self._begin = begin
        self._stream = stream
        self.end = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return bytes(self.read_buffer(size))

    def read_buffer(self, size: int) -> pa.Buffer:
        """Return up to this many bytes, and none at the end."""
        buffer = self._next(size)
        if buffer.size < 2 or buffer[buffer.size - 1] != ord("\r"):  # noqa: PLR2004
            return buffer
        self._begin = b"\r" + self._begin
        return buffer.slice(0, buffer.size - 1)

    def _next(self, size: int) -> pa.Buffer:
        """Read into memory of Arrow's, which it uses again and again."""
        if self._begin:
            begin, self._begin = self._begin[:size], self._begin[size:]
            return pa.py_buffer(self._ended(begin, size))
        buffer = self._stream.read_buffer(size)
        return buffer if buffer.size == size else pa.py_buffer(self._ended(bytes(buffer), size))

    def _ended(self, found: bytes, size: int) -> bytes:
        """Return more where there is more, and the last row after it."""
        while len(found) < size and (more := self._stream.read(size - len(found))):
            found += more
        room = size - len(found)
        found, self.end = found + self.end[:room], self.end[room:]
        return found


def _header(file: DataFile, text: bytes, dialect: Dialect) -> list[str]:
    """Return the names in the first row, or numbers for its fields; Arrow sees no other row."""
    if dialect.header:
        _check_kind(file, text)
    first = _first_row(text, dialect.separator(file.path))
    try:
        names: list[str] = _open(file, pa.BufferReader(first + b"\n"), dialect).schema.names
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise InputError(_without_row(file, text, dialect)) from None
        raise
    return names if dialect.header else dialect.names(len(names))


def _without_row(file: DataFile, text: bytes, dialect: Dialect) -> str:
    """Say why the text with which a file begins has no whole row."""
    is_blank = not text.removeprefix(_MARK).strip(b"\r\n")
    is_whole = len(text) < BLOCK
    if not is_blank:
        return f"{file} {_OPEN if is_whole else _TOO_LONG}"
    if is_whole:
        return f"{file} has no {_first(dialect)}: its lines are empty"
    return f"{file} begins with {BLOCK >> 20} MB of empty lines: remove them"


def _first_row(text: bytes, separator: str) -> bytes:
    """Return text up to the end of its first row, which may have line ends inside of quotes."""
    mark = re.escape(separator.encode())
    field = rb'(?:"(?:[^"]++|"")*+"?)?+[^\r\n' + mark + rb"]*+"
    row = rb"(?:\xef\xbb\xbf)?[\r\n]*+" + field + rb"(?:" + mark + field + rb")*+"
    found = re.match(row, text)
    return found[0] if found else text


def _check_kind(file: DataFile, first: bytes) -> None:
    """Reject text that begins as no header does."""
    for begin, what in _OTHERS.items():
        if re.match(begin, first):
            raise InputError(f"{file} {what}")


def _stream(file: DataFile, dialect: Dialect) -> Any:
    stream = file.stream()
    if dialect.is_utf8:
        return stream
    return pa.transcoding_input_stream(stream, dialect.encoding, "utf-8")


def _open(
    file: DataFile,
    stream: Any,
    dialect: Dialect,
    schema: pa.Schema | None = None,
    header: Sequence[str] = (),
) -> pacsv.CSVStreamingReader:
    """Read an empty field as null, a quoted empty field as the empty text."""
    names = {} if dialect.header else {"column_names": header or None}
    return pacsv.open_csv(
        stream,
        read_options=pacsv.ReadOptions(
            block_size=BLOCK, autogenerate_column_names=not (dialect.header or header), **names
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=dialect.separator(file.path), newlines_in_values=True
        ),
        convert_options=pacsv.ConvertOptions(
            include_columns=schema.names if schema else [],
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _check_delimiter(
    file: DataFile, text: bytes, header: Sequence[str], columns: Columns, dialect: Dialect
) -> None:
    """Reject a header without any of the names that seems to have another delimiter."""
    wanted = {columns.user, *columns.items}
    if wanted & {*header} or wanted <= {*file.in_path}:
        return
    if other := _other_delimiter(file, text, wanted, dialect):
        raise InputError(
            f"the columns of {file} seem to be separated by {other!r}, not by "
            f"{dialect.separator(file.path)!r}: say delimiter={other!r} of dp_sips.CsvFiles "
            f"(--delimiter {other!r})"
        )


def _other_delimiter(
    file: DataFile, text: bytes, wanted: AbstractSet[str | None], dialect: Dialect
) -> str | None:
    """Return the delimiter with which the first row has one of the names, if there is one."""
    for mark in _DELIMITERS.replace(dialect.separator(file.path), ""):
        with suppress(InputError, pa.ArrowInvalid, UnicodeError):  # no row, or another one
            if wanted & {*_header(file, text, replace(dialect, delimiter=mark))}:
                return mark
    return None


def _check_names(file: DataFile, header: Sequence[str], columns: Columns) -> None:
    """Reject a first row without any of the names; it is not shown, as it may be somebody's."""
    wanted = [name for name in (columns.user, *columns.items) if name is not None]
    if wanted and not {*wanted} & {*header, *file.in_path}:
        raise InputError(
            f"no column {' or '.join(map(repr, wanted))} in the first row of {file}: name columns "
            "of its header (upper and lower case differ) or, if it has none, say header=False of "
            "dp_sips.CsvFiles (--no-header)"
        )


def _check_single(
    file: DataFile, header: Sequence[str], columns: Columns, dialect: Dialect
) -> None:
    """Ask about the delimiter if the first row, which is not looked at, has one field only."""
    for name in (columns.user, *columns.items):
        if name is not None and name not in (*header, *file.in_path):
            raise InputError(
                f"no column {name!r} in {file}: its first row has one field; "
                f"{_another(file, dialect)}"
            )


@contextmanager
def _plainly(file: DataFile, dialect: Dialect, header: Sequence[str] = ()) -> Iterator[None]:
    """Say what Arrow says, without the value or the row that it shows."""
    try:
        yield
    except UnicodeError:
        raise InputError(
            f"{file} has text that is not {dialect.encoding}: {_NAME_IT}, leave it out for UTF-8, "
            "or convert the file first"
        ) from None
    except pa.ArrowInvalid as error:
        raise InputError(_said(file, dialect, header, str(error))) from None


def _said(file: DataFile, dialect: Dialect, header: Sequence[str], message: str) -> str:
    if "straddl" in message:
        return f"{file} {_TOO_LONG}"
    if found := _NOT_UTF8.match(message):
        column = header[int(found[1])]
        return f"{not_utf8(column, str(file))}, or {_NAME_IT}"
    fields = _FIELDS.search(message)
    expected, got = fields.groups() if fields else (len(header), "more or fewer")
    return (
        f"{file} cannot be read: a row has {got} field{'' if got == '1' else 's'}, and the "
        f"{_first(dialect)} {expected}: put quotes around fields that contain "
        f"{_separator(file, dialect)}; {_another(file, dialect)}"
    )


def _first(dialect: Dialect) -> str:
    return "header" if dialect.header else "first row"


def _another(file: DataFile, dialect: Dialect) -> str:
    """Say how to name the delimiter, with another one as an example."""
    example = "," if dialect.separator(file.path) == ";" else ";"
    return (
        f"if the delimiter is not {_separator(file, dialect)}, name it, as delimiter={example!r} "
        f"of dp_sips.CsvFiles (--delimiter {example!r})"
    )


def _separator(file: DataFile, dialect: Dialect) -> str:
    separator = dialect.separator(file.path)
    return {"\t": "a tab", ",": "a comma"}.get(separator, repr(separator))
