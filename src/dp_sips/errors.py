"""What can go wrong, as a small tree.

    DpSipsError
    ├── UsageError    a parameter is wrong: the message names the value and the fix
    ├── InputError    the data is wrong: a missing file or column, nulls, floats, a corrupt file
    ├── OutputError   the release could not be written; nothing half-written is left behind
    ├── OutOfMemoryError   there is not enough memory for the data
    └── DiskFullError      there is not enough disk for what memory does not hold

and `UnwiseWarning`, for settings that are allowed and seldom meant.

The command line turns `UsageError` and `InputError` into exit code 2, and the others into 1: an
output path that is known to be impossible before any data is read is a `UsageError`.
"""

import difflib
from collections.abc import Iterable

_SHOWN = 20
_NEAR = 0.75
"""How alike (by difflib, 0 to 1) a name must be to be offered: a common suffix is not enough."""


class DpSipsError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(DpSipsError, ValueError):
    """A parameter is wrong. No data was read and no budget was spent."""


class InputError(DpSipsError, ValueError):
    """The data is wrong. Nothing was released; what a ledger has booked stays booked."""


class OutputError(DpSipsError, OSError):
    """The release could not be written. No half-written file is left."""


class OutOfMemoryError(DpSipsError, MemoryError):
    """There is not enough memory for the data. Nothing was released."""


class DiskFullError(DpSipsError, OSError):
    """There is not enough disk for what memory does not hold. Nothing was released."""


class UnwiseWarning(UserWarning):
    """A setting is allowed and seldom meant; the release goes on."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that offers the names nearest to `name`, or lists the known ones."""
    names = list(known)
    bare = {n.lower().lstrip("-"): n for n in reversed(names)}
    matches = difflib.get_close_matches(name.lower().lstrip("-"), bare, n=3, cutoff=_NEAR)
    near = [bare[match] for match in matches]
    if near:
        return "did you mean " + " or ".join(repr(n) for n in near) + "?"
    shown = ", ".join(repr(n) for n in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"known: {shown}" if names else "there are none"
