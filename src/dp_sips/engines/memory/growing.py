"""Arrays that grow at their end: in place, and on huge pages, once they are large.

Tables are read and written all over the place. On ordinary pages of 4 KB, finding the page takes
longer than the access itself, and the system hands out one page at a time.
"""

import mmap
import sys
from contextlib import suppress
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dp_sips.room import addresses_are_short, memory_limit

_SMALL: Final = 1 << 18
"""Bytes up to which an array is copied when it grows."""
_ORDINARY: Final = 1 << 27
"""Bytes on ordinary pages: a huge one is cleared whole, and some hosts are slow to provide it."""
_ELSE: Final = 1 << 31
"""Bytes of memory where the system does not say how much there is."""


class Growing:
    """An array of zeros that grows; where it has a width, a matrix that gets more rows."""

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._dtype = np.dtype(dtype)
        self._width = () if width is None else (width,)
        self._row_bytes = self._dtype.itemsize * (width or 1)
        self._whole: NDArray[Any] = np.zeros((0, *self._width), self._dtype)
        self._touched = 0

    def upto(self, length: int) -> NDArray[Any]:
        """Return an array of at least this length; what was returned before may be out of date."""
        if len(self._whole) < length:
            self._move(length)
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
            self._whole = self._reserve(length)
        else:
            self._whole = np.zeros((room, *self._width), self._dtype)
        self._whole[: len(before)] = before

    def _reserve(self, length: int) -> NDArray[Any]:
        """Return zeros for all that memory could hold: what is never written to takes none.

        Where addresses are short, these are for twice of what is needed.
        """
        least = 2 * length * self._row_bytes
        try:
            memory = _mapped(least if addresses_are_short() else max(least, _all_memory()))
        except OSError:  # there is another limit
            memory = _mapped(least)
        values = len(memory) // self._row_bytes * self._row_bytes // self._dtype.itemsize
        return np.frombuffer(memory, self._dtype, values).reshape(-1, *self._width)


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros that is not written to, where it is large, before it is used."""
    size = int(np.prod(shape))
    return Growing(dtype).upto(size)[:size].reshape(shape)


@cache
def _all_memory() -> int:
    return memory_limit() or _ELSE


def _mapped(size: int) -> mmap.mmap:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux" and size > _ORDINARY:
        with suppress(OSError):  # the system has none
            memory.madvise(mmap.MADV_HUGEPAGE, _ORDINARY, size - _ORDINARY)
    return memory
