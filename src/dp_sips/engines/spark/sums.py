"""Sums: what is known of items where they meet, a weight and evidence for each block.

They travel as parcels, one for each bucket of items. The weights of an item add up, and so does its
evidence, of which only one parcel has any.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.spark.block_sets import buckets_of, numbered, words_of
from dp_sips.engines.spark.packing import pack, unpack
from dp_sips.privacy.arrays import Blocks, Weights
from dp_sips.privacy.contributions import MOST, Evidence

_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_HELD: Final = 1 << 21
"""Sums that are gathered before those of the same item are added."""


@dataclass(frozen=True)
class Sums:
    """Columns of the same length."""

    blocks: Blocks
    weights: Weights
    evidence: Evidence

    @classmethod
    def of_weights(cls, blocks: Blocks, weights: Weights) -> Self:
        """Return sums without evidence."""
        return cls(blocks, weights, np.zeros(len(blocks)))

    @classmethod
    def of_evidence(cls, blocks: Blocks, evidence: Evidence) -> Self:
        """Return sums without weights."""
        return cls(blocks, np.zeros(len(blocks), dtype=np.uint64), evidence)

    def __len__(self) -> int:
        return len(self.blocks)

    def pieces(self, size: int) -> Iterator["Sums"]:
        """Cut into pieces of `size`."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def take(self, rows: Any) -> "Sums":
        """Return some of the rows."""
        return Sums(self.blocks[rows], self.weights[rows], self.evidence[rows])

    def parcels(self, count: int) -> tuple[NDArray[np.int64], list[bytes]]:
        """Return the buckets, of `count`, that have sums, and a parcel for each."""
        words = words_of(self.blocks)
        if (words[1:] < words[:-1]).any():
            return self.take(np.argsort(words)).parcels(count)
        buckets = buckets_of(words, count)
        present, starts = np.unique(buckets, return_index=True)
        columns = [*self.blocks.T, self.weights, self.evidence.view(np.uint64)]
        edges = [*starts.tolist(), len(self)]
        cargo = [pack([column[begin:end] for column in columns]) for begin, end in pairwise(edges)]
        return present.astype(np.int64), cargo


def added(parcels: Iterable[Any]) -> Sums:
    """Add what parcels say of the same items."""
    total, held, size = _unpacked([]), list[Any](), 0
    for parcel in parcels:
        held.append(unpack(parcel))
        size += len(held[-1][0])
        if size >= max(_HELD, len(total)):
            total, held, size = _joined(total, _unpacked(held)), [], 0
    return _joined(total, _unpacked(held))


def _unpacked(parcels: list[Any]) -> Sums:
    low, high, weights, evidence = (
        np.concatenate([np.empty(0, np.uint64), *(parcel[n] for parcel in parcels)])
        for n in range(4)
    )
    return Sums(np.stack((low, high), axis=1), weights, evidence.view(np.float64))


def _joined(one: Sums, other: Sums) -> Sums:
    if not len(other):
        return one
    blocks, places = numbered(np.concatenate((one.blocks, other.blocks)))
    weights = np.zeros(len(blocks), dtype=np.uint64)
    evidence = np.zeros(len(blocks))
    _add(weights, places, np.concatenate((one.weights, other.weights)))
    np.add.at(evidence, places, np.concatenate((one.evidence, other.evidence)))
    return Sums(blocks, weights, evidence)


def _add(sums: Weights, places: NDArray[np.uint32], weights: Weights) -> None:
    """Add weights in their places; where so much comes together, sums stop at adaptive.MOST."""
    if weights.sum(dtype=np.float64) < MOST:
        np.add.at(sums, places, weights)
        return
    high, low = np.zeros_like(sums), np.zeros_like(sums)
    np.add.at(high, places, weights >> _HALF)
    np.add.at(low, places, weights & _LOW)
    high += low >> _HALF
    many = high >= np.uint64(MOST >> 32)
    sums[:] = np.where(many, np.uint64(MOST), high << _HALF | low & _LOW)


def to_batch(labels: NDArray[np.int32], sums: Sums) -> pa.RecordBatch:
    """Return sums as rows of `parcels.SCHEMA`."""
    buckets, cargo = sums.parcels(len(labels))
    columns: list[Any] = [pa.array(labels[buckets]), pa.array(cargo, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "parcel"])
