"""Freed memory stays in the process while a plan runs, and goes back to the system afterwards.

glibc gives large blocks back at once, and the system clears every page that it hands out again:
with hundreds of megabytes that come and go, that was a sixth of the time of a run. Without glibc
(macOS, Windows, musl) this changes nothing.

Arrow's usual allocator, mimalloc, takes several times the memory that batches of text need, as each
of its threads has pages of its own. Where Arrow ships with jemalloc, a run uses that instead.
"""

import ctypes
from contextlib import suppress
from typing import Final

import pyarrow as pa

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEPT: Final = {_TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 64 << 20, _MMAP_THRESHOLD: 1 << 30}
# Where glibc's own rule ends up; once set, it learns no more.
_USUAL: Final = {_TRIM_THRESHOLD: 64 << 20, _TOP_PAD: 128 << 10, _MMAP_THRESHOLD: 32 << 20}


_USUAL_POOL, _OUR_POOL = "mimalloc", "jemalloc"
_before: list[pa.MemoryPool] = []
"""The pool to return to after a run, as long as ours is in its place."""


def keep_memory() -> None:
    """Keep what is freed for the next to ask."""
    _set(_KEPT)
    pool = pa.default_memory_pool()
    if pool.backend_name == _USUAL_POOL:  # otherwise, the caller chose
        with suppress(NotImplementedError):
            pa.set_memory_pool(pa.jemalloc_memory_pool())
            _before.append(pool)


def give_memory_back() -> None:
    """Return what is free, and keep no more."""
    if _set(_USUAL):
        ctypes.CDLL(None).malloc_trim(0)
    if _before:
        pa.default_memory_pool().release_unused()


def return_to_usual() -> None:
    """Return what is free, at the end of a run, and return to the usual ways."""
    give_memory_back()
    with suppress(IndexError):  # another run has done it, or there is nothing to do
        pool = _before.pop()
        if pa.default_memory_pool().backend_name == _OUR_POOL:
            pa.set_memory_pool(pool)


def _set(options: dict[int, int]) -> bool:
    try:
        libc = ctypes.CDLL(None)
        mallopt = libc.mallopt
        _ = libc.malloc_trim  # only glibc has both
    except (AttributeError, OSError, TypeError):
        return False
    return all(mallopt(name, value) for name, value in options.items())
