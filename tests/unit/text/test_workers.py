"""Other processes give the same words in the same order, and end when nobody needs them."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from dp_sips.text import workers
from dp_sips.text.tokenizer import token_lists
from dp_sips.text.workers import tokenize_all

PIECES = [pa.array([f"Text {i}.", None, "and more"] * (i % 5)) for i in range(30)]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> "list[subprocess.Popen[bytes]]":
    """The processes that were started."""
    found: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def popen(*args: Any, **options: Any) -> Any:
        found.append(start(*args, **options))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    return found


def ended(processes: "list[subprocess.Popen[bytes]]") -> bool:
    return all(process.poll() is not None for process in processes)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_any_number_of_processes(processes: int, started: Any) -> None:
    found = list(tokenize_all(PIECES, 2, processes))
    assert found == [token_lists(piece, 2) for piece in PIECES]
    assert len(started) == (0 if processes == 1 else processes)
    assert ended(started)


def test_little_text_is_not_worth_a_process(started: Any) -> None:
    assert list(tokenize_all(PIECES[:7], 1, 2)) == [token_lists(p, 1) for p in PIECES[:7]]
    assert not started


def test_pieces_are_not_read_far_ahead() -> None:
    read = 0

    def pieces() -> Iterator[pa.Array]:
        nonlocal read
        for piece in PIECES:
            read += 1
            yield piece

    next(tokenize_all(pieces(), 1, 2))
    assert read <= workers._WORTH_A_PROCESS


def test_a_reader_that_stops_ends_the_processes(started: Any) -> None:
    stream = tokenize_all(PIECES, 1, 2)
    next(stream)
    del stream
    assert len(started) == 2
    assert ended(started)


def test_an_error_of_the_pieces_ends_the_processes(started: Any) -> None:
    def pieces() -> Iterator[pa.Array]:
        yield from PIECES
        raise ValueError("a bad piece")

    with pytest.raises(ValueError, match="a bad piece"):
        list(tokenize_all(pieces(), 1, 2))
    assert ended(started)


def test_a_process_that_dies_is_an_error(started: Any) -> None:
    def pieces() -> Iterator[pa.Array]:
        for i, piece in enumerate(PIECES):
            if i == 20:
                for process in started:
                    process.kill()
                    process.wait()
            yield piece

    with pytest.raises(OSError, match=r"ended with code -9: out of memory|Broken pipe"):
        list(tokenize_all(pieces(), 1, 2))
    assert ended(started)
