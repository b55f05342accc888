"""dp-sips generate."""

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest


def test_it_writes_the_papers_data(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    ran = run("generate", "--users", "100", "-o", path)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"Wrote the data of 100 generated users to {path}.\n"
    table = pq.read_table(path)
    assert set(table["user"].to_pylist()) == set(range(100))
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


def test_a_seed_decides_the_content(run: Any, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        path = tmp_path / f"{name}.parquet"
        assert run("generate", "--users", 50, "--seed", seed, "-o", path, "--quiet") == (0, "", "")
    first, again, other = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first == again != other


def test_what_was_generated_can_be_selected_from(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    run("generate", "--users", "3000", "-o", path)
    flags = ("--user", "user", "--item", "item", "--epsilon", "3", "--delta", "1e-5")
    assert run("select", path, *flags).out.splitlines()[:3] == ["item", "1", "2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "s.parquet"), ("--users N is missing",)),
        (("--users", "5"), ("-o FILE.parquet is missing",)),
        (("--users", "0", "-o", "s.parquet"), ("users must be at least 1", "got 0")),
        (("--users", "1e6", "-o", "s.parquet"), ("--users", "'1e6'")),
        (("--users", "5", "--seed", "-1", "-o", "s.parquet"), ("seed", "got -1")),
        (("--users", "5", "-o", "s.csv"), (".parquet", "s.csv")),
        (("--users", "5", "-o", "s"), ("no suffix",)),
        (("--users", "5", "-o", "missing/s.parquet"), ("there is no folder",)),
        (("--users", "5", "-o", "old.parquet"), ("exists", "--force")),
        (("--users", "5", "-o", "folder"), ("is a folder", "--files")),
        (("--users", "5", "--threads", "2", "-o", "s.parquet"), ("--threads", "--files N")),
        (("--users", "5", "--files", "2", "-o", "folder"), ("exists", "--force")),
        (("--users", "5", "--files", "2", "-o", "s.parquet"), ("names a folder", "s.parquet")),
        (("--users", "5", "--files", "2", "-o", "missing/s"), ("there is no folder",)),
        (("--users", "5", "--files", "0", "-o", "s"), ("files", "from 1 to 5", "got 0")),
        (("--users", "5", "--files", "6", "-o", "s"), ("files", "from 1 to 5", "got 6")),
        (("--users", "5", "--files", "2", "--threads", "0", "-o", "s"), ("threads", "got 0")),
        (("--users", "0", "--files", "1", "-o", "s"), ("users must be at least 1", "got 0")),
        (("--users", "5", "--files", "1", "--seed", "-1", "-o", "s"), ("seed", "got -1")),
    ],
    ids=str,
)
def test_bad_usage(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, message: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.parquet").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "part-00000.parquet").touch()
    assert run("generate", *words).refused(*message)
    assert {path.name for path in tmp_path.iterdir()} == {"old.parquet", "folder"}


def test_force(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    path.touch()
    assert run("generate", "--users", "5", "-o", path, "--force").code == 0
    assert path.stat().st_size


def test_many_files(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    ran = run("generate", "--users", "1000", "--files", "3", "--threads", "2", "-o", folder)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"Wrote the data of 1,000 generated users to {folder}, in 3 files.\n"
    assert sorted(path.name for path in folder.iterdir()) == [
        f"part-0000{number}.parquet" for number in range(3)
    ]
    assert set(pq.read_table(folder)["user"].to_pylist()) == set(range(1000))
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_a_folder_of_files_can_be_selected_from(run: Any, tmp_path: Path) -> None:
    run("generate", "--users", "3000", "--files", "4", "-o", tmp_path / "s")
    flags = ("--user", "user", "--item", "item", "--epsilon", "3", "--delta", "1e-5")
    assert run("select", tmp_path / "s", *flags).out.splitlines()[:3] == ["item", "1", "2"]


def test_force_replaces_a_folder_of_its_own_files(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    assert run("generate", "--users", "9", "--files", "5", "-o", folder).code == 0
    assert run("generate", "--users", "9", "--files", "2", "-o", folder, "--force").code == 0
    assert len(list(folder.iterdir())) == 2
    (folder / "thesis.tex").touch()
    ran = run("generate", "--users", "9", "--files", "2", "-o", folder, "--force")
    assert ran.refused("holds other files", "name another folder")
    assert len(list(folder.iterdir())) == 3


def test_a_full_disk_leaves_nothing(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    ran = run("generate", "--users", "9", "--files", "3", "-o", tmp_path / "s")
    assert ran.code == 1
    assert ran.err == (
        f"dp-sips: error: {tmp_path / 's'} could not be written: No space left on device\n"
    )
    assert list(tmp_path.iterdir()) == []
