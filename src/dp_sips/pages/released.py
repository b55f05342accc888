"""Released items, of any kind of table or from a file, as rows of text that a page can show."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dp_sips.errors import InputError
from dp_sips.pages.facts import Facts

SHOWN: Final = 5_000
"""Rows that a page shows at most."""

NULL: Final = "null"


@dataclass(frozen=True)
class Released:
    """The first rows.

    Attributes:
        columns: Their names.
        rows: Text for each cell; None for null.
        total: How many rows there are, shown or not.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    total: int

    @classmethod
    def of(cls, table: Any, facts: Facts, *, items_only: bool = False) -> "Released":
        """Read a table that came out of a release, or the file that it was written to."""
        from dp_sips.sources.keys import read_rows

        count = None if items_only else facts.count
        columns = [*facts.columns, *([count["column"]] if count else [])]
        found = read_rows(table, columns)
        rows = [[_text(value) for value in row] for row in islice(found, SHOWN)]
        total = len(rows) + sum(1 for _ in found)
        expected = facts.number + bool(count and count["other"])
        if total != expected:
            raise InputError(
                f"there are {total:,} rows, and the certificate says {expected:,}: give the "
                "items of this release"
            )
        return cls(columns, rows, total)


def check_file(path: Path, facts: Facts) -> None:
    """Reject a file that is not the one that the certificate names, by its digest."""
    if facts.file is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != facts.file["sha256"]:
        raise InputError(
            f"{path} is not the file of this certificate: its SHA-256 is {found}, and the "
            f"certificate has {facts.file['sha256']}"
        )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else str(value)
