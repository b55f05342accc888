"""Arrays in files without names, and when the engine leaves memory for them."""

import os
import re
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.spilling import SpillingEngine

from dp_sips import DiskFullError, MemoryEngine, UsageError, select_partitions
from dp_sips.engines.memory import disk as disks
from dp_sips.engines.memory import spilling
from dp_sips.engines.memory.disk import Disk, InMemory
from dp_sips.engines.memory.spilling import Spill
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source

USERS = 3_000
ROWS = pa.table({"user": np.arange(20_000) % USERS, "item": np.arange(20_000) % 7})


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """Let no file of this process grow beyond this many bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def flags_of(array: Any) -> list[str]:
    """Return what the system knows of the memory of an array."""
    regions = Path("/proc/self/smaps").read_text().split("\n")
    inside = False
    for line in regions:
        if found := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= array.ctypes.data < int(found[2], 16)
        if inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise LookupError("no such memory")


class TestDisk:
    @pytest.mark.parametrize("shape", [0, 5, (0, 2), (3000, 2)])
    def test_arrays_are_zeros_that_can_be_written(self, tmp_path: Path, shape: Any) -> None:
        array = Disk(tmp_path).zeros(shape, np.uint64)
        assert array.shape == np.zeros(shape).shape
        assert array.dtype == np.dtype(np.uint64)
        assert not array.any()
        array[...] = 7
        assert (array == 7).all()

    def test_files_have_no_names_and_are_for_us_alone(self, tmp_path: Path) -> None:
        disk = Disk(tmp_path)
        kept = disk.zeros(100, np.uint8)
        with disk.file() as file:
            assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
            assert not list(tmp_path.iterdir())
        assert len(kept) == 100

    def test_what_is_forgotten_is_still_there(self, tmp_path: Path) -> None:
        disk = Disk(tmp_path)
        array = disk.zeros(100_000, np.uint64)
        array[:] = np.arange(100_000)
        disk.forget(array[10:90_000])
        assert (array == np.arange(100_000)).all()

    def test_the_system_does_not_read_ahead_of_what_is_visited_anywhere(
        self, tmp_path: Path
    ) -> None:
        disk = Disk(tmp_path)
        array = disk.zeros(1 << 20, np.uint8)
        array[5] = 7
        assert "rr" not in flags_of(array)
        disk.visit_anywhere(array)
        assert "rr" in flags_of(array)  # MADV_RANDOM
        assert array[5] == 7

    @pytest.mark.parametrize("arrays", [InMemory(), Disk(Path())])
    def test_memory_is_never_forgotten(self, arrays: Any) -> None:
        """The same call on plain memory would fill it with zeros."""
        array = np.arange(1 << 20)
        arrays.forget(array)
        assert (array == np.arange(1 << 20)).all()

    @pytest.mark.parametrize(
        ("size", "number", "reused"),
        [(100, 2, 2), (199, 2, 2), (201, 2, 1), (401, 2, 0), (70, 3, 3)],
    )
    def test_words_in_spare_memory(self, size: int, number: int, reused: int) -> None:
        spare = np.full(8 * 400, 7, dtype=np.uint8)
        arrays = InMemory(spare)
        some = arrays.in_memory(number, size, 0)
        assert [array.shape for array in some] == [(size,)] * number
        assert [np.shares_memory(array, spare) for array in some] == [
            n < reused for n in range(number)
        ]
        for place, array in enumerate(some):
            array[:] = place
        assert [set(array.tolist()) for array in some] == [{place} for place in range(number)]
        assert not any(np.shares_memory(array, spare) for array in arrays.in_memory(2, size, 0))

    @pytest.mark.parametrize("size", [0, 1, 49])
    def test_much_memory_is_not_kept_for_little(self, size: int) -> None:
        spare = np.full(8 * 400, 7, dtype=np.uint8)
        for array in InMemory(spare).in_memory(2, size, 0):
            assert not np.shares_memory(array, spare)

    def test_arrays_one_after_the_other(self, tmp_path: Path) -> None:
        with Disk(tmp_path).appender() as file:
            file.append(np.arange(3, dtype=np.uint8))
            file.append(np.arange(2, dtype=np.uint8))
            file.end(np.uint8)
            file.append(np.arange(6, dtype=np.uint64).reshape(3, 2)[::-1])
            file.end(np.uint64, 2)
            first, second = file.arrays()
        assert first.tolist() == [0, 1, 2, 0, 1]
        assert second.tolist() == [[4, 5], [2, 3], [0, 1]]

    def test_a_full_disk_is_a_clear_error(self, tmp_path: Path) -> None:
        disk = Disk(tmp_path)
        with small_files(1 << 16), pytest.raises(DiskFullError, match=r"full.*spill_folder"):
            disk.zeros(1 << 20, np.uint64)
        with (
            small_files(1 << 16),
            disk.appender() as file,
            pytest.raises(DiskFullError, match="nothing was released"),
        ):
            file.append(np.zeros(1 << 20))


class TestFolder:
    def test_memory_is_no_disk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(disks, "_kind_of", lambda _: "tmpfs")
        assert disks.spill_folder(None) == Path("/var/tmp")  # noqa: S108
        monkeypatch.setattr(disks, "_kind_of", lambda _: "ext4")
        assert disks.spill_folder(None) != Path("/var/tmp")  # noqa: S108

    def test_this_machine_knows_its_folders(self) -> None:
        assert disks._kind_of(Path("/proc")) == "proc"
        assert disks._kind_of(Path("/nowhere/at/all")) == disks._kind_of(Path("/"))

    def test_it_must_be_there(self, tmp_path: Path) -> None:
        with pytest.raises(
            UsageError, match=r"spill_folder must be .*, which does not exist: make"
        ):
            MemoryEngine(spill_folder=tmp_path / "nowhere")

    def test_it_is_tried(self, tmp_path: Path) -> None:
        """The system lets root write to /proc, where nobody can make a file."""
        with pytest.raises(UsageError, match=r"spill_folder must be .* written to, got /proc$"):
            MemoryEngine(spill_folder="/proc")
        with pytest.raises(UsageError, match="spill_folder must be a folder"):
            MemoryEngine(spill_folder="a\0b")
        nothing_like_it: Any = 5
        with pytest.raises(UsageError, match=r"spill_folder must be a folder.*, got 5$"):
            MemoryEngine(spill_folder=nothing_like_it)
        assert MemoryEngine(spill_folder=tmp_path).spill_folder == tmp_path
        assert not list(tmp_path.iterdir())


class TestLimit:
    def test_most_of_what_there_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spilling, "memory_limit", lambda: 1000)
        assert Spill.of(None, None).limit == 700
        assert Spill.of("2 MB", None).limit == 2_000_000
        assert Spill.of("1.5GiB", None).limit == 3 << 29
        assert Spill.of(" 8000000000 ", None).limit == 8_000_000_000

    def test_is_due_beyond_the_limit_or_what_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spilling, "memory_left", lambda: 50)
        due = [Spill(100, Disk(Path())).is_due(*at) for at in ((60, 40), (60, 41), (0, 51))]
        assert due == [False, True, True]

    def test_the_system_is_asked_again_as_needs_change(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []

        def left() -> int:
            asked.append(1)
            return 50

        monkeypatch.setattr(spilling, "memory_left", left)
        spill, much = Spill(1 << 40, Disk(Path())), 1 << 30
        assert not spill.is_due(0, 50)
        assert not spill.is_due(1 << 20, 51)
        assert len(asked) == 1
        assert spill.is_due(much, 51)
        assert spill.is_due(0, 51)  # a new run begins with little
        assert len(asked) == 3

    @pytest.mark.parametrize(
        "limit", [0, -1, 1.5, True, "8.5", "GB", "8 GBs", "-1 GB", "0 GB", "", "9" * 400 + " GB"]
    )
    def test_bad_limits(self, limit: Any) -> None:
        with pytest.raises(UsageError, match="memory_limit must be"):
            MemoryEngine(memory_limit=limit)

    @pytest.mark.parametrize("limit", [8, "8", 199_999_999, "199.9 MB"])
    def test_limits_that_are_too_small(self, limit: Any) -> None:
        with pytest.raises(UsageError, match=r'at least "200 MB", got .*: give a size such as "8'):
            MemoryEngine(memory_limit=limit)

    @pytest.mark.parametrize("limit", [200_000_000, "200000000", "200 MB", "0.2gb"])
    def test_the_least_limit(self, limit: Any) -> None:
        assert MemoryEngine(memory_limit=limit).memory_limit == limit

    @pytest.mark.parametrize("engine", ["reference", "spark", MemoryEngine()])
    def test_is_for_the_memory_engine(self, engine: Any) -> None:
        with pytest.raises(UsageError, match=r"memory_limit is for engine='memory'"):
            select_partitions(
                ROWS, user="user", item="item", epsilon=1, delta=1e-6, engine=engine, memory_limit=9
            )


class TestSelect:
    def test_the_spilling_engine_spills(self, tmp_path: Path) -> None:
        """Other tests rely on it."""
        source = open_source(ROWS, user="user", item="item", nulls="error")
        engine = SpillingEngine(spill_folder=tmp_path)
        with closing(
            engine.load(source, Bounds(5), Key.for_tests(0), Progress(show=False))
        ) as loaded:
            assert isinstance(loaded._arrays, Disk)

    def test_nothing_is_left(self, tmp_path: Path) -> None:
        released = select_partitions(
            ROWS,
            user="user",
            item="item",
            epsilon=1,
            delta=1e-6,
            mechanism="sips",
            engine=SpillingEngine(spill_folder=tmp_path),
        )
        assert sorted(released.items.column(0).to_pylist()) == list(range(7))
        assert not list(tmp_path.iterdir())

    def test_a_full_disk_ends_the_run(self, tmp_path: Path) -> None:
        engine = SpillingEngine(spill_folder=tmp_path)
        with small_files(1 << 10), pytest.raises(DiskFullError):
            select_partitions(ROWS, user="user", item="item", epsilon=1, delta=1e-6, engine=engine)
        assert not list(tmp_path.iterdir())
