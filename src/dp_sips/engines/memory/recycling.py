"""The memory of large arrays: what some no longer need, others get.

The system clears every page before it hands it out, and the host of a virtual machine may have to
find it first: that can take longer than all that is done with it. So while data is loaded, the
memory of arrays that are gone stays here, and its pages move to where the next array is. Where the
system cannot move pages (elsewhere than on Linux, or on an old one), they go back to it.
"""

import ctypes
import itertools
import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Final, Self

import numpy as np

from dp_sips.room import addresses_are_short

_ORDINARY: Final = 1 << 27
"""Bytes on ordinary pages: a huge one is cleared whole, and some hosts are slow to provide it."""
_TO_THERE: Final = 1 | 2 | 4
"""Flags of mremap: pages may move, to just where they are told to, and leave their addresses."""
_FAILED: Final = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class _Spare:
    """Pages that nobody needs, one after the other and of one kind, as the system moves them."""

    mapping: mmap.mmap
    address: int
    size: int


class Spares:
    """Pages that nobody needs, while they are kept."""

    def __init__(self) -> None:
        self._kept = False
        self._spares: list[_Spare] = []
        self._lock = Lock()

    def keep(self) -> None:
        """From now on, keep what is added, unless addresses are short: it would keep them, too."""
        self._kept = not addresses_are_short()

    def return_all(self) -> None:
        """Return what there is to the system, and keep no more."""
        self._kept = False
        self.drop()

    def drop(self) -> None:
        """Return what there is to the system."""
        with self._lock:
            self._spares.clear()

    def size(self) -> int:
        """Return how many bytes there are."""
        return sum(spare.size for spare in self._spares)

    def add(self, mapping: mmap.mmap, address: int, size: int) -> None:
        """Keep pages of a mapping, or return them to the system."""
        # Without the lock: it is destructors that call this, at any moment.
        if self._kept:
            self._spares.append(_Spare(mapping, address, size))

    def move_to(self, address: int, size: int) -> list[int]:
        """Move up to this many bytes of pages to an address; return the sizes of what was moved.

        Where that fails, an OSError, there may be nothing at that address any more.
        """
        move, moved = _mover(), []
        with self._lock:
            while move and size and self._spares:
                spare = self._spares.pop()
                part = min(spare.size, size)
                rest = spare.size - part
                if move(spare.address + rest, part, part, _TO_THERE, address) == _FAILED:
                    raise OSError(ctypes.get_errno(), "cannot move pages")
                if rest:
                    self.add(spare.mapping, spare.address, rest)
                moved.append(part)
                address, size = address + part, size - part
        return moved


spares: Final = Spares()


class Memory:
    """Zeros that take memory once they are written to; spare memory when its last array is gone."""

    _used = 0

    def __init__(self, size: int) -> None:
        self._mapping = _mapped(_in_pages(size))
        self._address = int(np.frombuffer(self._mapping, np.uint8).ctypes.data)
        self._edges = [0, _ORDINARY]  # where pages of another kind may begin

    @classmethod
    def of_spares(cls, size: int) -> tuple[Self, int]:
        """Use spare memory first; return, too, how many bytes it is, which are no zeros."""
        memory = cls(size)
        memory.use(size)
        try:
            moved = spares.move_to(memory._address, memory._used)
        except OSError:
            memory._used = 0  # there may be a hole in it
            spares.return_all()
            return cls.of_spares(size)
        memory._edges += itertools.accumulate(moved)
        return memory, sum(moved)

    def __len__(self) -> int:
        return len(self._mapping)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What NumPy makes arrays of, which keep this object alive."""
        place = {"data": (self._address, False), "shape": (len(self),)}
        return {"version": 3, "typestr": "|u1", **place}

    def use(self, size: int) -> None:
        """Note that this many bytes, from the first, may be written to."""
        self._used = max(self._used, min(_in_pages(size), len(self)))

    def __del__(self, add: Callable[..., None] = spares.add) -> None:
        if self._used:
            edges = sorted({self._used, *(edge for edge in self._edges if edge < self._used)})
            for begin, end in itertools.pairwise(edges):
                add(self._mapping, self._address + begin, end - begin)


def _in_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _mapped(size: int) -> mmap.mmap:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux" and size > _ORDINARY:
        with suppress(OSError):  # the system has none
            memory.madvise(mmap.MADV_HUGEPAGE, _ORDINARY, size - _ORDINARY)
    return memory


@cache
def _mover() -> Any:
    """Return the system's function that moves pages, if it has one."""
    if sys.platform != "linux":
        return None
    with suppress(AttributeError, OSError):
        move = ctypes.CDLL(None, use_errno=True).mremap
        size, address = ctypes.c_size_t, ctypes.c_void_p
        move.argtypes, move.restype = (address, size, size, ctypes.c_int, address), address
        return move
    return None
