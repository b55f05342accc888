"""What there is of memory, and what libraries say when it runs out."""

import errno
from pathlib import Path

import pyarrow as pa
import pytest

from dp_sips import room
from dp_sips.errors import InputError, OutOfMemoryError


def group(folder: Path, limit: str, used: int, cached: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\nactive_file 1\n")


def test_the_tightest_group_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tmp_path, "max", 0, 0)
    group(tmp_path / "outer", "5000", 3000, 99)
    group(tmp_path / "outer" / "inner", "9000", 100, 0)
    place = tmp_path / "outer" / "inner"
    monkeypatch.setattr(room, "_memberships", lambda: [("", place)])
    assert room.memory_limit() == 5000
    assert room.memory_left() == 5000 - 3000 + 100


def test_this_machine_says() -> None:
    limit, left = room.memory_limit(), room.memory_left()
    assert limit is not None
    assert left is not None
    assert 0 < left <= limit


def test_addresses_may_be_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = tmp_path / "overcommit_memory"
    monkeypatch.setattr(room, "_OVERCOMMIT", setting)
    monkeypatch.setattr(room, "_address_limit", lambda: None)
    assert not room.addresses_are_short()  # the system does not say
    setting.write_text("2\n")
    assert room.addresses_are_short()
    setting.write_text("0\n")
    assert not room.addresses_are_short()
    monkeypatch.setattr(room, "_address_limit", lambda: 10**9)
    assert room.addresses_are_short()


def test_room_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "memory_left", lambda: 100)
    room.check_room(100)
    with pytest.raises(OutOfMemoryError, match=r"out of memory \([\d.]+ GB are allowed here\)"):
        room.check_room(101)
    monkeypatch.setattr(room, "memory_left", lambda: None)
    room.check_room(1 << 60)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 9 failed"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("x.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        pa.ArrowException("Unknown error: Failed to launch worker thread"),
    ],
    ids=repr,
)
def test_the_many_ways_to_run_out(error: Exception) -> None:
    with pytest.raises(OutOfMemoryError), room.clear_about_memory():
        raise error


@pytest.mark.parametrize(
    "error",
    [ImportError("no"), OSError(errno.EIO, "no"), InputError("Cannot allocate memory is a value")],
    ids=repr,
)
def test_other_errors_stay(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, room.clear_about_memory():
        raise error
    assert caught.value is error
