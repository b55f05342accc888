"""How a table of items looks in a file: Parquet, Arrow, CSV, JSON lines or plain text.

Parquet and Arrow keep the items' own types. In the other three, integers and booleans are written
as they are, times, dates and decimals as text, durations as a number of their unit, and binary as
hexadecimal digits: always, so that a reader need not guess which of them happen to be text.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from dp_sips.errors import UsageError, did_you_mean

SUFFIXES: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".txt": "txt",
}
_COMPRESSIBLE: Final = ("csv", "jsonl", "txt")
_JSON: Final = {b"content-type": b"application/json"}
"""The metadata of a text column whose values are JSON already: those of several kinds."""
_LINES: Final = 1 << 16
"""Lines that are put together at a time."""
_FORMULA: Final = r"\A([=+\-@\t\r])"
"""How a cell begins that spreadsheets may run."""


def format_of(path: Path, asked: str | None = None) -> str:
    """Return the format that was asked for, or that the suffix tells; both must agree."""
    if asked is not None and asked not in WRITERS:
        raise UsageError(f"unknown format {asked!r}: {did_you_mean(asked, WRITERS)}")
    told = SUFFIXES.get(_inner_suffix(path))
    if told is None and asked is None:
        raise UsageError(
            f"{path} has no suffix that tells its format; known: {' '.join(SUFFIXES)}, "
            'and .gz after the text formats; or name the format, as format="csv" (--format csv)'
        )
    if told is not None and asked is not None and told != asked:
        raise UsageError(f"{path} has the suffix of {told}, but the format is {asked}: change one")
    found = told or asked or ""
    if _is_gzip(path) and found not in _COMPRESSIBLE:
        raise UsageError(f"{path}: {found} is compressed already: leave .gz out")
    return found


def check_columns(kind: str, columns: int) -> None:
    """Reject a plain text file for items of several columns."""
    if kind == "txt" and columns > 1:
        raise UsageError(f"a text file holds one column, and items have {columns}: use .csv")


def write_table(table: pa.Table, sink: BinaryIO, path: Path, kind: str) -> None:
    """Write a table to an open file, compressed if its path says so."""
    if not _is_gzip(path):
        WRITERS[kind](table, sink)
        return
    # Without a name and a time: the same items make the same bytes.
    with gzip.GzipFile(filename="", fileobj=sink, mode="wb", mtime=0) as packed:
        WRITERS[kind](table, packed)  # type: ignore[arg-type]


def plain_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield rows of integers, booleans, text and None, as JSON knows them."""
    for batch in _plain(table).to_batches(max_chunksize=_LINES):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def without_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe before text that a spreadsheet would take for a formula."""
    columns = [_without_formulas(column) for column in _plain(table).columns]
    names = _without_formulas(pa.chunked_array([table.column_names], pa.string())).to_pylist()
    return pa.table(columns, names=names)


def _without_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not kinds.is_large_string(column.type) and not kinds.is_string(column.type):
        return column
    return pc.replace_substring_regex(column, _FORMULA, r"'\1")


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _inner_suffix(path: Path) -> str:
    return (Path(path.stem) if _is_gzip(path) else path).suffix.lower()


def _write_parquet(table: pa.Table, sink: BinaryIO) -> None:
    pq.write_table(table, sink, compression="zstd")


def _write_arrow(table: pa.Table, sink: BinaryIO) -> None:
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _write_csv(table: pa.Table, sink: BinaryIO) -> None:
    """Write RFC 4180 with a header: quotes where needed; null is nothing, empty text is ""."""
    header = pa.table({name: [name] for name in table.column_names})
    comma, nothing = _text(","), {"null_handling": "replace", "null_replacement": ""}
    for part in (header, _plain(table)):
        columns = pa.table([_quoted(column) for column in part.columns], names=part.column_names)
        for batch in columns.to_batches(max_chunksize=_LINES):
            lines = pc.binary_join_element_wise(*batch.columns, comma, **nothing)
            _write_lines(lines.to_pylist(), sink)


def _write_jsonl(table: pa.Table, sink: BinaryIO) -> None:
    spell = [_as_it_is if field.metadata == _JSON else _as_json for field in table.schema]
    columns = list(zip(map(_as_json, table.column_names), spell, strict=True))
    lines = (
        ", ".join(
            f"{name}: {write(value)}" for (name, write), value in zip(columns, row, strict=True)
        )
        for row in plain_rows(table)
    )
    _write_lines((f"{{{line}}}" for line in lines), sink)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_it_is(value: str | None) -> str:
    return "null" if value is None else value


def _write_text(table: pa.Table, sink: BinaryIO) -> None:
    r"""Write one value per line, no header; \\, \n, \r and \N (null) as PostgreSQL's COPY does."""
    check_columns("txt", table.num_columns)
    values = _plain(table).column(0).cast(pa.large_string())
    for character, escaped in (("\\", r"\\"), ("\n", r"\n"), ("\r", r"\r")):
        values = pc.replace_substring(values, character, escaped)
    _write_lines(pc.fill_null(values, r"\N").to_pylist(), sink)


def _write_lines(lines: Iterable[str], sink: BinaryIO) -> None:
    for line in lines:
        sink.write(line.encode())
        sink.write(b"\n")


def _quoted(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = column.cast(pa.large_string())
    if not kinds.is_large_string(column.type) and not kinds.is_string(column.type):
        return text
    needed = pc.or_(pc.match_substring_regex(text, '[",\r\n]'), pc.equal(text, ""))
    quote, inner = _text('"'), pc.replace_substring(text, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise(quote, inner, quote, _text("")), text)


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _plain(table: pa.Table) -> pa.Table:
    columns = [_plain_column(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bring a column to integers, booleans or text."""
    kind = column.type
    if kinds.is_dictionary(kind):
        return _plain_column(column.cast(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.UuidType):
        return _plain_column(column.cast(kind.storage_type))
    for check, convert in _PLAIN:
        if check(kind):
            return convert(column)
    return column.cast(pa.large_string())


def _spelled(column: pa.ChunkedArray, spell: Callable[[Any], str]) -> pa.ChunkedArray:
    values = [None if value is None else spell(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(values, pa.large_string())])


def _as_hex(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return _spelled(column, bytes.hex)


_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...]] = (
    (kinds.is_integer, lambda column: column),
    (kinds.is_boolean, lambda column: column),
    (kinds.is_duration, lambda column: column.cast(pa.int64())),
    (kinds.is_binary, _as_hex),
    (kinds.is_large_binary, _as_hex),
    (kinds.is_fixed_size_binary, _as_hex),
    (kinds.is_binary_view, _as_hex),
    (lambda kind: isinstance(kind, pa.UuidType), lambda column: _spelled(column, str)),
)
"""What becomes of the types that are not simply cast to text."""

WRITERS: Final[dict[str, Callable[[pa.Table, BinaryIO], None]]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "txt": _write_text,
}
"""Who writes which format."""
