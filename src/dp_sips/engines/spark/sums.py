"""Partial sums by item: the weight and the evidence of each block.

They travel as payloads, one for each bucket of items. The weights of an item add up, and so does
its evidence, which is in at most one of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.block_sets import hash_blocks
from dp_sips.engines.spark.numbering import number_blocks
from dp_sips.engines.spark.wire import Labels, buckets_of, pack, shuffle_rows, unpack
from dp_sips.privacy.arrays import Blocks, Weights, Words
from dp_sips.privacy.contributions import MOST, Evidence

_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_BUFFER_SIZE: Final = 1 << 21
"""Partial sums that are gathered before those of the same item are added up."""


@dataclass(frozen=True)
class Sums:
    """Columns of the same length, one row for each item."""

    blocks: Blocks
    weights: Weights
    evidence: Evidence

    @classmethod
    def of_weights(cls, blocks: Blocks, weights: Weights) -> Self:
        """Return the sums of items that have a weight, without evidence."""
        present = np.flatnonzero(weights)
        return cls(blocks[present], weights[present], np.zeros(len(present)))

    @classmethod
    def of_evidence(cls, blocks: Blocks, evidence: Evidence) -> Self:
        """Return sums without weights."""
        return cls(blocks, np.zeros(len(blocks), dtype=np.uint64), evidence)

    def __len__(self) -> int:
        return len(self.blocks)

    def batches(self, size: int) -> Iterator["Sums"]:
        """Split into batches of at most `size` items."""
        return (self.take(slice(start, start + size)) for start in range(0, len(self), size))

    def take(self, rows: Any) -> "Sums":
        """Return some of the rows."""
        return Sums(self.blocks[rows], self.weights[rows], self.evidence[rows])

    def payloads(self, labels: Labels) -> tuple[Labels, list[bytes]]:
        """Return the labels of the buckets that have sums, and a payload for each."""
        hashes = hash_blocks(self.blocks)
        if (hashes[1:] < hashes[:-1]).any():
            return self.take(np.argsort(hashes)).payloads(labels)
        buckets, starts = np.unique(buckets_of(hashes, len(labels)), return_index=True)
        columns = [*self.blocks.T, self.weights, self.evidence.view(np.uint64)]
        edges = pairwise([*starts.tolist(), len(self)])
        return labels[buckets], [pack([c[begin:end] for c in columns]) for begin, end in edges]

    def to_batch(self, labels: Labels) -> pa.RecordBatch:
        """Return the sums as rows of `SHUFFLE_SCHEMA`."""
        return shuffle_rows(*self.payloads(labels))


def add_up(payloads: Iterable[Any]) -> Sums:
    """Add up the partial sums of the same items."""
    total, held, size = _from_columns([]), list[list[Words]](), 0
    for payload in payloads:
        held.append(unpack(payload))
        size += len(held[-1][0])
        if size >= max(_BUFFER_SIZE, len(total)):
            total, held, size = _add(total, _from_columns(held)), [], 0
    return _add(total, _from_columns(held))


def _from_columns(parts: list[list[Words]]) -> Sums:
    low, high, weights, evidence = (
        np.concatenate([np.empty(0, np.uint64), *(part[n] for part in parts)]) for n in range(4)
    )
    return Sums(np.stack((low, high), axis=1), weights, evidence.view(np.float64))


def _add(one: Sums, other: Sums) -> Sums:
    if not len(other):
        return one
    blocks, numbers = number_blocks(np.concatenate((one.blocks, other.blocks)))
    weights = np.zeros(len(blocks), dtype=np.uint64)
    evidence = np.zeros(len(blocks))
    _add_saturating(weights, numbers, np.concatenate((one.weights, other.weights)))
    np.add.at(evidence, numbers, np.concatenate((one.evidence, other.evidence)))
    return Sums(blocks, weights, evidence)


def _add_saturating(sums: Weights, numbers: NDArray[np.uint32], weights: Weights) -> None:
    """Add weights to the sums with these numbers; no sum grows beyond `MOST`."""
    if weights.sum(dtype=np.float64) < MOST:
        np.add.at(sums, numbers, weights)
        return
    high, low = np.zeros_like(sums), np.zeros_like(sums)
    np.add.at(high, numbers, weights >> _HALF)
    np.add.at(low, numbers, weights & _LOW_HALF)
    high += low >> _HALF
    saturated = high >= np.uint64(MOST >> 32)
    sums[:] = np.where(saturated, np.uint64(MOST), high << _HALF | low & _LOW_HALF)
