"""Many pairs of neighbours in one data set: each has users and items of its own.

One run then gives thousands of trials. They are independent: given the secret bits of bounding,
turns and lists, what happens to an item depends on the sets of the users who are connected with it
and on the noise of these items, which is a keyed function of the item. No user and no item belongs
to two pairs. (A look at all of the data, as `auto` has it, would join them: of `auto`, the branches
that a look may choose are run here, and `looking.py` audits the look.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from dp_sips.auditing.neighbours import Neighbours
from dp_sips.privacy.arrays import Bools, Integers

SHOWN: Final = 6
"""Of each pair, an outcome tells these items apart; of all others it has the number, up to 3."""

_MANY: Final = 3
OUTCOMES: Final = (_MANY + 1) << SHOWN


@dataclass(frozen=True)
class Worlds:
    """The two data sets that pairs of neighbours make together.

    Attributes:
        pairs: The neighbours, one after the other.
        width: How many numbers are set aside for the items, and for the users, of each.
        first: How often the width is left out before the first.
    """

    pairs: Sequence[Neighbours]
    width: int
    first: int = 0

    @classmethod
    def of(cls, pairs: Sequence[Neighbours], first: int = 0) -> "Worlds":
        """Lay out pairs of neighbours."""
        width = max(max(pair.items, len(pair.others) + 1) for pair in _distinct(pairs))
        return cls(pairs, width, first)

    def table(self, *, extra: bool) -> Any:
        """Return users u and items i: with the additional user of each pair, or without.

        Their rows come first, so that an order of appearance would show them.
        """
        blocks = {id(pair): _block(pair, extra=extra) for pair in _distinct(self.pairs)}
        rows = [blocks[id(pair)] for pair in self.pairs]
        sizes = np.array([block.shape[1] for block in rows], dtype=np.int64)
        joined = np.concatenate([np.zeros((2, 0), dtype=np.int64), *rows], axis=1)
        joined += np.repeat((np.arange(len(sizes)) + self.first) * self.width, sizes)
        return pa.table({"u": pa.array(joined[0]), "i": pa.array(joined[1])})

    def outcomes(self, released: Integers) -> Integers:
        """Return the outcome of each pair, as a number: which items were released of it."""
        pair, item = np.divmod(released - self.first * self.width, self.width)
        shown = item < SHOWN
        masks = np.zeros(len(self.pairs), dtype=np.int64)
        np.add.at(masks, pair[shown], np.int64(1) << item[shown])
        rest = np.bincount(pair[~shown], minlength=len(self.pairs))
        return masks + (np.minimum(rest, _MANY) << SHOWN)


def _distinct(pairs: Sequence[Neighbours]) -> Iterable[Neighbours]:
    return {id(pair): pair for pair in pairs}.values()


def _block(pair: Neighbours, *, extra: bool) -> Integers:
    """Return the users and items of a pair's rows."""
    users = [(0, pair.extra)] if extra else []
    users += list(enumerate(pair.others, start=1))
    rows = [(user, item) for user, items in users for item in items]
    return np.array(rows, dtype=np.int64).reshape(-1, 2).T


def only_with(pair: Neighbours) -> Bools:
    """Return which outcomes show an item that nobody has without the additional user."""
    outcomes = np.arange(OUTCOMES)
    found = np.zeros(OUTCOMES, dtype=np.bool_)
    for item in range(min(SHOWN, pair.items)):
        if item in pair.novel:
            found |= (outcomes >> item & 1).astype(np.bool_)
    beyond = set(range(SHOWN, pair.items))
    if beyond and beyond <= pair.novel:
        found |= outcomes >> SHOWN > 0
    return found
