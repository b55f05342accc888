"""Where large arrays live: in memory or, beyond a limit, in files that memory is a window on.

A file loses its name as soon as it is open, so that its space comes back when the process ends,
however it ends: by success, an error or a signal. Its space is taken before memory is a window on
it, so that a full disk is an error here and not a crash later. Nobody else can open it (mode 0600).
"""

import errno
import mmap
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from dp_sips.engines.memory.growing import zeros
from dp_sips.errors import DiskFullError, UsageError
from dp_sips.room import check_room

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)
_WORD: Final = 8
_RANDOM_SHARE: Final = 0.75
"""How much of the memory is for arrays that are read and written in no order."""
_IN_MEMORY: Final = ("tmpfs", "ramfs")
_ON_DISK: Final = Path("/var/tmp")  # noqa: S108 (files in it have no names)
_NO_BYTES: Final = np.empty(0, dtype=np.uint8)
_MOUNTS: Final = Path("/proc/self/mounts")


class Arrays(Protocol):
    """Makes arrays, and is told when parts of them are not needed soon."""

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros."""

    def empty_like(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array like this one, where there is room for a second."""
        return self.zeros(array.shape, array.dtype)

    def forget(self, array: NDArray[Any]) -> None:
        """Let the array's contents leave memory if that is short; what is in no file is lost."""

    def visit_anywhere(self, array: NDArray[Any]) -> None:
        """Say that the array is read in no order: what is beside a value is not needed soon."""
        del array

    def in_memory(self, number: int, size: int, limit: int) -> list[NDArray[np.uint64]]:
        """Return up to this many arrays of words that are all over the place at the same time.

        They are not initialised.
        """
        del limit
        return [zeros(size, np.uint64) for _ in range(number)]

    def pieces(self, pairs: int) -> int:
        """Return how many pieces to cut a thread's part of these pairs into, to have one a time."""
        del pairs
        return 1


