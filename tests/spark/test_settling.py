"""Lists on the driver: whose they are, and how long they may be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips import UsageError, select_partitions
from dp_sips.engines.spark import SparkEngine
from dp_sips.engines.spark.settling import unmix, user_blocks
from dp_sips.engines.spark.wire import WorkerKey
from dp_sips.privacy import bounding
from dp_sips.privacy.noise import Key

words = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20).map(
    lambda numbers: np.array(numbers, dtype=np.uint64)
)


@given(words)
def test_unmix(numbers: Any) -> None:
    assert (unmix(bounding.mix(numbers)) == numbers).all()
    assert (bounding.mix(unmix(numbers)) == numbers).all()


@given(words, st.integers(0, 2**64 - 1), st.integers(0, 99))
def test_user_blocks(numbers: Any, tag: int, seed: int) -> None:
    key = WorkerKey.of(Key.for_tests(seed))
    users = np.stack((numbers, np.full_like(numbers, tag)), axis=1)
    found = user_blocks(key, bounding.user_words(key, users), users[:, 1])
    assert (found == users).all()


def select(spark: Any, engine: SparkEngine) -> Any:
    rows = [(user, item) for user in range(60) for item in range(user % 3 + 1)]
    return select_partitions(
        spark.createDataFrame(rows, "user int, item int"),
        user="user",
        item="item",
        mechanism="matching",
        engine=engine,
        epsilon=3.0,
        delta=0.01,
    ).items


def test_lists_that_the_driver_cannot_hold_are_refused(spark: Any) -> None:
    with pytest.raises(UsageError, match=r"collect_bytes=40: give SparkEngine\(collect_bytes"):
        select(spark, SparkEngine(collect_bytes=40))


def test_lists_that_it_can_hold_are_not(spark: Any) -> None:
    assert select(spark, SparkEngine(collect_bytes=4000)).count() > 0


def test_limit() -> None:
    with pytest.raises(UsageError, match="collect_bytes must be a whole number"):
        SparkEngine(collect_bytes=-1)
