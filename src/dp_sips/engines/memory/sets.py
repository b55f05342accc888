"""The users' sets as two flat arrays, and how they are cut into shares."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.engines.memory.numbering import Numbers

_PIECE: Final = 1 << 16
"""Users whose sizes are made at a time: few enough for the cache."""


@dataclass(frozen=True)
class UserSets:
    """Users 0, 1, 2 …; the items of user u are items[ends[u − 1] : ends[u]].

    `counts` says how often each pair occurred; it is empty where nobody asked.
    """

    items: Numbers
    ends: NDArray[np.uint64]
    counts: Numbers


def cuts(ends: NDArray[np.uint64], pieces: int) -> list[tuple[int, int]]:
    """Cut the users into about as many pieces as asked, with about as many pairs each."""
    marks = np.linspace(0, float(ends[-1]), pieces + 1)[1:-1]
    inner = np.searchsorted(ends, marks.astype(np.uint64))
    edges = np.unique(np.concatenate(([0], inner, [len(ends)])))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def begin_of(user: int, ends: NDArray[np.uint64]) -> int:
    """Return where the pairs of a user begin, and so those of the user before end."""
    return int(ends[user - 1]) if user else 0


def begins_of(shares: list[tuple[int, int]], ends: NDArray[np.uint64]) -> list[int]:
    """Return where the pairs of each share of the users begin."""
    return [begin_of(first, ends) for first, _ in shares]


def edges_of(sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each of some parts begins, and where the last one ends."""
    edges = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, dtype=np.int64, out=edges[1:])
    return edges


def sizes_by_pieces(ends: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
    """Yield how many pairs each user has, a few users at a time."""
    for first in range(0, len(ends), _PIECE):
        piece = ends[first : first + _PIECE]
        yield np.diff(piece, prepend=np.uint64(begin_of(first, ends))).view(np.int64)


def sizes_of(users: NDArray[np.int64], ends: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return how many pairs some of the users have."""
    begins = np.where(users > 0, ends[users - 1], np.uint64(0))
    return np.asarray((ends[users] - begins).astype(np.int64))


def gathered(column: Numbers, ends: NDArray[np.uint64], users: NDArray[np.int64]) -> Numbers:
    """Return what a column of pairs has of some users, one user after the other."""
    if not len(column):
        return column
    sizes, stops = sizes_of(users, ends), ends[users].astype(np.int64)
    places = np.repeat(stops - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
    found: Numbers = column[places]
    return found


def close_gaps(
    columns: Sequence[Numbers],
    ends: NDArray[np.uint64],
    shares: list[tuple[int, int]],
    begins: list[int],
    stops: list[int],
) -> int:
    """Move together what is left of each share, from its begin to its stop; return the total."""
    at = 0
    for (first, last), begin, stop in zip(shares, begins, stops, strict=True):
        if at < begin:
            for column in columns:
                column[at : at + stop - begin] = column[begin:stop]
            ends[first:last] -= np.uint64(begin - at)
        at += stop - begin
    return at
