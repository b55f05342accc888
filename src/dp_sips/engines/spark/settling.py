"""Matching on a cluster: workers make the users' lists, and the driver settles them.

Who is seated does not depend on who asks when (mechanisms/matching.py), so users may settle in any
place. First the cluster counts holders; items with more of them than seats are contested, and
workers are told which. Only lists of contested items travel to the driver, four bytes an item:
users whose first item is not contested are counted where they are.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.block_sets import NO_BLOCKS, BlockSet
from dp_sips.engines.encoding import PublicCounts
from dp_sips.engines.memory import settling
from dp_sips.engines.memory.matching import (
    CONTESTED,
    Items,
    Lists,
    Seating,
    Sets,
    arranged,
    seated,
)
from dp_sips.engines.spark.chunks import Chunk, read_chunks
from dp_sips.engines.spark.sums import Sums
from dp_sips.engines.spark.weighing import Signals
from dp_sips.engines.spark.wire import Labels, WorkerKey, pack, payloads_of, unpack
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks, Integers, Weights, Words
from dp_sips.privacy.contributions import Evidence
from dp_sips.privacy.noise import Purpose
from dp_sips.privacy.weights import UNIT

LIST_SCHEMA: Final = "kind int, bucket int, payload binary"
VOTES, LISTS = range(2)
"""Kinds of payloads: sums of votes by item, and users' lists."""

Turns = Callable[[Blocks], NDArray[np.uint32]]
"""The order of users' turns, given their blocks."""

_NO_NUMBERS: Final = np.empty(0, dtype=np.uint32)
_NO_LAST: Final = np.array([[0, 0xFE << 56]], dtype=np.uint64)
"""Stands for the last item of a list that has none: no value has this tag (blocks.py)."""


def one_each(sizes: Integers, signals: Integers) -> Weights:
    """Give 1 to each item, so that the sum is the number of holders."""
    del sizes
    return np.ones(len(signals), dtype=np.uint64)


@dataclass(frozen=True)
class Contested:
    """Signals which items have more holders than seats."""

    seats: int

    def __call__(self, holders: Weights, evidence: Evidence) -> Integers:
        """Return 1 for those items."""
        del evidence
        return (holders > self.seats).astype(np.int64)


@dataclass(frozen=True, repr=False)
class Order:
    """The order of items on all lists."""

    key: WorkerKey
    public: PublicCounts | None

    def words(self, blocks: Blocks) -> Words:
        """Return the items' words of precedence."""
        counts = None if self.public is None else self.public(blocks)
        return bounding.precedence(blocks, bounding.item_words(self.key, blocks), counts)

    def numbered(self, signals: Signals) -> tuple[Blocks, Signals]:
        """Return the items in order, and each one's place, counted from 1."""
        blocks = signals.items.blocks
        order = bounding.in_precedence(self.words(blocks), blocks)
        return blocks[order], Signals(signals.items, np.argsort(order) + 1)


