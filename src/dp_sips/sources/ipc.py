"""Arrow IPC files, in the file format (also called Feather) and the stream format.

They are read, not mapped into memory: docs/decisions/007-no-memory-map.md.
"""

from collections.abc import Iterator

import pyarrow as pa

from dp_sips.sources.columns import Columns
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.headers import FileHeader

_MAGIC = b"ARROW1"


def read_header(data: DataFile, columns: Columns) -> FileHeader:
    """Read the schema."""
    whole = _schema(data)
    names = data.pick(columns, whole.names)
    schema = pa.schema([whole.field(name) for name in names])
    options = pa.ipc.IpcReadOptions(included_fields=[whole.names.index(name) for name in names])
    read = _read_file if _is_file(data) else _read_stream
    return FileHeader(schema, lambda: (batch.select(names) for batch in read(data, options)))


def _is_file(data: DataFile) -> bool:
    with data.open() as file:
        return bool(file.read(len(_MAGIC)) == _MAGIC)


def _schema(data: DataFile) -> pa.Schema:
    with data.open() as file:
        opener = pa.ipc.open_file if _is_file(data) else pa.ipc.open_stream
        return opener(file).schema


def _read_file(data: DataFile, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    with data.open() as file:
        reader = pa.ipc.open_file(file, options=options)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)


def _read_stream(data: DataFile, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    with data.open() as file:
        yield from pa.ipc.open_stream(file, options=options)
