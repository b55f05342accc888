"""Pairs of users and items as columns of words, in one total order: by user, then by rank.

A matrix of five rows: USER (the user's scrambled word) and TAG (the second word of its block),
which together tell users apart exactly, as the word is a bijection of the block's first word; RANK;
and the item's block, LOW and HIGH. Sorted, a user's items stand together in bounding order, and
repeats stand side by side.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.spark.packing import Words, pack, unpack
from dp_sips.engines.spark.worker_key import WorkerKey
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks

Pairs = NDArray[np.uint64]
"""Shape (5, n)."""

USER, TAG, RANK, LOW, HIGH = range(5)
_HALF: Final = np.uint64(32)


def make_pairs(users: Blocks, items: Blocks, key: WorkerKey) -> Pairs:
    """Return the pairs of the rows of two columns of blocks."""
    return ranked(bounding.user_words(key, users), users[:, 1], items, key)


def to_bytes(pairs: Pairs) -> bytes:
    """Return ordered pairs as the bytes to send: each user once, and no ranks, which are known."""
    starts = user_starts(pairs)
    counts = np.diff(starts, append=pairs.shape[1]).astype(np.uint64)
    return pack([*pairs[[USER, TAG]][:, starts], counts, *pairs[[LOW, HIGH]]])


def from_bytes(parcels: list[Any], key: WorkerKey) -> Pairs:
    """Undo `to_bytes` for several parcels at once."""
    sent = [unpack(parcel) for parcel in parcels]
    users, tags, counts, low, high = (np.concatenate(column) for column in zip(*sent, strict=True))
    sizes = counts.astype(np.int64)
    items = np.stack((low, high), axis=1)
    return ranked(np.repeat(users, sizes), np.repeat(tags, sizes), items, key)


def length_of(parcel: Any) -> int:
    """Return how many pairs a parcel has."""
    return len(unpack(parcel)[-1])


def first_of_each(pairs: Pairs, most: int) -> Pairs:
    """Return the first pairs of each user, of ordered ones."""
    starts = user_starts(pairs)
    sizes = np.diff(starts, append=pairs.shape[1])
    return pairs[:, np.arange(pairs.shape[1]) - np.repeat(starts, sizes) < most]


def ranked(users: Words, tags: Words, items: Blocks, key: WorkerKey) -> Pairs:
    """Put the ranks to users' words, tags and items."""
    ranks = bounding.rank(users, bounding.item_words(key, items))
    return np.stack((users, tags, ranks, *items.T))


def distinct(pairs: Pairs) -> Pairs:
    """Return the pairs in order, without repeats.

    They are sorted by one word that is nearly always enough; what it leaves wrong is put right.
    """
    key = (pairs[USER] >> _HALF << _HALF) | (pairs[RANK] >> _HALF)
    order = np.argsort(key)
    key = key[order]
    alike = np.flatnonzero(key[1:] == key[:-1])
    one, next_one = (pairs.take(order[places], axis=1) for places in (alike, alike + 1))
    repeats = (one == next_one).all(axis=0)
    ordered = pairs.take(np.delete(order, alike[repeats] + 1), axis=1)
    wrong = np.flatnonzero(~_ascending(ordered))
    return _put_right(ordered, wrong) if len(wrong) else ordered


def user_starts(pairs: Pairs) -> NDArray[np.int64]:
    """Return where the items of each user start, in ordered pairs."""
    change = pairs[USER, 1:] != pairs[USER, :-1]
    change |= pairs[TAG, 1:] != pairs[TAG, :-1]
    return np.concatenate(([0], np.flatnonzero(change) + 1))


def before(pairs: Pairs, mark: Pairs) -> int:
    """Return how many of the ordered pairs come before `mark`, one pair."""
    begin, end = 0, pairs.shape[1]
    for row in range(len(pairs)):
        column = pairs[row, begin:end]
        left, right = (int(np.searchsorted(column, mark[row], side)) for side in ("left", "right"))
        begin, end = begin + left, begin + right
    return begin


def _ascending(pairs: Pairs) -> NDArray[np.bool_]:
    """Return which pairs come before the next for sure: of another user, or of a greater rank."""
    here, there = pairs[:, :-1], pairs[:, 1:]
    ascending: NDArray[np.bool_] = here[RANK] < there[RANK]
    ascending &= (here[USER] == there[USER]) & (here[TAG] == there[TAG])
    ascending |= here[USER] < there[USER]
    return ascending


def _put_right(pairs: Pairs, wrong: NDArray[np.int64]) -> Pairs:
    """Sort all that shares the first half of a user's word with wrong pairs; drop repeats."""
    halves = pairs[USER] >> _HALF
    rows = np.flatnonzero(np.isin(halves, halves[wrong]))
    right = pairs[:, rows[np.lexsort(pairs[::-1, rows])]]
    pairs[:, rows] = right
    repeats = rows[1:][(right[:, 1:] == right[:, :-1]).all(axis=0)]
    return np.delete(pairs, repeats, axis=1) if len(repeats) else pairs
