"""Steps worked on side by side: in order, not far ahead, and ended by whoever reads them."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips import InputError
from dp_sips.engines.memory.in_order import in_order


def ours() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "dp-sips reader"}


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Threads that a test starts end with it; they may take a moment to notice."""
    before = ours()
    yield
    for thread in ours() - before:
        thread.join(60)
        assert not thread.is_alive()


def same(step: object) -> object:
    return step


@given(st.lists(st.integers()), st.integers(1, 5))
def test_keeps_the_order(values: list[int], threads: int) -> None:
    with in_order(lambda value: value + 1, values, threads) as results:
        assert list(results) == [value + 1 for value in values]


def test_hands_over_anything() -> None:
    values = [None, 0, (), ValueError("a value, not a failure"), StopIteration()]
    with in_order(same, values, 2) as results:
        assert list(results) == values


def test_works_on_several_steps_at_the_same_time() -> None:
    together = threading.Barrier(3)
    with in_order(lambda _: together.wait(60), range(3), 3) as results:
        assert sorted(results) == [0, 1, 2]


def test_a_slow_step_holds_back_those_after_it() -> None:
    others_are_done = threading.Event()

    def work(step: int) -> int:
        if step == 0:
            assert others_are_done.wait(60)
        if step == 3:
            others_are_done.set()
        return step

    with in_order(work, range(4), 2) as results:
        assert list(results) == [0, 1, 2, 3]


def test_steps_are_taken_by_one_thread_at_a_time() -> None:
    """A generator that is asked for two values at once raises an error."""
    with in_order(same, (value for value in range(2000)), 4) as results:
        assert list(results) == list(range(2000))


@pytest.mark.parametrize("threads", [1, 2])
def test_goes_ahead_but_not_far(threads: int) -> None:
    made: list[int] = []
    enough = threading.Event()

    def steps() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            if i == 2 * threads:
                enough.set()
            yield i

    with in_order(same, steps(), threads) as results:
        assert next(results) == 0
        assert enough.wait(60)
        assert len(made) == 2 * threads + 1
        assert list(results) == list(range(1, 100))


ERRORS = [InputError("bad"), KeyError("x"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_a_step_comes_after_what_was_before_it(error: BaseException) -> None:
    def steps() -> Iterator[int]:
        yield 1
        yield 2
        raise error

    with in_order(same, steps(), 2) as results:
        assert [next(results), next(results)] == [1, 2]
        with pytest.raises(type(error)) as caught:
            next(results)
        assert caught.value is error


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_the_work_comes_in_its_place(error: BaseException) -> None:
    def work(step: int) -> int:
        if step == 2:
            raise error
        return step

    with in_order(work, range(5), 2) as results:
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(type(error)) as caught:
            next(results)
        assert caught.value is error


def test_an_end_that_work_makes_up_is_an_error() -> None:
    def work(_step: int) -> int:
        raise StopIteration

    with in_order(work, range(5), 2) as results, pytest.raises(RuntimeError):
        list(results)


def test_threads_end_with_the_context() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    before = ours()
    with in_order(same, endless(), 3) as results:
        next(results)
        assert len(ours() - before) == 3
    for thread in ours() - before:
        thread.join(60)
    assert ours() == before


def test_threads_end_where_nobody_reads() -> None:
    before = ours()
    with in_order(same, range(100), 3):
        pass
    for thread in ours() - before:
        thread.join(60)
    assert ours() == before


def test_no_step_is_kept_while_the_next_is_awaited() -> None:
    """A step may be large: the thread that waits for another lets go of it."""
    from weakref import ref

    class Step:
        pass

    gone, release = threading.Event(), threading.Event()

    def steps() -> Iterator[Step]:
        step = Step()
        kept.append(ref(step, lambda _: gone.set()))
        yield step
        del step
        assert release.wait(60)

    kept: list[object] = []
    with in_order(lambda _step: 1, steps(), 1) as results:
        assert next(results) == 1
        assert gone.wait(60)
        release.set()
        assert list(results) == []