class InMemory(Arrays):
    """Plain arrays.

    Attributes:
        spare: Memory that has been used: fresh memory is slow.
    """

    def __init__(self, spare: NDArray[np.uint8] = _NO_BYTES) -> None:
        self._spare = spare

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros."""
        return zeros(shape, dtype)

    def empty_like(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array like this one, where there is room for a second."""
        check_room(array.nbytes)
        return super().empty_like(array)

    def forget(self, array: NDArray[Any]) -> None:
        """Do nothing: there is no file."""
        del array

    def in_memory(self, number: int, size: int, limit: int) -> list[NDArray[np.uint64]]:
        """Return as many as asked for; in spare memory where they take most of it."""
        spare, self._spare = self._spare, _NO_BYTES  # it stays while any part of it is in use
        room = min(number, len(spare) // (8 * max(size, 1)))
        if 16 * size * room < len(spare):
            room = 0
        reused = spare[: 8 * size * room].view(np.uint64).reshape(room, size)
        return [*reused, *super().in_memory(number - room, size, limit)]


@dataclass(frozen=True)
class Disk(Arrays):
    """Arrays in files without names.

    Attributes:
        folder: Where the files are.
        seen: How many bytes of an array to have in memory at a time.
    """

    folder: Path
    seen: int = 1 << 26

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros in a file of its own."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape)) * kind.itemsize
        with self.file() as file, clear_about_disks(self.folder):
            if size:
                _take_space(file, size)
            return _window(file, kind, size).reshape(shape)

    def appender(self) -> "Appender":
        """Return an empty array that grows at its end."""
        return Appender(self.file(), self.folder)

    def file(self) -> BinaryIO:
        """Return an open file without a name."""
        with clear_about_disks(self.folder):
            return tempfile.TemporaryFile(dir=self.folder, prefix="dp-sips-")

    def forget(self, array: NDArray[Any]) -> None:
        """Let the pages of this array leave memory; they are in its file, or lost."""
        if sys.platform == "linux":
            _advise(array, mmap.MADV_DONTNEED)

    def visit_anywhere(self, array: NDArray[Any]) -> None:
        """Have the system read single pages: it may read megabytes ahead, and forget others."""
        if sys.platform == "linux":
            _advise(array, mmap.MADV_RANDOM)

    def drop(self, array: NDArray[Any]) -> None:
        """Give an array's space on disk back, where the system can; its contents are lost."""
        if sys.platform == "linux":
            with suppress(OSError):
                _advise(array, mmap.MADV_REMOVE)

    def in_memory(self, number: int, size: int, limit: int) -> list[NDArray[np.uint64]]:
        """Return as many as fit into most of the limit; one on disk where none does."""
        most = int(limit * _RANDOM_SHARE) // (8 * max(size, 1))
        if most:
            return super().in_memory(min(number, most), size, limit)
        return [self.zeros(size, np.uint64)]

    def pieces(self, pairs: int) -> int:
        """Return how many pieces have as many bytes each as are to be seen at a time."""
        return max(1, 4 * pairs // self.seen)


class Appender:
    """Writes arrays to one file, piece by piece and one after the other."""

    def __init__(self, file: BinaryIO, folder: Path) -> None:
        self.file = file
        self._folder = folder
        self._begin = 0
        self._spans: list[tuple[slice, DTypeLike, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        try:
            self.file.close()
        except OSError:  # it tries to write once more what did not fit
            if error is None:
                raise

    def append(self, array: NDArray[Any]) -> None:
        """Write more rows."""
        with clear_about_disks(self._folder):
            self.file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def append_batches(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write a stream of Arrow's."""
        with clear_about_disks(self._folder), pa.ipc.new_stream(self.file, schema) as stream:
            for batch in batches:
                stream.write_batch(batch)

    def end(self, dtype: DTypeLike, width: int = 0) -> None:
        """End an array, a matrix where it has a width; the next begins at a whole word."""
        end = self.file.tell()
        self._spans.append((slice(self._begin, end), dtype, width))
        self.append(np.zeros(-end % _WORD, dtype=np.uint8))
        self._begin = self.file.tell()

    def only(self, dtype: DTypeLike, width: int = 0) -> NDArray[Any]:
        """End the first array, and return it."""
        self.end(dtype, width)
        return self.arrays()[0]

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays that have ended."""
        with clear_about_disks(self._folder):
            self.file.flush()
            whole = _window(self.file, np.dtype(np.uint8), self._begin)
        flat = ((whole[span].view(dtype), width) for span, dtype, width in self._spans)
        return [array.reshape(-1, width) if width else array for array, width in flat]


def spill_folder(given: str | os.PathLike[str] | None) -> Path:
    """Return the folder for files beyond memory: the system's own for temporary files, if on disk.

    Raises:
        UsageError: The folder that was given cannot be written to.
    """
    if given is not None:
        return _writable(given)
    usual = Path(tempfile.gettempdir())
    return _ON_DISK if _kind_of(usual) in _IN_MEMORY and _ON_DISK.is_dir() else usual


def _writable(given: str | os.PathLike[str]) -> Path:
    """Return a folder in which a file could be made: /proc grants root that right, and has none."""
    try:
        folder = Path(given)
        Disk(folder).file().close()
    except (OSError, TypeError, ValueError) as error:  # ValueError: a path with a null character
        missing = isinstance(error, FileNotFoundError) and not Path(given).exists()
        fix = ", which does not exist: make it first" if missing else ""
        raise UsageError(
            f"spill_folder must be a folder that can be written to, got {given}{fix}"
        ) from error
    return folder


def _kind_of(folder: Path) -> str:
    """Return the type of the file system that a folder is on, where the system says."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text("ascii", "replace").splitlines()]
    except OSError:
        return ""
    within = [(len(place), kind) for _, place, kind, *_ in mounts if folder.is_relative_to(place)]
    return max(within, default=(0, ""))[1]


def _take_space(file: BinaryIO, size: int) -> None:
    if sys.platform == "linux":
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)


def _window(file: BinaryIO, kind: np.dtype[Any], size: int) -> NDArray[Any]:
    if not size:
        return np.empty(0, kind)
    return np.frombuffer(mmap.mmap(file.fileno(), size), kind)


def _advise(array: NDArray[Any], advice: int) -> None:
    """Tell the system about the pages of an array that is a window on a file; others are spared."""
    memory = _file_behind(array)
    if memory is None:
        return
    begin = array.ctypes.data - np.frombuffer(memory, np.uint8).ctypes.data
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        memory.madvise(advice, first, length)


def _file_behind(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    found = base.obj if isinstance(base, memoryview) else base
    return found if isinstance(found, mmap.mmap) else None


@contextmanager
def clear_about_disks(folder: Path) -> Iterator[None]:
    """Turn what the system says of a full disk into one clear error."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(
                f"the disk of {folder} is full, and the data is more than memory holds: nothing "
                "was released. Choose another folder (spill_folder), or allow more memory "
                "(memory_limit)"
            ) from error
        if error.errno in _TOO_MANY:
            raise DiskFullError(
                "the data is more than memory holds, and takes more files than may be open: "
                "nothing was released. Allow more open files (ulimit -n), or more memory "
                "(memory_limit)"
            ) from error
        raise
