"""Freed memory stays in the process while a plan runs, and goes back to the system afterwards.

glibc gives large blocks back at once, and the system clears every page that it hands out again:
with hundreds of megabytes that come and go, that was a sixth of the time of a run. Elsewhere
(macOS, Windows, musl) nothing changes.
"""

import ctypes
from typing import Final

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEPT: Final = {_TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 64 << 20, _MMAP_THRESHOLD: 1 << 30}
# Where glibc's own rule ends up; once set, it learns no more.
_USUAL: Final = {_TRIM_THRESHOLD: 64 << 20, _TOP_PAD: 128 << 10, _MMAP_THRESHOLD: 32 << 20}


def keep_memory() -> None:
    """Keep what is freed for the next to ask."""
    _set(_KEPT)


def give_memory_back() -> None:
    """Return to the usual ways, and return what is free."""
    if _set(_USUAL):
        ctypes.CDLL(None).malloc_trim(0)


def _set(options: dict[int, int]) -> bool:
    try:
        libc = ctypes.CDLL(None)
        mallopt = libc.mallopt
        _ = libc.malloc_trim  # only glibc has both
    except (AttributeError, OSError, TypeError):
        return False
    return all(mallopt(name, value) for name, value in options.items())
