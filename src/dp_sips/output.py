"""Files appear whole or not at all: written under another name, synced, then renamed.

`check_output` refuses, before any data is read, what can be known to fail.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from dp_sips.errors import OutputError, UsageError
from dp_sips.formats import format_of, write_table


def write_items(
    table: pa.Table,
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
) -> None:
    """Write items to a file, in the format that its suffix tells unless one is given.

    An existing file is replaced, and stays as it was if anything fails.
    """
    place = Path(path)
    kind = format_of(place, format)
    with replacing(place) as sink:
        write_table(table, sink, place, kind)


def check_output(
    path: str | os.PathLike[str], *, overwrite: bool = False, inputs: Iterable[Path] = ()
) -> None:
    """Refuse a path that cannot be written, should not be replaced, or is one of the inputs."""
    place = Path(path)
    try:
        if place.exists() and any(place.samefile(given) for given in inputs):
            raise UsageError(f"{place} is an input file: write to another one")
        _check_place(place, overwrite=overwrite)
        _check_writable(_target(place).parent)
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}") from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a new file to write to, which takes the place of `path` when the block succeeds."""
    target = _target(path)
    unfinished = _unfinished(target.parent)
    try:
        with unfinished.open("xb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        unfinished.replace(target)
        _sync_folder(target.parent)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OutputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{path} could not be written: {reason}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _check_place(place: Path, *, overwrite: bool) -> None:
    folder = _target(place).parent
    if not folder.is_dir():
        raise UsageError(f"{place} cannot be written: there is no folder {folder}")
    if place.is_dir():
        raise UsageError(f"{place} is a folder: name a file in it")
    if place.exists() and not place.is_file():
        raise UsageError(f"{place} is not a regular file, and cannot be replaced: name another")
    if place.exists() and not overwrite:
        raise UsageError(f"{place} exists: name another file, or replace it with --force")


def _target(path: Path) -> Path:
    """Follow links: the file that a link names is replaced, not the link."""
    return path.resolve()


def _unfinished(folder: Path) -> Path:
    # A leading dot: who reads the folder meanwhile does not see it.
    return folder / f".dp-sips-{os.getpid()}-{time.time_ns():x}.tmp"


def _check_writable(folder: Path) -> None:
    """Make a file and remove it: permissions, read-only disks and quotas have too many rules."""
    probe = _unfinished(folder)
    probe.open("xb").close()
    probe.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
