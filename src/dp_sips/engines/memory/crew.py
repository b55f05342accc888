"""Threads that work side by side with the one that asks them to."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Crew(ThreadPoolExecutor):
    """A pool of threads whose `map` the caller works on, too.

    The system wakes a thread where it ran last, and may leave two of them on one core for
    milliseconds while the core of a caller that waits has nothing to do. So the caller takes steps
    as they do. It needs no thread of the pool to get on: work may ask for a `map` itself.
    """

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """Return an iterator over the results, in order, once all are there.

        After an error no other step is begun; it is raised when those that were have ended.
        """
        del timeout, chunksize  # nothing is left to wait for, and steps are not sent anywhere
        steps = deque(enumerate(zip(*iterables, strict=False)))
        results: dict[int, T] = {}

        def work() -> None:
            try:
                for place, step in taken(steps):
                    results[place] = fn(*step)
            finally:
                steps.clear()

        helpers: list[Future[None]] = []
        try:
            helpers.extend(self.submit(work) for _ in range(min(self._max_workers, len(steps)) - 1))
            work()
        finally:
            steps.clear()
            helpers = [helper for helper in helpers if not helper.cancel()]
            wait(helpers)
        for helper in helpers:
            helper.result()
        return (results[place] for place in range(len(results)))


def taken(left: deque[S]) -> Iterator[S]:
    """Take what is left, one at a time: each goes to one of the threads that ask."""
    with suppress(IndexError):
        while True:
            yield left.popleft()
