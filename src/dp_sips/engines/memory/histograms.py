"""A histogram of the items for each thread, kept from round to round: fresh memory is slow."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Final, TypeVar

import numpy as np

from dp_sips.engines.memory.crew import taken
from dp_sips.privacy.arrays import Weights

S = TypeVar("S")

_PIECE: Final = 1 << 16
"""Items whose sums are added up at a time."""


class Histograms:
    """Threads add to histograms of their own, and the sum of these is written over the first.

    Between two sums, the first is free for anything else.
    """

    def __init__(self, each: list[Weights], pool: Executor) -> None:
        self._each, self._pool = each, pool

    def __len__(self) -> int:
        return len(self._each)

    @property
    def first(self) -> Weights:
        """The histogram that there always is."""
        return self._each[0]

    def keep(self, count: int) -> None:
        """Free all but this many."""
        del self._each[count:]

    def sum(
        self, shares: Iterable[S], add: Callable[[Weights, S], object], most: int | None = None
    ) -> Weights:
        """Let threads `add` the shares, side by side, and return the sums.

        If `most` is given, sums stop there, as what is added to each histogram must do.
        """
        # Each thread takes the next share when it is ready: the first to fill a histogram with
        # fresh memory is late.
        left = deque(shares)

        def work(histogram: Weights) -> None:
            histogram.fill(0)
            for share in taken(left):
                add(histogram, share)

        def add_up(start: int) -> None:
            total, *others = (histogram[start : start + _PIECE] for histogram in self._each)
            for other in others:
                total += other
                if most is not None:
                    np.minimum(total, np.uint64(most), out=total)

        list(self._pool.map(work, self._each))
        list(self._pool.map(add_up, range(0, len(self.first), _PIECE)))
        return self.first
