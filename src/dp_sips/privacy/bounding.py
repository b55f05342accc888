"""Which of a user's items count, where it has more than max_items, and whose turn it is.

A user's items have an order, by `rank`: a number made of the user, the item and secret bits that
belong to bounding alone. The first max_items of those still in the user's set count. A round that
removed items lets the next in order move up: the paper's re-truncation.

Guarantee: the choice depends on the user's own items, on earlier releases and on bits that are
independent of the noise. Given those bits, it is a fixed rule that is applied to each user on its
own, so it changes no other user's contribution. The rule is not asked to be cryptographic: any
fixed rule is private. It is asked to be fair, so that the sample is close to uniform.

The turns of users, where a mechanism takes one user after the other, are a rank of each user alone,
from bits of their own: one user more leaves the order of the others as it was.
"""

import numpy as np
from numpy.typing import NDArray

from dp_sips.privacy.noise import Blocks, Key

Words = NDArray[np.uint64]


def mix(words: Words) -> Words:
    """Scramble 64 bits (the finaliser of splitmix64, a bijection)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def user_words(key: Key, blocks: Blocks) -> Words:
    """Return a scrambled word for each user."""
    return _words(key.word("bounding users"), blocks)


def item_words(key: Key, blocks: Blocks) -> Words:
    """Return a scrambled word for each item."""
    return _words(key.word("bounding items"), blocks)


def rank(users: Words, items: Words) -> Words:
    """Return the rank of each pair of a user's word and an item's word: low ranks count first."""
    return mix(users ^ items)


def turns(key: Key, users: Blocks) -> NDArray[np.uint32]:
    """Return the users' numbers in a random order: by 128 scrambled bits of each user's block."""
    scrambled = key.scrambler("turns of users")(users)
    return np.lexsort((scrambled[:, 1], scrambled[:, 0])).astype(np.uint32)


def _words(seed: int, blocks: Blocks) -> Words:
    high = blocks[:, 1]
    if len(high) and (high == high[0]).all():  # as all integers have
        high = high[:1]
    return mix(blocks[:, 0] ^ mix(high ^ np.uint64(seed)))
