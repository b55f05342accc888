"""Which of a user's items count, where it has more than max_items, and whose turn it is.

A user's items have an order, by `rank`: a number made of the user, the item and secret bits that
belong to bounding alone. The first max_items of those still in the user's set count. A round that
removed items lets the next in order move up: the paper's re-truncation.

Guarantee: the choice depends on the user's own items, on earlier releases and on bits that are
independent of the noise. Given those bits, it is a fixed rule that is applied to each user on its
own, so it changes no other user's contribution. The rule is not asked to be cryptographic: any
fixed rule is private. It is asked to be fair, so that the sample is close to uniform.

The turns of users, where a mechanism takes one user after the other, are a rank of each user alone,
from bits of their own: an additional user leaves the order of the others as it was.

Where users have lists, `precedence` orders their items: by what an item is and by public counts, in
the same way for everyone, and independently of who is in the data. A few users are `loyal`: the
first item in their bounding order comes first. Who is, depends on a user's own word and items.

Public items (`Bounds.without`) leave each user's set first of all. What is left of a set is a
function of that user's own rows and of public things, so data sets that differ by one user still do
afterwards, and every argument applies to what is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Blocks, Bools, Words
from dp_sips.privacy.blocks import lengths
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.validation import check_whole


@dataclass(frozen=True)
class Bounds:
    """How a user's set is bounded and ordered.

    Attributes:
        max_items: Δ0, how many items of a user count; 0 where no round runs.
        once: Whether sets are cut to max_items once, for all rounds. Otherwise, a round that
            removes items lets others move up.
        repeats: Whether it matters how often a user has an item.
        public_counts: Public frequencies of items (of tuples, for several columns) that order a
            user's items instead.
        whole: Whether users are counted after the rounds, by their whole sets.
        without: The blocks of public items, distinct, which leave all sets before they are bounded
            or cut (but not what is counted after the rounds).
    """

    max_items: int
    once: bool = False
    repeats: bool = False
    public_counts: Mapping[Any, int] | None = field(default=None, repr=False, hash=False)
    whole: bool = False
    without: Blocks | None = field(default=None, repr=False, hash=False, compare=False)


def check_public_counts(name: str, counts: object) -> None:
    """Reject anything but a mapping from items to whole numbers that fit into 32 bits."""
    if not isinstance(counts, Mapping):
        raise UsageError(f"{name} must be a mapping of items to counts, got {counts!r}")
    for item, count in counts.items():
        check_whole(f"{name}[{item!r}]", count, least=0, most=2**32 - 1)


class BoundingKey(Protocol):
    """The part of a key that bounding needs: its own words, and nothing about the noise."""

    def word(self, purpose: Purpose) -> int:
        """Return 64 bits that belong to a purpose of bounding."""


def mix(words: Words) -> Words:
    """Scramble 64 bits (the finaliser of splitmix64, a bijection)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def user_words(key: BoundingKey, blocks: Blocks) -> Words:
    """Return a scrambled word for each user."""
    return _words(key.word(Purpose.BOUNDING_USERS), blocks)


def item_words(key: BoundingKey, blocks: Blocks) -> Words:
    """Return a scrambled word for each item."""
    return _words(key.word(Purpose.BOUNDING_ITEMS), blocks)


def rank(users: Words, items: Words) -> Words:
    """Return the rank of each pair of a user's word and an item's word: low ranks count first."""
    return mix(users ^ items)


def loyal(users: Words, sizes: NDArray[Any]) -> Bools:
    """Return whether users are loyal to an item: of those with k > 1 items, about one in 2k."""
    every = np.arange(int(sizes.max(initial=0)) + 1, dtype=np.uint64)
    few = np.uint64(1 << 63) // np.maximum(every, np.uint64(1))
    return np.asarray((sizes > 1) & (users < few[sizes]))


def turns(key: Key, users: Any) -> NDArray[np.uint32]:
    """Return users' numbers in a random order: by 128 scrambled bits of their blocks, `users`."""
    scrambled, leading = key.scrambler(Purpose.TURNS), np.empty(len(users), dtype="<u4")
    for some in (slice(n, n + 65_536) for n in range(0, len(users), 65_536)):  # fits the cache
        leading[some] = scrambled(users[some]).view("<u4")[:, 1]
    order = np.lexsort(leading.view("<u2").reshape(-1, 2).T)  # low bits, then high: in linear time
    alike = np.flatnonzero(np.diff(leading.take(order)) == 0)
    tied = np.union1d(alike, alike + 1)
    words = scrambled(users[order[tied]])  # of a few users
    order[tied] = order[tied][np.lexsort((words[:, 1], words[:, 0]))]
    return order.astype(np.uint32)


def precedence(blocks: Blocks, words: Words, counts: NDArray[np.uint32] | None) -> Words:
    """Return a word for each item: on all lists, least words come first, the same words by block.

    First come large public counts, if there are any, then short items, then those with the least
    of `item_words`. The last bit is zero, for engines to use.
    """
    rare = np.uint64(0) if counts is None else ~counts.astype(np.uint32)
    found = np.asarray(rare, dtype=np.uint64) << np.uint64(32)
    found = found | lengths(blocks).astype(np.uint64) << np.uint64(27)
    return found | words >> np.uint64(38) << np.uint64(1)


def in_precedence(words: Words, blocks: Blocks) -> NDArray[np.intp]:
    """Return the order of items with these words of `precedence`."""
    return np.lexsort((blocks[:, 1], blocks[:, 0], words))


def _words(seed: int, blocks: Blocks) -> Words:
    high = blocks[:, 1]
    if len(high) and (high == high[0]).all():  # as all integers have
        high = high[:1]
    return mix(blocks[:, 0] ^ mix(high ^ np.uint64(seed)))
