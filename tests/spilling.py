"""The memory engine with a limit far below the least that users may give: all is spilled."""

from dataclasses import dataclass
from unittest.mock import patch

from dp_sips import MemoryEngine
from dp_sips.engines.memory import runs
from dp_sips.engines.memory.contributions import MemoryContributions
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import Source


@dataclass(frozen=True)
class SpillingEngine(MemoryEngine):
    """Takes a few hundred rows at a time, and has a run on disk for every few of those.

    Runs are written in several pieces, as large ones are.
    """

    memory_limit: int | str | None = 1 << 19

    def __post_init__(self) -> None:
        """Accept any limit."""

    def load(
        self, source: Source, bounds: Bounds, key: Key, progress: Progress
    ) -> MemoryContributions:
        """Read a source whole, with small pieces."""
        with patch.object(runs, "PIECE", 50):
            return super().load(source, bounds, key, progress)
