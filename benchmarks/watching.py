"""What a process takes of memory and disk at most, seen from outside, as Linux tells it."""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

_BLOCK = 512
"""Bytes of the blocks in which the system counts a file's space."""


class Watch:
    """Looks at a process when called with its number, and keeps the largest of what it saw.

    Attributes:
        anonymous: Bytes of memory that are not a window on a file.
        spilled: Bytes on disk in open files that have no name.
    """

    def __init__(self) -> None:
        self.anonymous = 0
        self.spilled = 0

    def __call__(self, process: int) -> None:
        """Look once; a process that has just ended has nothing to show."""
        self.anonymous = max(self.anonymous, memory("RssAnon", process))
        self.spilled = max(self.spilled, unnamed_files(process))


def memory(line: str, process: int | str = "self") -> int:
    """Return a line of a process's status, in bytes: VmHWM is its peak of resident memory."""
    with suppress(OSError):
        status = Path(f"/proc/{process}/status").read_text("ascii", "replace")
        found = re.search(rf"^{line}:\s+(\d+) kB$", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    return 0


def unnamed_files(process: int | str = "self") -> int:
    """Return the bytes on disk of a process's open files that have lost their names."""
    space: dict[tuple[int, int], int] = {}
    with suppress(OSError):
        for handle in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                found = os.stat(handle)  # noqa: PTH116 (follows the link even if it names nothing)
                if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                    space[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK
    return sum(space.values())
