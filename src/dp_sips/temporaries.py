"""Files and folders that this process has made under names of their own, to rename or remove."""

import itertools
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

_ONLY_OWNER: Final = 0o600
_NAMED: Final[set[Path]] = set()
_COUNT: Final = itertools.count()


def temporary_path(folder: Path, suffix: str = ".tmp") -> Path:
    """Return a name that nobody uses, and remember it until it is discarded."""
    # A leading dot: anyone who lists the folder meanwhile does not see it.
    path = folder / f".dp-sips-{os.getpid()}-{time.time_ns():x}-{next(_COUNT)}{suffix}"
    _NAMED.add(path)
    return path


def create(path: Path) -> BinaryIO:
    """Open a new file that only its owner can read: it may hold people's data."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _ONLY_OWNER), "w+b")


def discard(path: Path) -> None:
    """Remove the file or folder, if it is still there under this name."""
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    _NAMED.discard(path)


def discard_all() -> None:
    """Remove what is left: an interrupt may have come while another was being cleaned up after."""
    for path in tuple(_NAMED):
        discard(path)
