import mmap
import resource

import numpy as np
import pytest

from dp_sips.engines.memory import growing
from dp_sips.engines.memory.growing import Growing

LARGE = growing._SMALL


class TestGrowing:
    @pytest.mark.parametrize("width", [None, 2])
    @pytest.mark.parametrize("steps", [[1, 3, 1000], [10, LARGE], [LARGE, 3 * LARGE]])
    def test_keeps_what_was_written_and_adds_zeros(
        self, width: int | None, steps: list[int]
    ) -> None:
        array, written = Growing(np.uint32, width), 0
        for step in steps:
            grown = array.upto(step)
            assert len(grown) >= step
            assert grown.shape[1:] == (() if width is None else (width,))
            assert (grown[:written] == 7).all()
            assert not grown[written:step].any()
            grown[:step] = 7
            written = step

    @pytest.mark.parametrize("width", [None, 3])
    @pytest.mark.parametrize("unit", [100, mmap.PAGESIZE, LARGE])
    def test_touching_changes_nothing(self, width: int | None, unit: int) -> None:
        array, written = Growing(np.uint32, width), 0
        for step in [1, unit - 1, unit, unit // 2, 2 * unit + 7]:
            grown = array.touched_upto(step)
            assert len(grown) >= step
            assert (grown[:written] == 7).all()
            assert not grown[written : step + 1].any()
            grown[:step] = 7
            written = max(written, step)

    def test_a_touched_page_is_not_the_one_that_all_share(self) -> None:
        array = Growing(np.uint8)
        array.touched_upto(2 * LARGE)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        array.upto(0)[: 2 * LARGE] += 1
        # A write to a page that was only read would be a fault for each of them.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < LARGE // mmap.PAGESIZE

    def test_a_large_one_stays_where_it_is(self) -> None:
        array = Growing(np.uint64)
        first = array.upto(LARGE)
        first[0] = 5
        again = array.upto(2 * LARGE)
        assert again.ctypes.data == first.ctypes.data
        assert again[0] == 5

    def test_takes_what_it_needs_where_addresses_are_short(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(growing, "addresses_are_short", lambda: True)
        assert len(Growing(np.uint8).upto(LARGE + 1)) == 2 * (LARGE + 1)

    def test_takes_little_address_space_where_there_is_another_limit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def mapped(size: int) -> mmap.mmap:
            if size > 100 * LARGE:
                raise OSError
            return mmap.mmap(-1, size)

        monkeypatch.setattr(growing, "_mapped", mapped)
        array = Growing(np.uint8)
        array.upto(LARGE + 1)[:] = 3
        grown = array.upto(9 * LARGE)
        assert (grown[: LARGE + 1] == 3).all()
        assert len(grown) <= 18 * LARGE
