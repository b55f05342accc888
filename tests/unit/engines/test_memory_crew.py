"""A crew: threads, and the one that asks, take one step after the other."""

import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.memory.crew import Crew


class StepError(Exception):
    """What goes wrong in a step."""


@pytest.fixture(params=[1, 2, 3])
def crew(request: pytest.FixtureRequest) -> Iterator[Crew]:
    with Crew(request.param) as crew:
        yield crew


@given(st.integers(1, 4), st.lists(st.integers()), st.lists(st.integers()))
def test_results_are_those_of_map(threads: int, some: list[int], others: list[int]) -> None:
    with Crew(threads) as crew:
        assert list(crew.map(max, some, others)) == list(map(max, some, others))


def test_all_is_done_before_anybody_reads(crew: Crew) -> None:
    done: list[int] = []
    crew.map(done.append, range(9))
    assert sorted(done) == list(range(9))


def test_the_caller_and_the_threads_work_side_by_side() -> None:
    all_are_here = threading.Barrier(3)

    def work(_: int) -> str:
        all_are_here.wait(timeout=60)
        return threading.current_thread().name

    with Crew(3) as crew:
        names = set(crew.map(work, range(3)))
    assert len(names) == 3
    assert threading.current_thread().name in names


def test_a_caller_needs_no_thread_of_the_pool() -> None:
    with Crew(2) as crew:
        is_over = threading.Event()
        busy = [crew.submit(is_over.wait, 60) for _ in range(2)]
        assert list(crew.map(str, range(3))) == ["0", "1", "2"]
        is_over.set()
        assert all(one.result() for one in busy)


def test_work_may_ask_for_more(crew: Crew) -> None:
    def work(first: int) -> list[int]:
        return list(crew.map(lambda n: first + n, range(5)))

    assert list(crew.map(work, range(4))) == [[n + m for m in range(5)] for n in range(4)]


@pytest.mark.parametrize("wrong", [0, 5, 99])
def test_an_error_ends_it(crew: Crew, wrong: int) -> None:
    begun, working = count(), []

    def work(step: int) -> None:
        next(begun)
        if step == wrong:
            raise StepError
        working.append(step)
        time.sleep(0.001)
        working.remove(step)

    with pytest.raises(StepError):
        crew.map(work, range(1000))
    assert not working
    assert next(begun) < 500
    assert list(crew.map(str, range(2))) == ["0", "1"]


def test_an_error_of_a_thread_is_raised() -> None:
    caller = threading.current_thread()
    both_are_here = threading.Barrier(2)

    def work(_: int) -> None:
        both_are_here.wait(timeout=60)
        if threading.current_thread() is not caller:
            raise StepError

    with Crew(2) as crew, pytest.raises(StepError):
        crew.map(work, range(2))


def test_an_index_error_is_no_end() -> None:
    def work(step: int) -> int:
        return [1, 2][step]

    with Crew(2) as crew, pytest.raises(IndexError):
        crew.map(work, range(5))


def test_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with Crew(3) as crew:
        submit, asked = crew.submit, count()
        done: list[int] = []

        def work(step: int) -> None:
            time.sleep(0.001)
            done.append(step)

        def once(*call: Any) -> Any:
            if next(asked):
                raise StepError
            return submit(*call)

        monkeypatch.setattr(crew, "submit", once)
        with pytest.raises(StepError):
            crew.map(work, range(1000))
        before = len(done)
        time.sleep(0.05)
        assert len(done) == before < 500
