"""A folder of generated files appears whole or not at all.

It is filled under another name beside its own, and renamed once it is complete.
"""

import fnmatch
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from dp_sips.errors import OutputError, UsageError
from dp_sips.output import sync_folder
from dp_sips.temporaries import discard, temporary_path


def check_folder(path: Path, *, holding: str, overwrite: bool = False) -> None:
    """Reject a folder that cannot be made, or that should not be replaced.

    An empty one is taken as it is. With `overwrite`, one is replaced if it holds nothing else than
    files with names of the pattern `holding`: a slip must not remove what others have made.
    """
    try:
        _check_place(path.resolve(), path, holding, overwrite=overwrite)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def write_folder(
    path: Path, fill: Callable[[Path], object], *, holding: str, overwrite: bool = False
) -> None:
    """Let `fill` write files into a new folder, which gets its name once they are complete.

    If anything fails or interrupts, the path has not changed.
    """
    target = path.resolve()
    temporary, kept = temporary_path(target.parent), temporary_path(target.parent)
    try:
        temporary.mkdir()
        fill(temporary)
        sync_folder(temporary)
        _check_place(target, path, holding, overwrite=overwrite)
        _rename(temporary, target, kept, overwrite=overwrite)
        sync_folder(target.parent)
    except OutputError:
        raise
    except UsageError as error:  # what the path names has changed in the meantime
        raise OutputError(str(error)) from error
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{path} could not be written: {reason}") from error
    finally:
        discard(temporary)
        discard(kept)


def _check_place(target: Path, path: Path, holding: str, *, overwrite: bool) -> None:
    if not target.parent.is_dir():
        raise UsageError(f"{path} cannot be written: there is no folder {target.parent}")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{path} is not a folder: name another")
    names = os.listdir(target) if target.exists() else []  # noqa: PTH208 (names are all we need)
    if names and not overwrite:
        raise UsageError(f"{path} exists: name another folder, or replace it with --force")
    if len(fnmatch.filter(names, holding)) < len(names):
        raise UsageError(
            f"{path} holds other files than {holding}, and is not replaced: name another folder"
        )
    _check_writable(target.parent)


def _check_writable(parent: Path) -> None:
    probe = temporary_path(parent)
    try:
        probe.mkdir()
    finally:
        discard(probe)


def _rename(temporary: Path, target: Path, kept: Path, *, overwrite: bool) -> None:
    """Give the new folder its name and keep the old one; if anything fails, undo that."""
    try:
        if overwrite and target.exists():
            target.rename(kept)
        temporary.rename(target)  # fails if that is a folder which is not empty
    except BaseException:
        # An interrupt may come right after a rename.
        with suppress(OSError):
            if not temporary.exists():
                target.rename(temporary)
            if kept.exists():
                kept.rename(target)
        raise
