"""What a first look at a file tells, before any of its rows is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class FileHeader:
    """The needed columns of a file, the user's first, and how to read them."""

    schema: pa.Schema
    read: Callable[[], Iterable[pa.RecordBatch]]
    rows: int | None = None
