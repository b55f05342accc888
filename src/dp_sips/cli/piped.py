"""INPUT from standard input: it is copied to a private temporary file, as some kinds need seeking.

The file is removed at the end, whatever the end is.
"""

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dp_sips.errors import DpSipsError, InputError, OutputError, UsageError
from dp_sips.temporaries import create, discard, temporary_path

LABEL: Final = "standard input"
_STDIN: Final = "-"
_KINDS: Final = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"{", ".jsonl"),
    (b"\x1f\x8b", ".csv.gz"),
)


@contextmanager
def inputs(args: argparse.Namespace) -> Iterator[None]:
    """Have a file in the place of INPUT - in the block; errors speak of standard input."""
    args.piped = _STDIN in args.input
    if not args.piped:
        yield
        return
    if args.input != [_STDIN]:
        raise UsageError("- is standard input, and comes alone: leave out the other INPUTs")
    path = _named(_first_bytes())
    try:
        _copy(path)
        args.input = [str(path)]
        yield
    except DpSipsError as error:
        raise type(error)(str(error).replace(str(path), LABEL)) from error
    finally:
        discard(path)


def _piped() -> io.BufferedReader:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("- is standard input, and nothing is piped into it: name a file")
    stream: Any = sys.stdin.buffer
    return stream  # type: ignore[no-any-return]


def _first_bytes() -> bytes:
    try:
        return _piped().peek(8)
    except OSError as error:
        raise InputError(f"standard input cannot be read: {error.strerror}") from error


def _named(start: bytes) -> Path:
    """Tell the kind by the first bytes; what is nothing else is CSV."""
    suffix = next((suffix for magic, suffix in _KINDS if start.startswith(magic)), ".csv")
    return temporary_path(Path(tempfile.gettempdir()), suffix)


def _copy(path: Path) -> None:
    try:
        with create(path) as sink:
            shutil.copyfileobj(_piped(), sink, 1 << 20)
    except OSError as error:
        raise OutputError(
            f"standard input could not be copied to {path.parent}: {error.strerror}; "
            "TMPDIR names another folder"
        ) from error
