"""How much memory this process may use, and one clear error where that is not enough.

Public: the limits of the machine, which the error shows. Sensitive, and in no message: how much the
data would need, as that tells how many rows it has.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dp_sips.errors import DpSipsError, OutOfMemoryError

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OVERCOMMIT: Final = Path("/proc/sys/vm/overcommit_memory")
_GROUP_FILES: Final = {
    "": ("memory.max", "memory.current", ("inactive_file", "active_file")),
    "memory": (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
}
"""Limit, use, and what of the use can be freed: of cgroups version 2, and of version 1."""
_SYMPTOM: Final = re.compile(
    "cannot allocate memory|failed to map segment|can't start new thread|"
    "failed to launch worker thread",
    re.IGNORECASE,
)


_ADDRESSES: Final = (1 << 30) + (os.cpu_count() or 1) * (128 << 20)
"""Bytes of address space below which the threads of Arrow and NumPy hang or abort."""


def check_addresses() -> None:
    """Reject to begin under a limit on address space that libraries do not survive."""
    limit = _address_limit()
    if limit is not None and limit < _ADDRESSES:
        raise OutOfMemoryError(
            f"the limit on address space (ulimit -v) is {limit / 1e9:.1f} GB, and the least that "
            f"Arrow and NumPy need here is {_ADDRESSES / 1e9:.1f} GB: raise it"
        )


def memory_limit() -> int | None:
    """Return the bytes that this process may use at most, where the system says."""
    return min(filter(None, (_machine("MemTotal"), _group_limit(), _address_limit())), default=None)


def addresses_are_short() -> bool:
    """Whether addresses that are reserved are lost for others: by a limit, or a strict system."""
    with suppress(OSError):
        if _OVERCOMMIT.read_text("ascii").strip() == "2":
            return True
    return _address_limit() is not None


def memory_left() -> int | None:
    """Return the bytes that this process may still use, where the system says.

    Not what is left of the address space: libraries reserve much more of that than they use.
    """
    left = _machine("MemAvailable")
    for group in _groups():
        # What a group could free takes milliseconds to find out, and seldom matters.
        if left is None or group.limit - group.used < left:
            room = max(0, group.limit - group.used + group.freeable())
            left = room if left is None else min(left, room)
    return left


def check_room(needed: int) -> None:
    """Reject work that needs more memory than is left, before the system kills the process."""
    left = memory_left()
    if left is not None and needed > left:
        raise OutOfMemoryError(out_of_memory())


def out_of_memory() -> str:
    """Say that memory is not enough, how much there is, and what helps."""
    limit = memory_limit()
    shown = "" if limit is None else f" ({limit / 1e9:.1f} GB are allowed here)"
    return (
        f"out of memory{shown}: nothing was released. Raise the limit, use a larger machine, or a "
        "cluster with engine='spark'; docs/memory.md says how much memory data needs"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this error means that memory ran out; libraries say so in many ways."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return not isinstance(error, DpSipsError) and bool(_SYMPTOM.search(str(error)))


@contextmanager
def clear_about_memory() -> Iterator[None]:
    """Turn what libraries raise when memory runs out into one clear error."""
    check_addresses()
    try:
        yield
    except OutOfMemoryError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise OutOfMemoryError(out_of_memory()) from error
        raise


def _machine(name: str) -> int | None:
    """Return a line of /proc/meminfo."""
    return _number(Path("/proc/meminfo"), f"{name}:", unit=1024)


def _group_limit() -> int | None:
    return min((group.limit for group in _groups()), default=None)


@dataclass(frozen=True)
class _Group:
    """A control group with a limit on memory."""

    folder: Path
    limit: int
    used: int
    freeable_names: tuple[str, ...]

    def freeable(self) -> int:
        """Return what of the used memory the system can free."""
        stat = self.folder / "memory.stat"
        return sum(_number(stat, f"{name} ") or 0 for name in self.freeable_names)


def _groups() -> Iterator[_Group]:
    """Yield every control group of this process that has a limit."""
    for controller, place in _memberships():
        limit_name, used_name, freeable = _GROUP_FILES[controller]
        for folder in (place, *place.parents):
            limit, used = (_number(folder / name) for name in (limit_name, used_name))
            if limit is not None and used is not None:
                yield _Group(folder, limit, used, freeable)


def _memberships() -> Iterator[tuple[str, Path]]:
    """Yield the controllers that count memory, and the folder of this process's group in each."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("ascii", "replace").splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                if controller in _GROUP_FILES:
                    yield controller, _CGROUPS / controller / path.lstrip("/")


def _address_limit() -> int | None:
    """Return what `ulimit -v` allows."""
    with suppress(ImportError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return None if limit == resource.RLIM_INFINITY else limit
    return None


def _number(path: Path, name: str = "", unit: int = 1) -> int | None:
    """Return the number after `name` in a file of the system, or the file's first number."""
    with suppress(OSError):
        for line in path.read_text("ascii", "replace").splitlines():
            if line.startswith(name):
                number, *_ = line.removeprefix(name).split() or [""]
                return int(number) * unit if number.isdigit() else None
    return None
