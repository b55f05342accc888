"""What a first look at a file tells, before any of its rows is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Look:
    """The needed columns of a file, the user's first, and how to read them under a schema.

    `read` gets the schema on which all files agreed: where this file's column has no value and
    so no type of its own, that is another file's type.
    """

    schema: pa.Schema
    read: Callable[[pa.Schema], Iterable[pa.RecordBatch]]
    rows: int | None = None
    hint: str = ""
