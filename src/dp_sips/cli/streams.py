"""What goes to stdout, for programs, and to stderr, for people."""

import io
import json
import os
import sys
from typing import Any, NoReturn


def emit(text: str) -> None:
    """Print a result."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def emit_json(value: Any) -> None:
    """Print a result for machines."""
    emit(json.dumps(value, indent=2, ensure_ascii=False))


def say(text: str) -> None:
    """Tell the person at the terminal."""
    sys.stderr.write(text + "\n")


def forgive_characters() -> None:
    """Escape what a terminal's encoding lacks, such as ρ: better than to fail on it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon_stdout() -> None:
    """Send what is still buffered nowhere, or Python would fail on it again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def leave(code: int) -> NoReturn:
    """End the process at once; everything that needs cleaning up has been."""
    abandon_stdout()
    sys.stderr.flush()
    os._exit(code)
