"""What an error or an interrupt after booking says: the release stays booked."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_BEGIN: Final = "The release stays booked in "


@contextmanager
def staying_booked(ledger: str | os.PathLike[str] | None) -> Iterator[None]:
    """Note on whatever ends the block early that the release stays booked in this file."""
    try:
        yield
    except BaseException as error:
        if ledger is not None:
            error.add_note(f"{_BEGIN}{ledger}, as the run may have read some of the data.")
        raise


def what_stays_booked(error: BaseException | None) -> str | None:
    """Return the note on an error, or on what it was raised from.

    Other notes are libraries' own words, which may show anything.
    """
    while error is not None:
        for note in getattr(error, "__notes__", ()):
            if note.startswith(_BEGIN):
                return str(note)
        error = error.__cause__ or error.__context__
    return None
