"""Counts by key, over sets as arrays, a few pairs at a time."""

import numpy as np
import pytest

from dp_sips.engines.memory import counting
from dp_sips.engines.memory.counting import KeyCounter, places_of
from dp_sips.engines.memory.sets import UserSets
from dp_sips.privacy.blocks import integer_blocks
from dp_sips.privacy.bounding import mix, rank

USERS, ITEMS = 50, 30


def sets() -> tuple[list[list[int]], UserSets]:
    random = np.random.default_rng(4)
    lists = [random.permutation(ITEMS)[: random.integers(0, 20)].tolist() for _ in range(USERS)]
    items = np.array([item for held in lists for item in held], dtype=np.uint32)
    ends = np.cumsum([len(held) for held in lists]).astype(np.uint64)
    return lists, UserSets(items, ends, items[:0])


def counter(whole: UserSets, keys: list[int], max_items: int) -> KeyCounter:
    places = np.full(ITEMS, -1, dtype=np.int32)
    places[keys] = np.arange(len(keys))
    user_words, item_words = (mix(np.arange(1, n, dtype=np.uint64)) for n in (USERS + 1, ITEMS + 1))
    return KeyCounter(whole, places, user_words, item_words[keys], max_items)


@pytest.mark.parametrize("pairs", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize("max_items", [1, 3, 100])
@pytest.mark.parametrize("keys", [[], [5], [7, 2, 29, 11, 3, 0]])
def test_the_first_keys_of_each_user_count(
    monkeypatch: pytest.MonkeyPatch, pairs: int, max_items: int, keys: list[int]
) -> None:
    monkeypatch.setattr(counting, "_PAIRS", pairs)
    lists, whole = sets()
    counted = counter(whole, keys, max_items)
    sums, none = np.zeros(len(keys), dtype=np.uint64), 0
    for piece in counted.pieces():
        none += counted.add(piece, sums)

    expected, without = dict.fromkeys(keys, 0), 0
    for user, held in enumerate(lists):
        mine = np.array([keys.index(item) for item in held if item in keys], dtype=np.intp)
        ranks = rank(counted.user_words[[user] * len(mine)], counted.key_words[mine])
        for place in mine[np.argsort(ranks)][:max_items]:
            expected[keys[place]] += 1
        without += bool(held) and not len(mine)
    assert sums.tolist() == list(expected.values())
    assert none == without


def test_places_are_those_of_the_keys() -> None:
    keys = integer_blocks(np.array([9, 4, 7], dtype=np.uint64))
    items = integer_blocks(np.array([1, 4, 9, 4, 7, 8], dtype=np.uint64))
    assert places_of(keys)(items).tolist() == [-1, 1, 0, 1, 2, -1]
    assert places_of(keys[:0])(items).tolist() == [-1] * 6
