"""Output paths are checked before any data is read; failures leave nothing behind."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dp_sips.cli import select as command


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if data is read."""

    def read(*_: object, **__: object) -> None:
        raise AssertionError("data was read")

    monkeypatch.setattr(command, "select_partitions", read)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing/o.csv", ("there is no folder",)),
        ("data.parquet/o.csv", ("cannot be written", "there is no folder")),
        ("o.xls", ("no suffix that tells its format", ".csv")),
        ("o", ("no suffix that tells its format", ".csv")),
        ("o.parquet.gz", ("compressed already", ".gz")),
        ("n" * 300 + ".csv", ("cannot be written",)),
        ("folder.csv", ("is a folder",)),
    ],
)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_impossible_paths(select: Any, tmp_path: Path, name: str, words: Any, force: Any) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert select("-o", tmp_path / name, *force).refused(*words)
    assert {path.name for path in tmp_path.iterdir()} == {"data.parquet", "folder.csv"}


@pytest.mark.usefixtures("unread")
def test_an_existing_file_is_refused(select: Any, tmp_path: Path) -> None:
    (tmp_path / "o.csv").touch()
    assert select("-o", tmp_path / "o.csv").refused("exists", "--force")
    assert select("--certificate", tmp_path / "o.csv").refused("exists", "--force")


@pytest.mark.usefixtures("unread")
def test_the_input_is_never_the_output(select: Any, data: Path, tmp_path: Path) -> None:
    (tmp_path / "link.parquet").symlink_to(data)
    for path in (data, tmp_path / "link.parquet", tmp_path / "." / data.name):
        assert select("-o", path, "--force").refused("is an input file")
    assert select("--certificate", data, "--force").refused("is an input file")


@pytest.mark.usefixtures("unread")
def test_one_path_for_two_outputs(select: Any, tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    assert select("-o", path, "--certificate", path).refused("same file")


@pytest.mark.usefixtures("unread")
def test_devices_are_not_replaced(select: Any) -> None:
    assert select("-o", "/dev/null", "--format", "csv", "--force").refused("not a regular file")


@pytest.mark.usefixtures("unread")
def test_a_folder_without_permission(
    select: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests may run as root, whom no permission stops.
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    assert select("-o", tmp_path / "o.csv").refused("cannot be written: Permission denied")


@pytest.mark.usefixtures("unread")
def test_a_suffix_against_the_format(select: Any, tmp_path: Path) -> None:
    ran = select("-o", tmp_path / "o.parquet", "--format", "csv")
    assert ran.refused("suffix of parquet", "csv")


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_nothing_new_and_the_old_file(
    select: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "o.csv").write_text("old")
    monkeypatch.setattr(os, "fsync", full_disk)
    ran = select("-o", tmp_path / "o.csv", "--certificate", tmp_path / "c.json", "--force")
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "o.csv could not be written: No space left on device" in ran.err
    assert {path.name for path in tmp_path.iterdir()} == {"data.parquet", "o.csv"}
    assert (tmp_path / "o.csv").read_text() == "old"


def test_an_interrupt_while_writing_leaves_nothing(
    select: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "write_table", interrupt)
    ran = select("-o", tmp_path / "o.csv", "--certificate", tmp_path / "c.json")
    assert (ran.code, ran.err) == (130, "dp-sips: error: interrupted: nothing was written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


def test_out_of_memory_is_one_line(select: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(command, "select_partitions", exhaust)
    ran = select()
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "out of memory" in ran.err


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.EIO, os.strerror(errno.EIO), "data.parquet"), "data.parquet: Input/output"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "Too many open files"),
        (BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)), "Broken pipe"),
    ],
    ids=str,
)
def test_only_what_stdout_does_is_said_of_stdout(
    select: Any, monkeypatch: pytest.MonkeyPatch, error: OSError, line: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(command, "select_partitions", fail)
    ran = select()
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith(f"dp-sips: error: {line}")


def test_errors_that_the_system_did_not_raise_are_not_swallowed(
    select: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("as a library says it")

    monkeypatch.setattr(command, "select_partitions", fail)
    with pytest.raises(OSError, match="as a library says it"):
        select()
