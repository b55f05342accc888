"""Texts become tokens on all cores: other processes do it, and their answers come back in order.

The processes run `dp_sips.text.worker` and talk in Arrow's IPC format. They are no forks, which
Arrow's threads would not survive, and they do not import the caller's script, as those of
`multiprocessing` would.
"""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, islice
from queue import SimpleQueue
from typing import IO, Any, Final

import pyarrow as pa

_WORTH_A_PROCESS: Final = 8
"""Pieces of text from which on it pays to start processes: each has to import NLTK."""
_LENGTH_BYTES: Final = 8


def tokenize_all(
    pieces: Iterable[pa.Array], longest: int, processes: int | None
) -> Iterator[pa.Array]:
    """Yield the lists of tokens of each piece of texts, in the order of the pieces."""
    number = processes or os.cpu_count() or 1
    rest = iter(pieces)
    first = list(islice(rest, _WORTH_A_PROCESS))
    if number == 1 or len(first) < _WORTH_A_PROCESS:
        from dp_sips.text.tokenizer import token_lists

        yield from (token_lists(piece, longest) for piece in chain(first, rest))
    else:
        yield from _in_processes(chain(first, rest), longest, number)


def send(pipe: IO[bytes], array: pa.Array) -> None:
    """Write an array, with its length before it."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([array], names=["array"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = sink.getvalue()
    pipe.write(len(content).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> pa.Array | None:
    """Read what `send` wrote, or `None` at the end."""
    length = int.from_bytes(pipe.read(_LENGTH_BYTES), "little")
    content = pipe.read(length)
    if not length or len(content) < length:
        return None
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch().column(0)


class _Worker:
    """One process; it ends when its input does."""

    def __init__(self, longest: int) -> None:
        argv = [sys.executable, "-m", "dp_sips.text.worker", str(longest)]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipe = subprocess.PIPE
        # In a group of its own: Ctrl-C is for this process, which then ends that one.
        self._process: Any = subprocess.Popen(  # noqa: S603
            argv, env=env, stdin=pipe, stdout=pipe, process_group=0
        )

    def ask(self, texts: pa.Array) -> pa.Array:
        send(self._process.stdin, texts)
        answer = receive(self._process.stdout)
        if answer is None:
            code = self._process.wait()
            raise OSError(f"a process that took texts apart ended with code {code}: out of memory?")
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def _in_processes(pieces: Iterable[pa.Array], longest: int, number: int) -> Iterator[pa.Array]:
    idle: SimpleQueue[_Worker] = SimpleQueue()

    def ask(texts: pa.Array) -> pa.Array:
        worker = idle.get()
        try:
            return worker.ask(texts)
        finally:
            idle.put(worker)

    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(number))
        for _ in range(number):
            worker = _Worker(longest)
            # Ended before the threads are waited for: one that reads from it then goes on.
            stack.callback(worker.end)
            idle.put(worker)
        yield from _in_order(threads, ask, pieces, ahead=2 * number)


def _in_order(
    threads: ThreadPoolExecutor,
    ask: Callable[[pa.Array], pa.Array],
    pieces: Iterable[pa.Array],
    ahead: int,
) -> Iterator[pa.Array]:
    """Keep a bounded number of pieces under way, and hand their answers out in order."""
    asked: deque[Future[pa.Array]] = deque()
    try:
        for piece in pieces:
            asked.append(threads.submit(ask, piece))
            if len(asked) == ahead:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()
    finally:
        for future in asked:
            future.cancel()