@dataclass(frozen=True, repr=False)
class ListUp:
    """The pass that makes lists, of users whose sets are cut, so that none goes on in a next chunk.

    Workers are told the places of contested items among each other.
    """

    order: Order
    removed: BlockSet
    contested: Signals
    seating: Seating
    labels: Labels

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream votes and lists as rows of `LIST_SCHEMA`."""
        for chunk in read_chunks(batches):
            lists = self._lists(chunk)
            buckets, votes = _votes_at_once(lists, chunk).payloads(self.labels)
            rows = [*zip(buckets.tolist(), votes, strict=True)]
            rows += [(0, _packed(lists, chunk))]
            kinds = [VOTES] * len(votes) + [LISTS]
            columns = [pa.array(kinds, pa.int32()), *_columns(rows)]
            yield pa.RecordBatch.from_arrays(columns, names=["kind", "bucket", "payload"])

    def _lists(self, chunk: Chunk) -> Lists:
        assert not chunk.continues, "a plan with lists cuts users' sets"
        blocks = chunk.blocks
        words = self.order.words(blocks)
        words[self.removed.find(blocks) >= 0] = settling.GONE
        places = self.contested.look_up(blocks)
        words[places > 0] |= CONTESTED
        items = Items(words, blocks.__getitem__, self.order.key)
        sets = Sets(chunk.items, chunk.ends, chunk.users[:, 0])
        numbers = (places - 1).astype(np.uint32)
        every = (0, len(chunk.ends))
        return arranged(sets, items, numbers, self.seating, lambda work: work(every))


def _columns(rows: list[tuple[int, bytes]]) -> tuple[pa.Array, pa.Array]:
    buckets, payloads = zip(*rows, strict=True)
    return pa.array(buckets, pa.int32()), pa.array(payloads, pa.binary())


def _votes_at_once(lists: Lists, chunk: Chunk) -> Sums:
    """Return the votes of users who are seated at the first item that they ask."""
    users = np.bincount(lists.at_once(), minlength=len(chunk.blocks)).astype(np.uint64)
    held = np.flatnonzero(users)
    return Sums.of_weights(chunk.blocks[held], users[held] * np.uint64(UNIT))


def _packed(lists: Lists, chunk: Chunk) -> bytes:
    """Return the lists of the others."""
    asking = np.flatnonzero(lists.asking())
    lengths, lasts = lists.lengths[asking], lists.lasts[asking]
    ends = np.cumsum(lengths, dtype=np.int64)
    places = np.repeat(lists.begins[asking].astype(np.int64) - (ends - lengths), lengths)
    listed = lists.listed[places + np.arange(len(places))]
    blocks = np.concatenate((chunk.blocks, _NO_LAST))
    last_blocks = blocks[np.where(lasts == settling.NOWHERE, len(chunk.blocks), lasts)]
    columns_of_users = (lists.sizes[asking], lengths, lists.loyal_to[asking])
    numbers = (column.astype(np.uint64) for column in columns_of_users)
    even = np.append(listed, np.zeros(len(listed) % 2, dtype=np.uint32))
    columns = [*chunk.users[asking].T, *numbers, *last_blocks.T, even.view(np.uint64)]
    return pack([np.ascontiguousarray(column) for column in columns])


@dataclass(frozen=True)
class Collected:
    """All lists, on the driver.

    Attributes:
        users: The users' blocks.
        lists: Their lists; the last item of a user has the user's own number.
        lasts: The blocks of the users' last items.
    """

    users: Blocks
    lists: Lists
    lasts: Blocks

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], key: WorkerKey) -> "Collected":
        """Read payloads of lists."""
        parts = [unpack(payload) for payload in payloads_of(batches)]
        words, tags, sizes, lengths, loyal, low, high = (_joined(parts, n) for n in range(7))
        listed = [_halves(part[7])[: int(part[3].sum())] for part in parts]
        lists = Lists(
            listed=np.concatenate([_NO_NUMBERS, *listed]),
            begins=np.cumsum(lengths) - lengths,
            lengths=lengths.astype(np.uint32),
            sizes=sizes.astype(np.uint32),
            lasts=np.where(high == _NO_LAST[0, 1], settling.NOWHERE, np.arange(len(high))).astype(
                "u4"
            ),
            tied=np.zeros(len(sizes), dtype=np.uint8),
            loyal_to=loyal.astype(np.uint32),
        )
        lasts = np.stack((low, high), axis=1)
        return cls(user_blocks(key, words, tags), lists, lasts)

    def settled(self, contested: Blocks, turns: Turns, seating: Seating) -> Sums:
        """Return where the users are seated; an item may occur more than once."""

        def turns_of(users: NDArray[Any]) -> NDArray[np.uint32]:
            return turns(self.users[users])

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            weights, at_last = seated(self.lists, turns_of, seating, len(contested), pool)
        blocks = np.concatenate((contested, self.lasts[at_last]))
        votes = np.append(weights, np.full(len(at_last), UNIT, dtype=np.uint64))
        held = np.flatnonzero(votes)
        return Sums.of_weights(blocks[held], votes[held])


def _halves(words: Words) -> NDArray[np.uint32]:
    return np.ascontiguousarray(words).view(np.uint32)


def _joined(parts: list[list[Words]], column: int) -> Words:
    return np.concatenate([NO_BLOCKS[:, 0], *(part[column] for part in parts)])


def user_blocks(key: WorkerKey, words: Words, tags: Words) -> Blocks:
    """Return the blocks of users, whose second halves are the tags: undo `bounding.user_words`."""
    seed = np.uint64(key.word(Purpose.BOUNDING_USERS))
    return np.stack((unmix(words) ^ bounding.mix(tags ^ seed), tags), axis=1)


def unmix(words: Words) -> Words:
    """Undo `bounding.mix`."""
    words = _unshifted(words, 31) * np.uint64(pow(0x94D049BB133111EB, -1, 1 << 64))
    words = _unshifted(words, 27) * np.uint64(pow(0xBF58476D1CE4E5B9, -1, 1 << 64))
    return _unshifted(words, 30)


def _unshifted(words: Words, bits: int) -> Words:
    """Undo x ^ (x >> bits), for more than 21 bits."""
    words = words ^ (words >> np.uint64(bits))
    return words ^ (words >> np.uint64(2 * bits))
