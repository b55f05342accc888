"""Parquet files."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from dp_sips.sources.batches import ROWS
from dp_sips.sources.columns import Columns
from dp_sips.sources.looks import Look
from dp_sips.sources.types import element


def look(path: Path, columns: Columns) -> Look:
    """Read the footer."""
    with pq.ParquetFile(path) as file:
        whole = file.schema_arrow
        names = columns.pick(whole.names, str(path))
        schema = pa.schema([whole.field(name) for name in names])
        texts = _text_paths(file.schema, schema)
        rows = file.metadata.num_rows

    def read(_: pa.Schema) -> Iterator[pa.RecordBatch]:
        # Dictionary pages stay dictionaries: text is then hashed once per page, not once per row.
        with pq.ParquetFile(
            path,
            pre_buffer=True,
            memory_map=True,
            read_dictionary=texts,
            page_checksum_verification=True,
        ) as file:
            for batch in file.iter_batches(ROWS, columns=names):
                yield batch.select(names)

    return Look(schema, read, rows)


def _text_paths(leaves: pq.ParquetSchema, schema: pa.Schema) -> list[str]:
    """Return the paths, inside the file, of the needed columns that hold text or bytes."""
    wanted = {field.name for field in schema if _is_text(element(field.type))}
    paths = (leaves.column(i).path for i in range(len(leaves)))
    return [path for path in paths if path in wanted or path.split(".", 1)[0] in wanted]


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
