"""What goes to stdout, for programs, and to stderr, for people."""

import codecs
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

from dp_sips.errors import OutputError


class ReaderGone(Exception):  # noqa: N818 (not a failure)
    """The reader of stdout, such as head, has all that it wants."""


def stdout() -> TextIO:
    """Return stdout, which a process may have been started without."""
    if sys.stdout is None:
        raise OutputError("stdout could not be written: it is closed")
    return sys.stdout


@contextmanager
def writing_stdout() -> Iterator[TextIO]:
    """Yield stdout, and flush it; an error of the system within the block is said to be stdout's.

    Raises:
        ReaderGone: Nobody reads it any longer.
        OutputError: It cannot be written, such as one that leads to a full disk.
    """
    stream = stdout()
    try:
        yield stream
        stream.flush()
    except OSError as error:
        abandon(stream)
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from error
        raise OutputError(f"stdout could not be written: {error.strerror or error}") from error


def emit(text: str) -> None:
    """Print a result."""
    with writing_stdout() as stream:
        stream.write(text + "\n")


def emit_json(value: Any) -> None:
    """Print a result for machines, in escapes where the encoding may lack characters."""
    whole = codecs.lookup(stdout().encoding or "utf-8").name == "utf-8"
    emit(json.dumps(value, indent=2, ensure_ascii=not whole))


def say(text: str) -> None:
    """Tell the person at the terminal, if there is one."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        sys.stderr.write(text + "\n")
    abandon(sys.stderr)


def forgive_characters() -> None:
    """Escape what a terminal's encoding lacks, such as ρ: better than to fail on it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon(stream: TextIO | None) -> None:
    """Send what cannot be written nowhere, or Python would fail on it again when it exits."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def leave(code: int) -> NoReturn:
    """End the process at once; everything that needs cleaning up has been."""
    abandon(sys.stdout)
    abandon(sys.stderr)
    os._exit(code)
