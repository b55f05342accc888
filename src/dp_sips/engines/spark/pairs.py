"""Pairs of users and items as columns of words, in one total order: by user, then by rank.

A matrix of five rows: USER (the user's scrambled word) and TAG (the second word of the user's
block), which together identify the user exactly, as the word is a bijection of the block's first
word; RANK; and the item's block, LOW and HIGH. In sorted pairs, a user's items are adjacent and in
bounding order, and repeats are adjacent.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.spark.wire import WorkerKey, pack, unpack
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks, Bools, Integers, Words

Pairs = NDArray[np.uint64]
"""Shape (5, n)."""

USER, TAG, RANK, LOW, HIGH = range(5)
_HALF: Final = np.uint64(32)


def make_pairs(users: Blocks, items: Blocks, key: WorkerKey) -> Pairs:
    """Return the pairs of two columns of blocks, row by row."""
    return rank_pairs(bounding.user_words(key, users), users[:, 1], items, key)


def rank_pairs(users: Words, tags: Words, items: Blocks, key: WorkerKey) -> Pairs:
    """Return pairs with their ranks, from users' words and tags and items' blocks."""
    ranks = bounding.rank(users, bounding.item_words(key, items))
    return np.stack((users, tags, ranks, *items.T))


def pack_pairs(pairs: Pairs) -> bytes:
    """Return sorted pairs as a payload: each user once; ranks can be recomputed."""
    starts = user_starts(pairs)
    counts = np.diff(starts, append=pairs.shape[1]).astype(np.uint64)
    return pack([*pairs[[USER, TAG]][:, starts], counts, *pairs[[LOW, HIGH]]])


def unpack_pairs(payloads: Sequence[Any], key: WorkerKey) -> Pairs:
    """Undo `pack_pairs` for several payloads at once."""
    columns = zip(*map(unpack, payloads), strict=True)
    users, tags, counts, low, high = map(np.concatenate, columns)
    sizes = counts.astype(np.int64)
    items = np.stack((low, high), axis=1)
    return rank_pairs(np.repeat(users, sizes), np.repeat(tags, sizes), items, key)


def count_pairs(payload: Any) -> int:
    """Return the number of pairs in a payload."""
    return len(unpack(payload)[-1])


def user_starts(pairs: Pairs) -> Integers:
    """Return where the items of each user start, in sorted pairs."""
    change = pairs[USER, 1:] != pairs[USER, :-1]
    change |= pairs[TAG, 1:] != pairs[TAG, :-1]
    return np.concatenate(([0], np.flatnonzero(change) + 1))


def places_within_users(pairs: Pairs) -> Integers:
    """Return the place of each pair among its user's, from 0, in sorted pairs."""
    starts = user_starts(pairs)
    sizes = np.diff(starts, append=pairs.shape[1])
    return np.arange(pairs.shape[1]) - np.repeat(starts, sizes)


def count_before(pairs: Pairs, mark: Pairs) -> int:
    """Return how many of the sorted pairs come before `mark`, one pair."""
    begin, end = 0, pairs.shape[1]
    for row in range(len(pairs)):
        column = pairs[row, begin:end]
        left, right = (int(np.searchsorted(column, mark[row], side)) for side in ("left", "right"))
        begin, end = begin + left, begin + right
    return begin


def sort_distinct(pairs: Pairs) -> Pairs:
    """Return the pairs sorted, without repeats.

    A sort by one word is nearly always enough; pairs that it leaves out of order are sorted again.
    """
    key = (pairs[USER] >> _HALF << _HALF) | (pairs[RANK] >> _HALF)
    order = np.argsort(key)
    key = key[order]
    ties = np.flatnonzero(key[1:] == key[:-1])
    one, next_one = (pairs.take(order[rows], axis=1) for rows in (ties, ties + 1))
    repeats = (one == next_one).all(axis=0)
    nearly = pairs.take(np.delete(order, ties[repeats] + 1), axis=1)
    unsure = np.flatnonzero(~_ascending(nearly))
    return _sort_again(nearly, unsure) if len(unsure) else nearly


def _ascending(pairs: Pairs) -> Bools:
    """Return which pairs surely come before the next: another user's, or one of greater rank."""
    here, there = pairs[:, :-1], pairs[:, 1:]
    ascending: Bools = here[RANK] < there[RANK]
    ascending &= (here[USER] == there[USER]) & (here[TAG] == there[TAG])
    ascending |= here[USER] < there[USER]
    return ascending


def _sort_again(pairs: Pairs, unsure: Integers) -> Pairs:
    """Sort all pairs that share the first half of a user's word with `unsure` ones; drop repeats.

    Changes `pairs` in place.
    """
    halves = pairs[USER] >> _HALF
    rows = np.flatnonzero(np.isin(halves, halves[unsure]))
    sorted_pairs = pairs[:, rows[np.lexsort(pairs[::-1, rows])]]
    pairs[:, rows] = sorted_pairs
    repeats = rows[1:][(sorted_pairs[:, 1:] == sorted_pairs[:, :-1]).all(axis=0)]
    return np.delete(pairs, repeats, axis=1) if len(repeats) else pairs
