"""Parquet files. They are read, not mapped into memory: docs/decisions/007-no-memory-map.md."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from dp_sips.sources.batches import batch_rows
from dp_sips.sources.columns import Columns
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.headers import FileHeader
from dp_sips.sources.types import element

_INDEX_BYTES = 4


def read_header(data: DataFile, columns: Columns) -> FileHeader:
    """Read the footer."""
    with data.open() as raw, pq.ParquetFile(raw) as file:
        whole = file.schema_arrow
        names = data.pick(columns, whole.names)
        schema = pa.schema([whole.field(name) for name in names])
        texts = _encoded_texts(file, schema)
        rows = file.metadata.num_rows
        at_a_time = batch_rows(rows, _size(file, schema))

    def read() -> Iterator[pa.RecordBatch]:
        # Dictionary pages stay dictionaries: text is then hashed once per page, not once per row.
        with (
            data.open() as raw,
            pq.ParquetFile(
                raw,
                # Elsewhere, what is needed next is fetched while this is decoded. Here, that would
                # only keep the bytes of all row groups in memory at the same time.
                pre_buffer=not data.is_local,
                read_dictionary=texts,
                page_checksum_verification=True,
            ) as file,
        ):
            for batch in file.iter_batches(at_a_time, columns=names):
                yield batch.select(names)

    return FileHeader(schema, read, rows)


def _size(file: pq.ParquetFile, schema: pa.Schema) -> int:
    """Return how many bytes the needed columns have, as they are encoded."""
    leaves = range(len(file.schema))
    needed = [n for n in leaves if file.schema.column(n).path.split(".")[0] in schema.names]
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    return sum(group.column(n).total_uncompressed_size for group in groups for n in needed)


def _encoded_texts(file: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    """Return the paths, inside the file, of needed text columns that are stored as dictionaries."""
    wanted = {field.name for field in schema if _is_text(element(field.type))}
    paths = [file.schema.column(leaf).path for leaf in range(len(file.schema))]
    return [
        path
        for leaf, path in enumerate(paths)
        if (path in wanted or path.split(".")[0] in wanted) and _is_encoded(file.metadata, leaf)
    ]


def _is_encoded(metadata: pq.FileMetaData, leaf: int) -> bool:
    """Whether a column is stored as indices into dictionaries, throughout.

    Writers give up on a dictionary that grows too large, and the footer does not say so; but a
    value then takes more than an index. Making dictionaries of such text is slow, for nothing.
    """
    groups = range(metadata.num_row_groups)
    chunks = [metadata.row_group(group).column(leaf) for group in groups]
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    values = sum(chunk.num_values for chunk in chunks)
    return all(chunk.has_dictionary_page for chunk in chunks) and size <= _INDEX_BYTES * values


def _is_text(kind: pa.DataType) -> bool:
    return any(
        check(kind)
        for check in (
            kinds.is_string,
            kinds.is_large_string,
            kinds.is_string_view,
            kinds.is_binary,
            kinds.is_large_binary,
            kinds.is_binary_view,
        )
    )
