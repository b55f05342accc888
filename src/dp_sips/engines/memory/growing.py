"""Arrays that grow at their end: in place, and on huge pages, once they are large.

Tables are read and written all over the place. On ordinary pages of 4 KB, finding the page takes
longer than the access itself, and the system hands out one page at a time.
"""

import mmap
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dp_sips.engines.memory.recycling import Memory, spares
from dp_sips.room import addresses_are_short, check_room, memory_limit

_SMALL: Final = 1 << 18
"""Bytes up to which an array is copied when it grows."""
_ELSE: Final = 1 << 31
"""Bytes of memory where the system does not say how much there is."""


class Growing:
    """An array of zeros that grows; where it has a width, a matrix that gets more rows."""

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._dtype = np.dtype(dtype)
        self._width = () if width is None else (width,)
        self._row_bytes = self._dtype.itemsize * (width or 1)
        self._whole: NDArray[Any] = np.zeros((0, *self._width), self._dtype)
        self._memory: Memory | None = None
        self._touched = 0

    def upto(self, length: int) -> NDArray[Any]:
        """Return an array of at least this length; what was returned before may be out of date."""
        if len(self._whole) < length:
            self._move(length)
        if self._memory:
            self._memory.use(length * self._row_bytes)
        return self._whole

    def touched_upto(self, length: int) -> NDArray[Any]:
        """Return the same, where values are read before they are written.

        A page that is read first is the shared page of zeros until it is written, and that write
        stops every thread of the process for a moment. So one byte of each page is written here.
        """
        whole = self.upto(length)
        begin, end = self._touched * self._row_bytes, length * self._row_bytes
        pages = slice(-(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end, mmap.PAGESIZE)
        whole.reshape(-1).view(np.uint8)[pages] = 0
        self._touched = max(self._touched, length)
        return whole

    def _move(self, length: int) -> None:
        before, room = self._whole, max(length, 2 * len(self._whole))
        if room * self._row_bytes > _SMALL:
            self._memory = _reserved(length * self._row_bytes)
            self._whole = self._window(self._memory)
        else:
            self._whole = np.zeros((room, *self._width), self._dtype)
        self._whole[: len(before)] = before

    def _window(self, memory: Memory) -> NDArray[Any]:
        length = len(memory) // self._row_bytes * self._row_bytes
        return np.asarray(memory)[:length].view(self._dtype).reshape(-1, *self._width)


def check_fresh(size: int) -> None:
    """Reject large arrays that need more memory than is left, and spare."""
    check_room(size - spares.size())


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros. Fresh memory of a large one is not written to before its use."""
    array, used = _made(shape, dtype)
    array.reshape(-1).view(np.uint8)[:used] = 0
    return array


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of anything."""
    return _made(shape, dtype)[0]


def _made(shape: int | tuple[int, ...], dtype: DTypeLike) -> tuple[NDArray[Any], int]:
    """Return an array, and how many of its first bytes may be other than zero."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size <= _SMALL:
        return np.zeros(shape, dtype), 0
    memory, used = Memory.of_spares(size)
    return np.asarray(memory)[:size].view(dtype).reshape(shape), used


def _reserved(size: int) -> Memory:
    """Return memory for all that there could be: what is never written to takes none.

    Where addresses are short, it is for twice of what is needed.
    """
    least = 2 * size
    try:
        return Memory(least if addresses_are_short() else max(least, _all_memory()))
    except OSError:  # there is another limit
        return Memory(least)


@cache
def _all_memory() -> int:
    return memory_limit() or _ELSE
