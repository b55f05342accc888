"""Work on several steps at the same time, with the results in order."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


@contextmanager
def in_order(work: Callable[[S], T], steps: Iterable[S], threads: int) -> Iterator[Iterator[T]]:
    """Give what comes of each step, one after the other, while threads work on the next few.

    A thread takes a step while no other does, and then works on it beside the others: only results
    go from hand to hand. An error in a step, or in the work on it, is raised in its place. Threads
    end with the context, after what they are at.
    """
    line = _Line(work, steps, 2 * threads)
    for _ in range(threads):
        threading.Thread(target=line.run, name="dp-sips reader", daemon=True).start()
    try:
        yield line.results()
    finally:
        line.end()


class _OverError(Exception):
    """There was no next step."""


class _Line(Generic[S, T]):
    """Steps, at most so many of them ahead of the reader, and what will come of them."""

    def __init__(self, work: Callable[[S], T], steps: Iterable[S], most: int) -> None:
        self._work, self._steps, self._taking = work, iter(steps), threading.Lock()
        self._room, self._is_over = threading.Semaphore(most), False
        self._results: queue.SimpleQueue[Future[T]] = queue.SimpleQueue()

    def run(self) -> None:
        """Work on one step after the other."""
        while not self._is_over:
            self._room.acquire()
            self._work_on_next()
        self.end()

    def _work_on_next(self) -> None:
        result: Future[T] = Future()
        try:
            with self._taking:
                if self._is_over:
                    return
                self._results.put(result)
                step = self._next()
            result.set_result(self._work(step))
        except BaseException as error:  # noqa: BLE001 (whatever it is, the reader must hear of it)
            result.set_exception(error)

    def _next(self) -> S:
        """Return the next step; after the last, or an error, it is over."""
        try:
            return next(self._steps)
        except BaseException as error:
            self._is_over = True
            if isinstance(error, StopIteration):
                raise _OverError from None
            raise

    def results(self) -> Iterator[T]:
        """Wait for each result, in order."""
        while True:
            try:
                found = self._results.get().result()
            except _OverError:
                return
            self._room.release()
            yield found

    def end(self) -> None:
        """Take no more steps; whoever waits for room wakes up."""
        self._is_over = True
        self._room.release()
