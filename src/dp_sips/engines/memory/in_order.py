"""Work on several steps at the same time, with the results in order."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


@contextmanager
def in_order(
    work: Callable[[S], T], steps: Iterable[S], pool: Executor, ahead: int
) -> Iterator[Iterator[T]]:
    """Give what comes of each step, one after the other, while the pool works on the next few.

    One thread takes all steps, as a source may belong to the thread that opened it, and hands over
    at most `ahead` of them before their results are read. An error in a step, or in the work on it,
    is raised in its place. The thread ends with the context, after the step that it is at.
    """
    results: queue.SimpleQueue[Future[T] | None] = queue.SimpleQueue()
    room, is_over = threading.Semaphore(ahead), threading.Event()

    def take() -> None:
        try:
            for step in steps:
                room.acquire()
                if is_over.is_set():
                    return
                results.put(pool.submit(work, step))
                del step  # it may be large, and the next may take long
            results.put(None)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the reader must hear of it)
            failed: Future[T] = Future()
            failed.set_exception(error)
            results.put(failed)

    def given() -> Iterator[T]:
        while (result := results.get()) is not None:
            yield result.result()
            del result  # as above
            room.release()

    threading.Thread(target=take, name="dp-sips reader", daemon=True).start()
    try:
        yield given()
    finally:
        is_over.set()
        room.release()
