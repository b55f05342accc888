"""Numbering: equal values get equal numbers, distinct values distinct ones, and all come back."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips.engines.encoding import value_blocks
from dp_sips.engines.memory import numbering, tables
from dp_sips.engines.memory.numbering import Table, Workers, new_column
from dp_sips.errors import InputError
from dp_sips.privacy.blocks import combine
from dp_sips.privacy.bounding import mix
from dp_sips.privacy.noise import Key

SCRAMBLER = Key.fresh().noise_of_round(0)
SETTINGS = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=[1, 2, 3, 16])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    with ThreadPoolExecutor(4) as pool:
        yield Workers(pool, request.param)


class TestTable:
    @SETTINGS
    @given(
        width=st.sampled_from([1, 2]),
        seed=st.integers(0, 2**64 - 1),
        batches=st.lists(
            st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=60), max_size=5
        ),
    )
    def test_agrees_with_a_dict(
        self, workers: Workers, width: int, seed: int, batches: list[Any]
    ) -> None:
        table = Table(width, seed, workers)
        known: dict[tuple[Any, ...], Any] = {}
        for batch in batches:
            if not batch:
                continue
            words = np.array(batch, dtype=np.uint64)[:, :width].copy()
            numbers, firsts = table.number_alone(words)
            new = {tuple(words[row]) for rows in firsts for row in rows}
            assert new == {tuple(row) for row in words} - known.keys()
            assert sum(map(len, firsts)) == len(new)
            for row, number in zip(words, numbers, strict=True):
                assert known.setdefault(tuple(row), number) == number
        assert len(set(known.values())) == len(known)
        if known:
            assert max(known.values()) < table.size()
            table.finish()
            numbered = np.array(list(known.values()))
            assert table.words(numbered).tolist() == [list(map(int, value)) for value in known]

    @pytest.mark.parametrize(("width", "shards"), [(1, 1), (1, 3), (2, 2)])
    def test_grows_beyond_a_million(self, width: int, shards: int) -> None:
        """More than a million values, some met again, in batches of all sizes."""
        with ThreadPoolExecutor(4) as pool:
            self.check_growth(width, Workers(pool, shards))

    @staticmethod
    def check_growth(width: int, workers: Workers) -> None:
        distinct = 1_050_000
        values = np.arange(distinct, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        words = np.stack([values, values >> np.uint64(7)], axis=1)[:, :width]
        table = Table(width, 99, workers)
        cuts = np.unique(np.random.default_rng(1).integers(0, distinct, 12))
        numbers = np.concatenate(
            [
                table.number(np.ascontiguousarray(part))
                for part in np.split(words, cuts)
                if len(part)
            ]
        )
        assert len(np.unique(numbers)) == distinct
        again = np.random.default_rng(1).integers(0, distinct, 300_000)
        found, firsts = table.number_alone(np.ascontiguousarray(words[again]))
        assert (found == numbers[again]).all()
        assert not any(map(len, firsts))
        assert numbers.max() < table.size()
        table.finish()
        assert (table.words(numbers) == words).all()

    @SETTINGS
    @given(
        width=st.sampled_from([1, 2]),
        rows=st.lists(st.integers(1, 20_000), min_size=2, max_size=8),
        distinct=st.integers(1, 100_000),
    )
    def test_several_threads_number_the_same_words_alike(
        self, workers: Workers, width: int, rows: list[int], distinct: int
    ) -> None:
        """Tables grow, also those of small integers, while other threads are at work on them."""
        rng = np.random.default_rng(len(rows))
        batches = [rng.integers(0, distinct, (n, width), dtype=np.uint64) for n in rows]
        table, new = Table(width, 7, workers), [0] * workers.shards

        def keep(shard: int, firsts: Any) -> None:
            new[shard] += len(firsts)

        with ThreadPoolExecutor(4) as pool:
            found = np.concatenate([*pool.map(lambda words: table.number(words, keep), batches)])
        words = np.concatenate(batches)
        values, places = np.unique(words, axis=0, return_inverse=True)
        pairs = np.unique(np.stack([places.reshape(-1), found]), axis=1)
        assert len(values) == pairs.shape[1] == len(np.unique(pairs[1])) == sum(new)
        assert new == [shard.count for shard in table._shards]
        table.finish()
        assert (table.words(found) == words).all()

    @SETTINGS
    @given(
        shards=st.sampled_from([1, 2, 3, 16]),
        known=st.lists(st.integers(0, 9), max_size=40),
        values=st.lists(st.sampled_from([0, 1, 2, 20, 39, 40, 41, 2**32, 2**64 - 1]), max_size=90),
    )
    def test_small_values_are_looked_up_and_the_others_shared_out(
        self, shards: int, known: list[int], values: list[int]
    ) -> None:
        numbers, ends = np.full(len(values) + 1, 77, np.uint32), np.zeros(shards, np.uint64)
        rows = np.empty(len(values), dtype=np.uint32)
        words = np.array(values, dtype=np.uint64).reshape(-1, 1)
        tables.share_out(words, np.array(known, dtype=np.uint32), 5, numbers, rows, ends)
        found = [known[value] if value < len(known) else 0 for value in values]
        lists = [own.tolist() for own in np.split(rows[: int(ends[-1])], ends[:-1].astype(int))]
        assert all(own == sorted(own) for own in lists)
        assert sorted(row for own in lists for row in own) == [
            row for row, number in enumerate(found) if not number
        ]
        assert all(numbers[row] == number - 1 for row, number in enumerate(found) if number)
        # Values on one line of memory fall to the same shard.
        homes = [{values[row] // 16 for row in own} for own in lists]
        assert sum(map(len, homes)) == len(set().union(*homes))

    def test_values_are_told_apart_where_their_hashes_agree(self, workers: Workers) -> None:
        """A value above 2³² may have the hash of one below: then slots alone tell nothing."""
        seed = 3
        large = np.arange(1, 600, dtype=np.uint64) << np.uint64(32) | np.uint64(7)
        high = mix((large >> np.uint64(32)) ^ np.uint64(seed))
        small = (large ^ high) & np.uint64(0xFFFFFFFF)
        for words in (np.append(large, small), np.append(small, large)):
            table = Table(1, seed, workers)
            for part in np.array_split(words.reshape(-1, 1), 7):
                table.number(part)
            assert len(np.unique(table.number(words.reshape(-1, 1)))) == len(np.unique(words))

    def test_there_is_room_for_the_rows_of_all_threads(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            table = Table(1, 5, Workers(pool, 2))
        with table._room_for(5000), table._room_for(5000):
            assert len(table._words) >= 2 * 10_000

    def test_too_many_numbers_are_refused_before_they_are_given(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(numbering, "_MOST_VALUES", 1 << 14)
        words = np.arange(1 << 12, dtype=np.uint64).reshape(-1, 1)
        with ThreadPoolExecutor(2) as pool:
            table = Table(1, 5, Workers(pool, 2))
        first = table.number(words)
        for _ in range(9):  # no more than these, again and again
            with pytest.raises(InputError, match="more than 4 billion"):
                table.number(np.arange(1 << 15, dtype=np.uint64).reshape(-1, 1))
            assert (table.number(words) == first).all()

    def test_no_list_grows_while_a_shard_is_at_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Small integers are found in a list, which is made longer only when nobody adds to it."""
        monkeypatch.setattr(numbering, "_LEAST_DIRECT", 64)
        words, free, more = np.arange(400, dtype=np.uint64).reshape(-1, 1), Event(), Event()
        with ThreadPoolExecutor(2) as pool:
            table = Table(1, 5, Workers(pool, 2))
            first = pool.submit(table.number, words, lambda _shard, _rows: free.wait(60))
            deadline = time.monotonic() + 60
            while sum(shard.direct for shard in table._shards) < 64:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            before = table._small
            second = pool.submit(table.number, words)
            second.add_done_callback(lambda _: more.set())
            early = more.wait(0.2)
            unchanged = table._small == before
            free.set()
            numbers = first.result(), second.result()
        assert unchanged
        assert not early
        assert (numbers[0] == numbers[1]).all()
        assert len(set(numbers[0].tolist())) == len(words)

    def test_a_failure_is_raised_and_leaves_the_table_free(self) -> None:
        def fail(_shard: int, _rows: Any) -> None:
            raise MemoryError

        words = np.zeros((1, 1), dtype=np.uint64)
        with ThreadPoolExecutor(2) as pool:
            table = Table(1, 5, Workers(pool, 2))
            with pytest.raises(MemoryError):
                table.number(words, fail)
            assert pool.submit(table.number, words).result(60).shape == (1,)
        assert table._rows == 0

    def test_one_shard_numbers_in_order_of_appearance(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            table = Table(1, 5, Workers(pool, 1))
            values = np.random.default_rng(1).integers(0, 5000, 20_000, dtype=np.uint64)
            numbers, (firsts,) = table.number_alone(values.reshape(-1, 1))
        assert numbers[firsts].tolist() == list(range(len(firsts)))
        assert firsts.tolist() == sorted(np.unique(values, return_index=True)[1].tolist())


KINDS: dict[str, tuple[list[Any], list[Any]]] = {
    "integers": ([[5, -5, 2**63 - 1, 0, 5]], [pa.int64()]),
    "unsigned": ([[2**64 - 1, 0, 2**63, 0]], [pa.uint64()]),
    "truth": ([[True, False, True]], [pa.bool_()]),
    "text": ([["a", "", "a", "b" * 99, "b" * 98]], [pa.string()]),
    "two": ([[1, 1, 2, 1], ["a", "b", "a", "a"]], [pa.int8(), pa.string()]),
    "three": ([[1, 1, 1, 1], ["a", "b", "a", "a"], [b"", b"", b"x", b""]],
              [pa.int8(), pa.string(), pa.binary()]),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_columns_give_values_and_blocks_back(kind: str, workers: Workers) -> None:
    values, kinds = KINDS[kind]
    arrays: list[Any] = [pa.array(v, k) for v, k in zip(values, kinds, strict=True)]
    column = new_column(kinds, nullable=False, seed=3, workers=workers, scrambler=SCRAMBLER)
    numbers = column.number(arrays).astype(np.int64)
    again = column.number([array.slice(1) for array in arrays])
    assert again.tolist() == numbers[1:].tolist()
    column.finish()
    assert len(set(numbers.tolist())) == len(set(zip(*values, strict=True)))
    assert [array.to_pylist() for array in column.values(numbers)] == values
    blocks = combine([value_blocks(array, SCRAMBLER) for array in arrays], SCRAMBLER)
    assert (column.blocks(numbers) == blocks).all()


@pytest.mark.parametrize("kind", KINDS)
def test_nullable_columns(kind: str, workers: Workers) -> None:
    values, kinds = KINDS[kind]
    holed = [[None, *column, None] for column in values]
    arrays: list[Any] = [pa.array(v, k) for v, k in zip(holed, kinds, strict=True)]
    column = new_column(kinds, nullable=True, seed=3, workers=workers, scrambler=SCRAMBLER)
    numbers = column.number(arrays).astype(np.int64)
    column.finish()
    assert [array.to_pylist() for array in column.values(numbers)] == holed
    assert numbers[0] == numbers[-1]
    blocks = combine([value_blocks(array, SCRAMBLER) for array in arrays], SCRAMBLER)
    assert (column.blocks(numbers) == blocks).all()


def test_dictionaries_that_look_alike_are_told_apart(workers: Workers) -> None:
    """Numbers of one batch's dictionary must not serve the next batch's."""
    column = new_column([pa.string()], nullable=False, seed=3, workers=workers, scrambler=SCRAMBLER)
    indices: Any = pa.array([0, 1, 2])
    for words in (
        ["a", "b", "c"],
        ["a", "b", "d"],
        ["a", "b", "c"],
        ["ab", "", "c"],
        ["", "ab", "c"],
    ):
        batch = pa.DictionaryArray.from_arrays(indices, pa.array(words))
        numbers = column.number([batch]).astype(np.int64)
        assert [array.to_pylist() for array in column.values(numbers)] == [words]
    sliced: Any = pa.DictionaryArray.from_arrays(indices, pa.array(["x", "a", "b", "c"]).slice(1))
    numbers = column.number([sliced]).astype(np.int64)
    assert column.values(numbers)[0].to_pylist() == ["a", "b", "c"]


def test_values_of_batches_side_by_side(workers: Workers) -> None:
    """Text, a dictionary and more text, in threads of their own: all come back."""
    column = new_column([pa.string()], nullable=True, seed=3, workers=workers, scrambler=SCRAMBLER)
    long = [f"page {n}" for n in range(50_000)]
    entries: Any = pa.array(["x", "page 7", "y"])
    batches: list[Any] = [
        pa.array(long),
        pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1]), entries),
        pa.array([*long[::7], None, "z"]),
    ]
    with ThreadPoolExecutor(3) as pool:
        found = [*pool.map(lambda batch: column.number([batch]), batches)]
    numbers = [each.astype(np.int64) for each in found]
    column.finish()
    for batch, each in zip(batches, numbers, strict=True):
        assert column.values(each)[0].to_pylist() == batch.to_pylist()


def test_threads_with_dictionaries_of_their_own() -> None:
    """What is known of the last dictionary changes hands all the time."""
    words = [[f"{n} of {which}" for n in range(50)] for which in range(3)]
    batches: list[Any] = [
        pa.DictionaryArray.from_arrays(pa.array([7, 0, which]), pa.array(entries))
        for which, entries in enumerate(words)
    ]
    with ThreadPoolExecutor(4) as pool:
        workers = Workers(pool, 2)
        column = new_column(
            [pa.string()], nullable=False, seed=3, workers=workers, scrambler=SCRAMBLER
        )
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            found = [*pool.map(lambda which: column.number([batches[which]]), [0, 1, 2] * 500)]
        finally:
            sys.setswitchinterval(before)
    column.finish()
    for which, numbers in enumerate(found):
        values = column.values(numbers.astype(np.int64))[0].to_pylist()
        assert values == batches[which % 3].to_pylist()
