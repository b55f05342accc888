"""Arrow IPC files, in the file format (also called Feather) and the stream format.

They are read, not mapped into memory: docs/decisions/007-no-memory-map.md.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from dp_sips.sources.columns import Columns
from dp_sips.sources.headers import FileHeader

_MAGIC = b"ARROW1"


def read_header(path: Path, columns: Columns) -> FileHeader:
    """Read the schema."""
    whole = _schema(path)
    names = columns.pick(whole.names, str(path))
    schema = pa.schema([whole.field(name) for name in names])
    options = pa.ipc.IpcReadOptions(included_fields=[whole.names.index(name) for name in names])
    read = _read_file if _is_file(path) else _read_stream
    return FileHeader(schema, lambda: (batch.select(names) for batch in read(path, options)))


def _is_file(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _schema(path: Path) -> pa.Schema:
    with pa.OSFile(str(path)) as file:
        opener = pa.ipc.open_file if _is_file(path) else pa.ipc.open_stream
        return opener(file).schema


def _read_file(path: Path, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file, options=options)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)


def _read_stream(path: Path, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as file:
        yield from pa.ipc.open_stream(file, options=options)
