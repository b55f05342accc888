"""When to leave memory for the disk: beyond the limit that was given, or that the machine has."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Self

import pyarrow as pa

from dp_sips.engines.memory.disk import Disk, spill_folder
from dp_sips.errors import UsageError
from dp_sips.room import memory_left, memory_limit
from dp_sips.sources.batches import ROWS, in_pieces
from dp_sips.validation import check_bytes

_SHARE: Final = 0.7
_LEAST: Final = 64
_ROW_BYTES: Final = 1 << 10
"""Bytes of the limit for each row that is read at a time."""
_ELSE: Final = 4 << 30
"""The limit where the system does not say how much memory there is."""
_LOOK_EVERY: Final = 1 << 26
"""Bytes by which needs change until the system is asked again what it has: that takes a while."""
_LEAST_LIMIT: Final = 200
"""Megabytes; with less, there would be more runs on disk than a process may have open files."""


def check_limit(limit: int | str) -> None:
    """Reject a limit that is not a size, or that only little data could be selected under."""
    if check_bytes("memory_limit", limit) < _LEAST_LIMIT * 10**6:
        raise UsageError(
            f'memory_limit must be at least "{_LEAST_LIMIT} MB", got {limit!r}: give a size such '
            'as "8 GB", or leave it out'
        )


@dataclass
class Spill:
    """The limit, in bytes of memory, and the disk for what is beyond."""

    limit: int
    disk: Disk
    _seen: int = field(default=-_LOOK_EVERY, init=False)

    @classmethod
    def of(cls, limit: int | str | None, folder: str | os.PathLike[str] | None) -> Self:
        """Keep to a limit: unless given, 70 % of what the machine or its control group has."""
        usual = int(_SHARE * (memory_limit() or _ELSE))
        given = usual if limit is None else check_bytes("memory_limit", limit)
        return cls(given, Disk(spill_folder(folder)))

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Cut a batch into pieces that are small against the limit."""
        return in_pieces(batch, max(_LEAST, min(self.limit // _ROW_BYTES, ROWS)))

    def is_due(self, held: int, needed: int) -> bool:
        """Whether to write what is held to disk, as going on needs more bytes than there are."""
        whole = held + needed
        if whole > self.limit or abs(whole - self._seen) < _LOOK_EVERY:
            return whole > self.limit
        self._seen = whole
        left = memory_left()
        return left is not None and needed > left
