"""Reduced weights on a cluster: sums in which contributions of different size are kept apart.

Before the shuffle by item, workers count how many users give how much to each item. After it, all
contributions to an item are in one place, and the largest are left out of its sum.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from dp_sips.engines.block_sets import hash_blocks
from dp_sips.engines.spark.numbering import number_blocks
from dp_sips.engines.spark.sums import Sums
from dp_sips.engines.spark.wire import (
    Labels,
    buckets_of,
    pack,
    payloads_of,
    shuffle_rows,
    unpack,
)
from dp_sips.privacy.arrays import Blocks, Integers, Weights, Words

_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_COLUMNS: Final = 3
"""Payloads of parts have this many columns; payloads of evidence have more."""


@dataclass(frozen=True)
class Parts:
    """How many users give how much to each item: a row for each item and contribution."""

    blocks: Blocks
    given: Weights
    users: Weights

    @classmethod
    def of(cls, blocks: Blocks, items: Any, given: Weights) -> Self:
        """Count contributions to items, which are numbers of blocks."""
        rows, users = np.unique(items.astype(np.uint64) << _HALF | given, return_counts=True)
        return cls(blocks[rows >> _HALF], rows & _LOW_HALF, users.astype(np.uint64))

    def to_batch(self, labels: Labels) -> pa.RecordBatch:
        """Return the parts as rows of `SHUFFLE_SCHEMA`."""
        hashes = hash_blocks(self.blocks)
        order = np.argsort(hashes)
        buckets, starts = np.unique(buckets_of(hashes[order], len(labels)), return_index=True)
        columns = [column[order] for column in (*self.blocks.T, self.given << _HALF | self.users)]
        edges = pairwise([*starts.tolist(), len(order)])
        payloads = [pack([c[begin:end] for c in columns]) for begin, end in edges]
        return shuffle_rows(labels[buckets], payloads)


def given_by_claim(claims: Integers, sizes: Integers, step_bits: int) -> Weights:
    """Return `weights.claimed_weight` of users' items, as many as `sizes` says each."""
    ends, before = np.cumsum(sizes), np.append(0, np.cumsum(claims))
    totals = np.repeat(before[ends] - before[ends - sizes], sizes)
    # A double's square root of an integer below 2⁵², rounded down, is exact.
    roots: Weights = np.sqrt((claims << 2 * step_bits) // totals).astype(np.uint64)
    return roots


@dataclass(frozen=True)
class ReduceParts:
    """The pass after the shuffle by item: parts become sums, beside the evidence.

    Items that fewer than `min_users` users give to have a sum of 0, and stay.
    """

    min_users: int
    labels: Labels

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream rows of `SHUFFLE_SCHEMA`."""
        payloads = [unpack(payload) for payload in payloads_of(batches)]
        parts = _joined([part for part in payloads if len(part) == _COLUMNS], _COLUMNS)
        known = _joined([part for part in payloads if len(part) > _COLUMNS], _COLUMNS + 1)
        blocks, numbers = number_blocks(np.stack([*np.hstack((parts[:2], known[:2]))], axis=1))
        count = parts.shape[1]
        evidence = np.zeros(len(blocks))
        np.add.at(evidence, numbers[count:], known[-1].view(np.float64))
        weights = _reduced(numbers[:count], parts[-1], len(blocks), self.min_users)
        yield Sums(blocks, weights, evidence).to_batch(self.labels)


def _joined(payloads: list[list[Words]], columns: int) -> Words:
    empty = np.empty(0, np.uint64)
    return np.stack([np.concatenate([empty, *(p[n] for p in payloads)]) for n in range(columns)])


def _reduced(items: Any, packed: Words, count: int, min_users: int) -> Weights:
    """Return `min_users.reduced` of each item's contributions; `packed` has them and their users.

    Largest first, the users before a row are left out, and some of its own.
    """
    order = np.lexsort((~packed, items))
    items, packed = items[order], packed[order]
    users = (packed & _LOW_HALF).astype(np.int64)
    before = np.cumsum(users) - users
    first = np.flatnonzero(np.diff(items, prepend=items[:1] + 1))
    before -= np.repeat(before[first], np.diff(np.append(first, len(items))))
    left = users - np.clip(min_users - 1 - before, 0, users)
    weights = np.zeros(count, dtype=np.uint64)
    np.add.at(weights, items, (packed >> _HALF) * left.astype(np.uint64))
    return weights
