"""Memory of arrays that are gone: kept while somebody asks for it, and moved to others."""

import ctypes
import gc
import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dp_sips.engines.memory import recycling
from dp_sips.engines.memory.growing import Growing, check_fresh, empty, zeros
from dp_sips.engines.memory.recycling import Memory, spares
from dp_sips.errors import OutOfMemoryError

PAGE = mmap.PAGESIZE
LARGE = 1 << 20

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems move no pages")


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    gc.collect()
    spares.keep()
    yield
    spares.return_all()
    assert not spares.size()


def full(size: int, value: int) -> np.ndarray[Any, Any]:
    array = empty(size, np.uint8)
    array[:] = value
    return array


class TestSpares:
    def test_what_is_gone_is_spare(self) -> None:
        array = full(LARGE, 7)
        part = array[5:6]
        del array
        assert not spares.size()
        del part
        assert spares.size() == LARGE

    def test_only_what_was_used(self) -> None:
        array = Growing(np.uint16)
        array.upto(LARGE)[:LARGE] = 7
        array.upto(LARGE + 1)
        del array
        assert spares.size() == 2 * LARGE + PAGE

    def test_the_next_array_gets_it(self) -> None:
        del_me = full(LARGE, 7)
        del del_me
        assert set(empty(LARGE, np.uint8).tolist()) == {7}

    def test_not_where_nobody_asks(self) -> None:
        spares.return_all()
        array = full(LARGE, 7)
        del array
        assert not spares.size()

    def test_not_where_addresses_are_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recycling, "addresses_are_short", lambda: True)
        spares.keep()
        array = full(LARGE, 7)
        del array
        assert not spares.size()

    def test_what_is_returned_is_gone(self) -> None:
        array = full(LARGE, 7)
        del array
        spares.return_all()
        assert not spares.size()
        assert not empty(LARGE, np.uint8).any()

    def test_it_counts_as_memory_that_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        array = full(LARGE, 7)
        del array
        monkeypatch.setattr("dp_sips.room.memory_left", lambda: 100)
        check_fresh(LARGE + 100)
        with pytest.raises(OutOfMemoryError):
            check_fresh(LARGE + 101)


@needs_linux
class TestMoving:
    def test_several_make_one(self) -> None:
        gone = [full(LARGE + more, value) for value in (1, 2, 3) for more in (0, PAGE)]
        del gone
        assert spares.size() == 6 * LARGE + 3 * PAGE
        array = empty(5 * LARGE, np.uint8)
        assert set(array.tolist()) == {1, 2, 3}
        assert spares.size() == LARGE + 3 * PAGE

    def test_one_makes_several(self) -> None:
        whole = np.arange(LARGE, dtype=np.uint64)
        array = empty(LARGE, np.uint64)
        array[:] = whole
        del array
        parts = [empty(LARGE // 4, np.uint64) for _ in range(4)]
        assert np.sort(np.concatenate(parts)).tolist() == whole.tolist()
        assert not spares.size()

    def test_what_stays_is_not_touched(self) -> None:
        gone, stays = full(LARGE, 7), full(LARGE, 8)
        del gone
        some = [full(LARGE // 2, 9), full(LARGE, 10)]
        assert (stays == 8).all()
        assert [set(one.tolist()) for one in some] == [{9}, {10}]

    def test_more_than_there_is(self) -> None:
        gone = full(LARGE, 7)
        del gone
        array = empty(3 * LARGE, np.uint8)
        assert np.count_nonzero(array) == LARGE
        array[:] = 5
        assert (array == 5).all()

    def test_zeros_are_zeros(self) -> None:
        for size in (LARGE, 3 * LARGE + 5):
            gone = full(LARGE + 1, 7)
            del gone
            array = zeros((size, 2), np.uint32)
            assert array.shape == (size, 2)
            assert not array.any()

    def test_what_was_moved_is_spare_again(self) -> None:
        for value in range(1, 5):
            array = empty(LARGE, np.uint8)
            assert set(array.tolist()) == {value - 1}
            array[:] = value
            del array
        assert spares.size() == LARGE

    def test_no_page_of_it_is_fresh(self) -> None:
        import resource

        gone = full(16 * LARGE, 7)
        del gone
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        full(16 * LARGE, 8)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 16 * LARGE // PAGE // 2

    def test_many_threads(self) -> None:
        wrong = []

        def work(value: int) -> None:
            for size in range(LARGE, 3 * LARGE, LARGE // 8 + 3):
                one, other = zeros(size, np.uint8), empty(size, np.uint8)
                wrong.append(one.any())
                one[:], other[:] = value, value + 1
                del one
                zeros(size // 2, np.uint8)[:] = 99
                wrong.append((other != value + 1).any())

        threads = [threading.Thread(target=work, args=(2 * n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong
        assert not any(wrong)


def unmap_and_fail(*call: int) -> Any:
    """Leave a hole at the new address, as mremap may."""
    address, size = call[-1], call[1]
    assert not ctypes.CDLL(None).munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    return recycling._FAILED


@pytest.mark.parametrize("move", [None, unmap_and_fail])
def test_where_pages_cannot_be_moved(
    monkeypatch: pytest.MonkeyPatch, move: Callable[..., Any] | None
) -> None:
    monkeypatch.setattr(recycling, "_mover", lambda: move)
    gone = [full(LARGE, 7), full(LARGE, 7)]
    del gone
    array = zeros(LARGE, np.uint8)
    assert not array.any()
    array[:] = 5
    assert (array == 5).all()


@needs_linux
def test_pages_of_several_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycling, "_ORDINARY", 2 * LARGE)
    gone = [full(5 * LARGE, 7), full(LARGE, 7)]
    del gone
    joined = full(7 * LARGE, 8)  # three parts that were spare, and a fresh one
    assert not spares.size()
    del joined
    assert [spare.size // LARGE for spare in spares._spares] == [2, 1, 2, 1, 1]
    monkeypatch.setattr(spares, "return_all", lambda: pytest.fail("no page was moved"))
    again = empty(7 * LARGE, np.uint8)
    assert (again == 8).all()
    monkeypatch.undo()


def test_an_array_keeps_its_memory_alive() -> None:
    array = np.asarray(Memory(LARGE))
    gc.collect()
    array[:] = 3
    assert (array == 3).all()
    assert len(array) == LARGE


def test_where_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def mapped(size: int) -> mmap.mmap:
        raise OSError(size)

    monkeypatch.setattr(recycling, "_mapped", mapped)
    with pytest.raises(OSError, match=str(LARGE)):
        Memory(LARGE)
