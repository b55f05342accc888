"""PyArrow objects, and any other object with an Arrow stream."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.base import Feed, Part, reading, single_use
from dp_sips.sources.batches import ROWS
from dp_sips.sources.columns import Columns


def open_table(table: pa.Table | pa.RecordBatch, columns: Columns) -> Feed:
    """Read a table that is in memory."""
    label = "the table"
    needed = table.select(columns.pick(table.schema.names, label))
    if isinstance(needed, pa.RecordBatch):
        needed = pa.Table.from_batches([needed])
    part = Part(label, lambda: needed.to_batches(max_chunksize=ROWS))
    return Feed(label, needed.schema, (part,), _same, needed.num_rows)


def open_dataset(dataset: Any, columns: Columns) -> Feed:
    """Read a `pyarrow.dataset.Dataset` with little read-ahead, to keep memory small."""
    label = "the dataset"
    names = columns.pick(dataset.schema.names, label)
    schema = pa.schema([dataset.schema.field(name) for name in names])

    def read() -> Iterable[pa.RecordBatch]:
        batches: Iterable[pa.RecordBatch] = dataset.to_batches(
            columns=names, batch_size=ROWS, batch_readahead=4, fragment_readahead=1
        )
        return batches

    return Feed(label, schema, (Part(label, read),), _same)


def open_scanner(scanner: Any, columns: Columns) -> Feed:
    """Read a `pyarrow.dataset.Scanner`, whose columns are fixed already."""
    return _open_reader(scanner.to_reader(), columns, "the scanner")


def open_stream(stream: Any, columns: Columns) -> Feed:
    """Read any object with `__arrow_c_stream__`; a `RecordBatchReader` is one."""
    label = f"the {type(stream).__name__}"
    with reading(label):
        reader = _reader(stream, label)
    return _open_reader(reader, columns, label)


def _reader(stream: Any, label: str) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(stream)
    except pa.ArrowInvalid:  # of the schema: no row is read yet
        raise InputError(
            f"{label} is not a table with columns: pass a data frame, which .reset_index() or "
            ".to_frame() makes of a Series"
        ) from None


def _open_reader(reader: pa.RecordBatchReader, columns: Columns, label: str) -> Feed:
    names = columns.pick(reader.schema.names, label)
    schema = pa.schema([reader.schema.field(name) for name in names])
    batches = (batch.select(names) for batch in reader)
    return Feed(label, schema, (Part(label, single_use(batches, label)),), _same, once=True)


def _same(items: pa.Table) -> pa.Table:
    return items
