"""The workers' passes without Spark: order, runs on disk, users that span chunks, found items."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.spark import chunks, loading
from dp_sips.engines.spark.pairs import make_pairs, sort_distinct
from dp_sips.engines.spark.sums import add_up
from dp_sips.engines.spark.weighing import RetainItems, WeighChunks
from dp_sips.engines.spark.wire import WorkerKey, bucket_labels, payloads_of
from dp_sips.privacy.noise import Key
from dp_sips.privacy.weights import UNIT_BITS, weight

KEY = WorkerKey.of(Key.for_tests(1))


def blocks(values: Any) -> Any:
    words = np.zeros((len(values), 2), dtype=np.uint64)
    words[:, 0] = values
    return words


def rows(pairs: Any) -> list[tuple[int, ...]]:
    return [tuple(map(int, column)) for column in pairs.T]


some_rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=80)


def pairs_of(held: list[tuple[int, int]]) -> Any:
    users, items = zip(*held, strict=True)
    return make_pairs(blocks(users), blocks(items), KEY)


@given(held=some_rows)
def test_pairs_in_order(held: list[tuple[int, int]]) -> None:
    found = rows(sort_distinct(pairs_of(held)))
    assert len(found) == len(set(held))
    assert all(one < other for one, other in pairwise(found))


def test_words_that_agree_in_their_first_half() -> None:
    random = np.random.default_rng(1)
    pairs = random.integers(0, 3, (5, 500)).astype(np.uint64)
    assert rows(sort_distinct(pairs)) == sorted(set(rows(pairs)))


@given(held=some_rows, size=st.integers(1, 7), cuts=st.lists(st.integers(0, 80), max_size=5))
def test_runs_on_disk(held: list[tuple[int, int]], size: int, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "RUN_SIZE", size)
        pairs = pairs_of(held)
        edges = sorted({0, pairs.shape[1], *(min(cut, pairs.shape[1]) for cut in cuts)})
        runs = [sort_distinct(pairs[:, a:b]) for a, b in pairwise(edges)]
        merged = [row for piece in loading.merge_runs(runs) for row in rows(piece)]
    assert merged == rows(sort_distinct(pairs))


@settings(deadline=None)
@given(
    held=some_rows, size=st.integers(1, 12), most=st.integers(1, 6), gone=st.sets(st.integers(0, 9))
)
def test_users_that_span_chunks(
    held: list[tuple[int, int]], size: int, most: int, gone: set[int]
) -> None:
    pairs = sort_distinct(pairs_of(held))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_SIZE", size)
        batches = [chunk.to_batch() for chunk in chunks.split_into_chunks([pairs])]
    removed, labels = BlockSet.of(blocks(sorted(gone))), bucket_labels(3)
    assert _found(WeighChunks(removed, most, UNIT_BITS, labels), batches) == _by_hand(
        pairs, most, gone
    )
    left = BlockSet.of(blocks([item for item in range(10) if item not in gone]))
    nothing = BlockSet.of(blocks([]))
    thinner = list(RetainItems(left)(batches))
    assert _found(WeighChunks(nothing, most, UNIT_BITS, labels), thinner) == _by_hand(
        pairs, most, gone
    )


def _found(weigh: WeighChunks, batches: Any) -> dict[int, int]:
    sums = add_up(payloads_of(weigh(batches)))
    return dict(zip(sums.blocks[:, 0].tolist(), sums.weights.tolist(), strict=True))


def _by_hand(pairs: Any, most: int, gone: set[int]) -> dict[int, int]:
    sets: dict[int, list[int]] = {}
    for user, _, _, low, _ in rows(pairs):
        sets.setdefault(user, [])
        if low not in gone:
            sets[user].append(low)
    sums: dict[int, int] = {}
    for items in sets.values():
        for item in items[:most]:
            sums[item] = sums.get(item, 0) + weight(min(len(items), most))
    return sums


def test_blocks_whose_words_agree(monkeypatch: Any) -> None:
    monkeypatch.setattr("dp_sips.engines.block_sets.hash_blocks", lambda b: b[:, 0] % np.uint64(3))
    few = BlockSet.of(blocks([1, 4, 7, 9]))
    places = few.find(blocks(range(11)))
    assert np.flatnonzero(places >= 0).tolist() == [1, 4, 7, 9]
    assert few.blocks[places[[1, 4, 7, 9]], 0].tolist() == [1, 4, 7, 9]
    assert (BlockSet.of(blocks([])).find(blocks([1])) == -1).all()


@pytest.mark.parametrize("partitions", [1, 3, 200])
def test_one_label_for_each_partition(partitions: int) -> None:
    """Where labels go is Spark's to say: `test_plans` asks it."""
    labels = bucket_labels(partitions).tolist()
    assert len(set(labels)) == partitions
    assert min(labels) >= 0
