"""The memory engine with a limit far below the least that users may give: all is spilled."""

from dataclasses import dataclass

from dp_sips import MemoryEngine


@dataclass(frozen=True)
class SpillingEngine(MemoryEngine):
    """Takes a few hundred rows at a time, and has a run on disk for every few of those."""

    memory_limit: int | str | None = 1 << 19

    def __post_init__(self) -> None:
        """Accept any limit."""
