"""Steps worked on side by side: in order, not far ahead, and no longer than they are read."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.threads import none_is_left, ours

from dp_sips import InputError
from dp_sips.engines.memory.in_order import in_order


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    with none_is_left():
        yield


def same(step: object) -> object:
    return step


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as threads:
        yield threads


@given(st.lists(st.integers()), st.integers(1, 5))
def test_keeps_the_order(pool: ThreadPoolExecutor, values: list[int], ahead: int) -> None:
    with in_order(lambda value: value + 1, values, pool, ahead) as results:
        assert list(results) == [value + 1 for value in values]


def test_hands_over_anything(pool: ThreadPoolExecutor) -> None:
    values = [None, 0, (), ValueError("a value, not a failure"), StopIteration()]
    with in_order(same, values, pool, 2) as results:
        assert list(results) == values


def test_works_on_several_steps_at_the_same_time(pool: ThreadPoolExecutor) -> None:
    together = threading.Barrier(3)
    with in_order(lambda _: together.wait(60), range(3), pool, 3) as results:
        assert sorted(results) == [0, 1, 2]


def test_a_slow_step_holds_back_those_after_it(pool: ThreadPoolExecutor) -> None:
    others_are_done = threading.Event()

    def work(step: int) -> int:
        if step == 0:
            assert others_are_done.wait(60)
        if step == 3:
            others_are_done.set()
        return step

    with in_order(work, range(4), pool, 4) as results:
        assert list(results) == [0, 1, 2, 3]


def test_one_thread_takes_all_steps(pool: ThreadPoolExecutor) -> None:
    """A connection to SQLite, for one, works only in the thread that opened it."""
    takers = (threading.get_ident() for _ in range(2000))
    with in_order(same, takers, pool, 4) as results:
        assert len(set(results)) == 1


@pytest.mark.parametrize("ahead", [1, 3])
def test_goes_ahead_but_not_far(pool: ThreadPoolExecutor, ahead: int) -> None:
    made: list[int] = []
    enough = threading.Event()

    def steps() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            if i == ahead:
                enough.set()
            yield i

    with in_order(same, steps(), pool, ahead) as results:
        assert next(results) == 0
        assert enough.wait(60)
        time.sleep(0.1)
        assert len(made) == ahead + 1  # those on their way, and one in the hand
        assert list(results) == list(range(1, 100))


ERRORS = [InputError("bad"), KeyError("x"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_a_step_comes_after_what_was_before_it(
    pool: ThreadPoolExecutor, error: BaseException
) -> None:
    def steps() -> Iterator[int]:
        yield 1
        yield 2
        raise error

    with in_order(same, steps(), pool, 2) as results:
        assert [next(results), next(results)] == [1, 2]
        with pytest.raises(type(error)) as caught:
            next(results)
        assert caught.value is error


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_the_work_comes_in_its_place(
    pool: ThreadPoolExecutor, error: BaseException
) -> None:
    def work(step: int) -> int:
        if step == 2:
            raise error
        return step

    with in_order(work, range(5), pool, 2) as results:
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(type(error)) as caught:
            next(results)
        assert caught.value is error


def test_an_end_that_work_makes_up_is_an_error(pool: ThreadPoolExecutor) -> None:
    def work(_step: int) -> int:
        raise StopIteration

    with in_order(work, range(5), pool, 2) as results, pytest.raises(RuntimeError):
        list(results)


def test_the_thread_ends_with_the_context(pool: ThreadPoolExecutor) -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    before = ours()
    with in_order(same, endless(), pool, 3) as results:
        next(results)
        assert len(ours() - before) == 1
    for thread in ours() - before:
        thread.join(60)
    assert ours() == before


def test_the_thread_ends_where_nobody_reads(pool: ThreadPoolExecutor) -> None:
    before = ours()
    with in_order(same, range(100), pool, 3):
        pass
    for thread in ours() - before:
        thread.join(60)
    assert ours() == before


class Large:
    """Something that one would not keep longer than needed."""


def test_no_step_is_kept_while_the_next_is_awaited(pool: ThreadPoolExecutor) -> None:
    gone, release = threading.Event(), threading.Event()
    kept: list[Any] = []

    def steps() -> Iterator[Large]:
        step = Large()
        kept.append(ref(step, lambda _: gone.set()))
        yield step
        del step
        assert release.wait(60)

    with in_order(lambda _step: 1, steps(), pool, 1) as results:
        assert next(results) == 1
        assert gone.wait(60)
        release.set()
        assert list(results) == []


def test_no_result_is_kept_after_the_last(pool: ThreadPoolExecutor) -> None:
    with in_order(lambda _step: Large(), range(3), pool, 2) as results:
        kept = [ref(result) for result in results]
        deadline = time.monotonic() + 60
        while any(known() is not None for known in kept) and time.monotonic() < deadline:
            time.sleep(0.001)  # a thread of the pool may be about to let go
    assert [known() for known in kept] == [None] * 3
