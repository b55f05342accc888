"""Released items, of any kind of table or from a file, as rows of text that a page can show."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

SHOWN: Final = 5_000
"""Rows that a page shows at most."""

NULL: Final = "null"


@dataclass(frozen=True)
class Released:
    """The first rows, and how many there are.

    Attributes:
        columns: Their names.
        rows: Text for each cell; None for null.
        total: How many rows there are, shown or not.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    total: int

    @classmethod
    def of(cls, table: Any, columns: Sequence[str]) -> "Released":
        """Read a table that came out of a release, or the file that it was written to."""
        from dp_sips.sources.keys import read_rows

        found = read_rows(table, columns)
        rows = [[_text(value) for value in row] for row in islice(found, SHOWN)]
        return cls(columns, rows, len(rows) + sum(1 for _ in found))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else str(value)
