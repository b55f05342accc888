"""Loading: threads that read ahead, and pairs that end up together."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.threads import none_is_left, ours

from dp_sips import InputError, MemoryEngine, UsageError, select_partitions
from dp_sips.engines.memory import loading
from dp_sips.engines.memory.numbering import Workers, new_column, new_user_column
from dp_sips.engines.memory.sets import cuts
from dp_sips.privacy.noise import Key, Purpose


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    with none_is_left():
        yield


class TestInterrupted:
    @pytest.mark.parametrize("error", [InputError("bad"), KeyboardInterrupt()])
    def test_nothing_runs_on_while_somebody_holds_the_error(
        self, error: BaseException, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As Python's prompt and notebooks do: they keep the last error, and all that it knows."""

        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(loading._Repeats, "add", fail)
        batch = pa.record_batch({"u": [1, 2], "i": [1, 2]})
        endless = pa.RecordBatchReader.from_batches(batch.schema, repeat(batch))
        before = ours()
        with pytest.raises(type(error)) as held:
            select_partitions(endless, user="u", item="i", epsilon=1, delta=1e-6)
        for thread in ours() - before:
            thread.join(60)
        assert ours() == before
        assert held.value is error


def cut_users(sizes: list[int], pieces: int) -> list[tuple[int, int]]:
    return cuts(np.cumsum(sizes, dtype=np.uint64), pieces)


class TestCuts:
    @given(st.lists(st.integers(0, 9), min_size=1).filter(sum), st.integers(1, 20))
    def test_cover_every_user_once(self, sizes: list[int], pieces: int) -> None:
        found = cut_users(sizes, pieces)
        assert [user for first, stop in found for user in range(first, stop)] == [
            *range(len(sizes))
        ]
        assert len(found) <= pieces

    def test_share_the_work(self) -> None:
        for pieces in (2, 4, 8):
            sizes = [stop - first for first, stop in cut_users([1] * 800, pieces)]
            assert len(sizes) == pieces
            assert max(sizes) <= 800 // pieces + 1


class TestEngine:
    def test_no_thread_outlives_a_run(self) -> None:
        before = ours()
        select_partitions(
            {user: ["a", "b"] for user in range(50)}, rho=1, delta=0.01, engine=MemoryEngine(4)
        )
        deadline = time.monotonic() + 60
        while ours() - before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not ours() - before

    def test_no_thread_outlives_a_failed_run(self) -> None:
        def pairs() -> Iterator[tuple[int, list[str | float]]]:
            for user in range(300_000):
                yield user, [3.5 if user == 290_000 else "text"]

        before = ours()
        with pytest.raises(InputError, match="floats"):
            select_partitions(pairs(), rho=1, delta=0.01, engine=MemoryEngine(4))
        deadline = time.monotonic() + 60
        while ours() - before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not ours() - before

    @pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
    def test_bad_threads(self, threads: Any) -> None:
        with pytest.raises(UsageError, match=f"threads must be .* got {threads!r}"):
            MemoryEngine(threads=threads)

    def test_is_a_value(self) -> None:
        assert MemoryEngine(threads=3) == MemoryEngine(3)
        assert MemoryEngine() == MemoryEngine(threads=None)


class TestPairs:
    """Rows in any order, some batches of them in order: each user's items, as they first came."""

    @pytest.mark.parametrize("kind", [loading._Repeats, loading._Counts])
    @given(
        batches=st.lists(
            st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1), min_size=1
        ),
        ordered=st.integers(0, 3),
    )
    def test_are_gathered(
        self, kind: type[loading._Repeats], batches: list[list[tuple[int, int]]], ordered: int
    ) -> None:
        for place, batch in enumerate(batches[:ordered]):
            batches[place] = [(user + 6 * place, item) for user, item in sorted(batch)]
        expected: dict[int, Counter[int]] = {}
        with ThreadPoolExecutor(2) as pool:
            key, two = Key.for_tests(1), Workers(pool, 2)
            scrambler = key.scrambler(Purpose.LONG_ITEMS)
            items = new_column(
                [pa.int64()], nullable=False, seed=7, workers=two, scrambler=scrambler
            )
            users = new_user_column(
                pa.int64(), seed=7, workers=Workers(pool, 1), scrambler=scrambler
            )
            layout = kind(loading.Both(users, items), two)
            for batch in batches:
                columns = map(pa.array, zip(*batch, strict=True))
                rows = pa.record_batch(list(columns), names=["user", "item"])
                step, distinct = (rows, layout.columns), kind is loading._Repeats
                layout.add(loading._numbered(step, distinct=distinct))
                for user, item in batch:
                    expected.setdefault(user, Counter())[item] += 1
            sets = layout.sets()
        (values,) = items.values(sets.items.astype(np.int64))
        whole = [item for counter in expected.values() for item in counter]
        assert values.to_pylist() == whole
        assert np.diff(sets.ends, prepend=np.uint64(0)).tolist() == list(
            map(len, expected.values())
        )
        if kind is loading._Counts:
            times = [count for counter in expected.values() for count in counter.values()]
            assert sets.counts.tolist() == times
