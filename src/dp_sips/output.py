"""Files appear whole or not at all, and several of them together or not at all.

They are written under another name, readable only by their owner, synced, and renamed once all of
them are complete. `check_output` refuses, before any data is read, what can be known to fail.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from dp_sips.errors import OutputError, UsageError
from dp_sips.formats import format_of, without_formulas, write_table
from dp_sips.temporaries import create, discard, temporary_path

Writer = Callable[[BinaryIO], object]
"""Writes all of a file to what it is given."""


def write_items(
    table: pa.Table,
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    escape_formulas: bool = False,
) -> None:
    """Write items to a file, in the format that its suffix tells unless one is given.

    An existing file is replaced, and stays as it was if anything fails. With `escape_formulas`,
    cells that a spreadsheet would take for formulas begin with an apostrophe.
    """
    place = Path(path)
    kind = format_of(place, format)
    shown = without_formulas(table) if escape_formulas else table
    write_files({place: lambda sink: write_table(shown, sink, place, kind)})


def check_output(
    path: str | os.PathLike[str], *, overwrite: bool = False, inputs: Iterable[Path] = ()
) -> None:
    """Reject a path that cannot be written, should not be replaced, or is one of the inputs."""
    place = Path(path)
    try:
        if place.exists() and any(place.samefile(given) for given in inputs):
            raise UsageError(f"{place} is an input file: write to another one")
        _check_place(place, overwrite=overwrite)
        _check_writable(_target(place).parent)
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}") from error


def write_files(writers: Mapping[Path, Writer], *, overwrite: bool = True) -> None:
    """Let each writer fill a new file; once all are complete, they get their names.

    They are filled in the order given. If anything fails or interrupts, none of the paths has
    changed. Without `overwrite`, a file that has appeared in the meantime counts as a failure.
    """
    files = [_File(path, _target(path), temporary_path(_target(path).parent)) for path in writers]
    try:
        for file in files:
            file.write(writers[file.path])
        _rename_all(files, overwrite=overwrite)
    finally:
        for file in files:
            discard(file.temporary)


def digest(sink: BinaryIO) -> str:
    """Return the SHA-256 of what a writer has written so far, in hexadecimal digits."""
    found = hashlib.sha256()
    sink.seek(0)
    while piece := sink.read(1 << 20):
        found.update(piece)
    return found.hexdigest()


@dataclass(frozen=True)
class _File:
    """A path as the caller names it, the file behind it, and where that is written until then."""

    path: Path
    target: Path
    temporary: Path

    def write(self, writer: Writer) -> None:
        """Have the temporary written, and the disk hold it."""
        with self.failing(), create(self.temporary) as sink:
            writer(sink)
            sink.flush()
            os.fsync(sink.fileno())

    def rename(self, *, overwrite: bool) -> None:
        """Give the file its name, and the permissions of the one that it replaces."""
        with self.failing():
            mode = _mode(self.target)
            if overwrite:
                self.temporary.replace(self.target)
            else:
                _rename_to_new(self.temporary, self.target)
            self.target.chmod(mode)

    @contextmanager
    def failing(self) -> Iterator[None]:
        try:
            yield
        except OutputError:
            raise
        except FileExistsError as error:
            raise OutputError(
                f"{self.path} has appeared in the meantime, and was not replaced: name another "
                "file, or replace it with --force"
            ) from error
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"{self.path} could not be written: {reason}") from error


def _rename_all(files: list[_File], *, overwrite: bool) -> None:
    """Rename every file, or undo the renames that were done."""
    with ExitStack() as undo:
        for file in files:
            # Planned before it is done: an interrupt may come right after the rename.
            undo.enter_context(_restoring(file))
            file.rename(overwrite=overwrite)
        for folder in {file.target.parent for file in files}:
            sync_folder(folder)


@contextmanager
def _restoring(file: _File) -> Iterator[None]:
    """Keep what the target is now, and put it back if the block fails."""
    new = file.temporary.stat()
    kept = temporary_path(file.target.parent)
    try:
        with file.failing(), suppress(FileNotFoundError):
            _keep(file.target, kept)
        yield
    except BaseException:
        _restore(file.target, new, kept)
        raise
    finally:
        discard(kept)


def _keep(target: Path, kept: Path) -> None:
    """Give a file a second name; where the file system has no links, a copy does."""
    try:
        kept.hardlink_to(target)
    except FileNotFoundError:
        raise
    except OSError:
        with target.open("rb") as old, create(kept) as sink:
            shutil.copyfileobj(old, sink)
        kept.chmod(_mode(target))


def _restore(target: Path, new: os.stat_result, kept: Path) -> None:
    with suppress(OSError):
        if not os.path.samestat(target.stat(), new):
            return
        if kept.exists():
            kept.replace(target)
        else:
            target.unlink()


def _rename_to_new(temporary: Path, target: Path) -> None:
    """Rename a file unless the new name is taken: one step, in which nobody else can take it."""
    try:
        target.hardlink_to(temporary)
        temporary.unlink()
    except FileExistsError:
        raise
    except OSError:  # a file system without links: an empty file claims the name
        target.open("xb").close()
        temporary.replace(target)


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


def _mode(target: Path) -> int:
    """Return the permissions of an existing file, or those that a new one gets."""
    with suppress(FileNotFoundError):
        return target.stat().st_mode & 0o7777
    # There is no way to read the mask without setting it: for an instant it is the strictest.
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _check_writable(folder: Path) -> None:
    """Make a file and remove it: permissions, read-only disks and quotas have too many rules."""
    probe = temporary_path(folder)
    try:
        create(probe).close()
    finally:
        discard(probe)


def sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
