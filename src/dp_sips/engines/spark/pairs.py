"""Pairs of users and items as columns of words, in one total order: by user, then by rank.

A matrix of five rows: USER (the user's scrambled word) and TAG (the second word of its block),
which together tell users apart exactly, as the word is a bijection of the block's first word; RANK;
and the item's block, LOW and HIGH. Sorted, a user's items stand together in bounding order, and
repeats stand side by side.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.spark.packing import pack, unpack
from dp_sips.engines.spark.worker_key import WorkerKey
from dp_sips.privacy import bounding
from dp_sips.privacy.noise import Blocks

Pairs = NDArray[np.uint64]
"""Shape (5, n)."""

USER, TAG, RANK, LOW, HIGH = range(5)
_HALF: Final = np.uint64(32)


def make_pairs(users: Blocks, items: Blocks, key: WorkerKey) -> Pairs:
    """Return the pairs of the rows of two columns of blocks."""
    words = bounding.user_words(key.bounding, users)
    return ranked(np.stack((words, users[:, 1], items[:, 0], items[:, 1])), key)


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
    return ranked(np.stack((np.repeat(users, sizes), np.repeat(tags, sizes), low, high)), key)


def length_of(parcel: Any) -> int:
    """Return how many pairs a parcel has."""
    return len(unpack(parcel)[-1])


def first_of_each(pairs: Pairs, most: int) -> Pairs:
    """Return the first pairs of each user, of ordered ones."""
    starts = user_starts(pairs)
    sizes = np.diff(starts, append=pairs.shape[1])
    return pairs[:, np.arange(pairs.shape[1]) - np.repeat(starts, sizes) < most]


def ranked(sent: NDArray[np.uint64], key: WorkerKey) -> Pairs:
    """Put the ranks to users, tags and blocks."""
    user, tag, low, high = sent
    words = bounding.item_words(key.bounding, np.stack((low, high), axis=1))
    return np.stack((user, tag, bounding.rank(user, words), low, high))


def distinct(pairs: Pairs) -> Pairs:
    """Return the pairs in order, without repeats."""
    ordered = _in_order(pairs)
    new = np.ones(ordered.shape[1], dtype=np.bool_)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return ordered if new.all() else ordered[:, new]


def user_starts(pairs: Pairs) -> NDArray[np.int64]:
    """Return where the items of each user start, in ordered pairs."""
    change = (pairs[[USER, TAG], 1:] != pairs[[USER, TAG], :-1]).any(axis=0)
    return np.concatenate(([0], np.flatnonzero(change) + 1))


def before(pairs: Pairs, mark: Pairs) -> int:
    """Return how many of the ordered pairs come before `mark`, one pair."""
    begin, end = 0, pairs.shape[1]
    for row in range(len(pairs)):
        column = pairs[row, begin:end]
        left, right = (int(np.searchsorted(column, mark[row], side)) for side in ("left", "right"))
        begin, end = begin + left, begin + right
    return begin


def _in_order(pairs: Pairs) -> Pairs:
    """Sort by one word that is nearly always enough, and put right what it leaves wrong."""
    key = (pairs[USER] >> _HALF << _HALF) | (pairs[RANK] >> _HALF)
    ordered = pairs[:, np.argsort(key)]
    wrong = _descents(ordered)
    if len(wrong):
        halves = ordered[USER] >> _HALF
        rows = np.flatnonzero(np.isin(halves, halves[wrong]))
        ordered[:, rows] = ordered[:, rows[np.lexsort(ordered[::-1, rows])]]
    return ordered


def _descents(pairs: Pairs) -> NDArray[np.int64]:
    """Return the rows that come after the row that follows them."""
    later = np.zeros(max(pairs.shape[1] - 1, 0), dtype=np.bool_)
    for row in reversed(pairs):
        one, other = row[:-1], row[1:]
        later = (one > other) | ((one == other) & later)
    return np.flatnonzero(later)
