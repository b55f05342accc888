"""CSV and TSV files. Types are those that the first block of the file shows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.types as kinds

from dp_sips.errors import InputError
from dp_sips.sources.columns import Columns
from dp_sips.sources.looks import Look
from dp_sips.sources.utf8 import not_utf8

BLOCK = 1 << 22
_LONGEST_LOOK = 1 << 26
_MISFIT = re.compile(r"In CSV column #(\d+): CSV conversion error to (.+?): (.*)", re.DOTALL)
_ROW = re.compile(r"(?<=columns, got )(\d+):.*", re.DOTALL)
_AS_TEXT = "read the columns as text with text=True (on the command line: --text)"


def look(path: Path, columns: Columns, *, text: bool) -> Look:
    """Read the header and infer the types of the needed columns."""
    header = _open(path, BLOCK, pacsv.ConvertOptions()).schema.names
    names = columns.pick(header, str(path))
    schema = pa.schema([(name, pa.string()) for name in names]) if text else _infer(path, names)

    def read(agreed: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            yield from _open(path, BLOCK, _convert(agreed.names, agreed))
        except pa.ArrowInvalid as error:
            raise InputError(_misfit(path, header, str(error))) from error

    return Look(schema, read, hint=f"; or {_AS_TEXT}")


def _infer(path: Path, names: list[str]) -> pa.Schema:
    """Infer types from the first block, or from more of the file where that shows no value."""
    block = BLOCK
    schema = _open(path, block, _convert(names)).schema
    while pa.null() in schema.types and block < min(_LONGEST_LOOK, path.stat().st_size):
        block *= 4
        schema = _open(path, block, _convert(names)).schema
    return pa.schema([(field.name, _settled(field.type)) for field in schema])


def _settled(kind: pa.DataType) -> pa.DataType:
    # Arrow reads text that is not UTF-8 as bytes; as text it is an error, which it should be.
    return pa.string() if kinds.is_binary(kind) else kind


def _convert(names: list[str], schema: pa.Schema | None = None) -> pacsv.ConvertOptions:
    """Read an empty field as null, a quoted empty field as the empty text."""
    return pacsv.ConvertOptions(
        include_columns=names,
        column_types=schema,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _open(path: Path, block: int, convert: pacsv.ConvertOptions) -> pacsv.CSVStreamingReader:
    tabs = ".tsv" in (suffix.lower() for suffix in path.suffixes[-2:])
    parsing = pacsv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True)
    stream = pa.input_stream(str(path), compression="detect")
    blocks = pacsv.ReadOptions(block_size=block)
    try:
        return pacsv.open_csv(stream, blocks, parsing, convert)
    except pa.ArrowInvalid as error:
        if not _ROW.search(str(error)):
            raise
        raise InputError(_without_row(path, str(error))) from error


def _without_row(path: Path, message: str) -> str:
    return f"{path} cannot be read: " + _ROW.sub(r"\1", message)


def _misfit(path: Path, header: list[str], message: str) -> str:
    """Say which value does not fit: the caller cannot find it otherwise."""
    if "straddl" in message:
        return f"{path} has a row of more than {BLOCK >> 20} MB: is a quote left open?"
    match = _MISFIT.match(message)
    if match is None:
        return _without_row(path, message)
    place, kind, rest = match.groups()
    name = header[int(place)]
    if "UTF8" in rest:
        return not_utf8(name, str(path))
    return f"column {name!r} of {path} has the type {kind}, but {rest}: {_AS_TEXT}"
