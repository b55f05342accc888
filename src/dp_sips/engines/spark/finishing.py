"""The last items, in the driver's memory: rounds on so few need no cluster."""

from collections.abc import Iterable
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.memory import kernels
from dp_sips.engines.memory.min_users import NO_TABLE, Givers
from dp_sips.engines.spark.chunks import Chunk, read_chunks
from dp_sips.engines.spark.sums import Sums
from dp_sips.privacy.arrays import Blocks, Claims, Weights
from dp_sips.privacy.contributions import DecideOnEvidence


class LastItems:
    """The items that are still in users' sets, with their evidence and claims, and these sets.

    Sensitive: all of it.
    """

    def __init__(
        self, items: Sums, claims: Claims, numbers: NDArray[np.uint32], ends: NDArray[np.uint64]
    ) -> None:
        self._blocks = items.blocks
        self._evidence = items.evidence
        self._claims = claims
        self._numbers = numbers
        self._ends = ends

    @classmethod
    def from_batches(cls, items: Sums, claims: Claims, batches: Iterable[pa.RecordBatch]) -> Self:
        """Read chunks that have no other items than these, which are sorted as in a `BlockSet`."""
        known = BlockSet(items.blocks)
        numbers, ends, size = [np.empty(0, np.uint32)], [np.empty(0, np.uint64)], 0
        for chunk in read_chunks(batches):
            numbers.append(_renumbered(chunk, known))
            ends.append(chunk.ends + np.uint64(size))
            size += len(chunk.items)
        return cls(items, claims, np.concatenate(numbers), np.concatenate(ends))

    def weigh_by_claim(self, step_bits: int, min_users: int = 1) -> Weights:
        """Return the weight of each item."""
        weights = np.zeros(len(self._blocks), dtype=np.uint64)
        left = kernels.add_claimed_weights(
            self._numbers, self._ends, self._claims, step_bits, weights, 0, 0, len(self._ends)
        )
        self._numbers = self._numbers[:left]
        if min_users > 1:
            most = len(self._numbers)
            sets = self._numbers, self._ends
            givers = Givers(*sets, self._claims, most, NO_TABLE, step_bits)
            givers.reduce(weights, min_users, 1, lambda work, parts: list(map(work, parts)))
        return weights

    def decide_on_evidence(self, weights: Weights, decide: DecideOnEvidence) -> Blocks:
        """Return the blocks to release; the items leave the sets."""
        active = np.flatnonzero(self._claims)
        self._evidence[active], released, self._claims[active] = decide(
            self._blocks[active], weights[active], self._evidence[active]
        )
        found = active[released]
        self._claims[found] = 0
        return self._blocks[found]


def _renumbered(chunk: Chunk, known: BlockSet) -> NDArray[np.uint32]:
    return known.find(chunk.blocks).astype(np.uint32)[chunk.items]
