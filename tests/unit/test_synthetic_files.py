"""Synthetic data in many files: the same rows however they are divided, and no half of them."""

import errno
import math
import os
from pathlib import Path
from threading import active_count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips import UsageError, synthetic, synthetic_files
from dp_sips.progress import Progress
from dp_sips.synthetic_files import write_synthetic_files

QUIET = Progress(show=False)


def written(
    folder: Path, users: int, *, files: int = 1, seed: int = 0, threads: int | None = None
) -> pa.Table:
    folder.mkdir()
    write_synthetic_files(folder, users, seed, files, threads, progress=QUIET)
    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == [f"part-{n:05}.parquet" for n in range(files)]
    return pa.concat_tables([pq.read_table(path) for path in paths]).combine_chunks()


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make seeds and tables so small that files have many, and files begin within them."""
    monkeypatch.setattr(synthetic_files, "_USERS", 30)
    monkeypatch.setattr(synthetic, "_ROWS", 256)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(("files", "threads"), [(1, 2), (3, 1), (7, 2), (100, 3)])
def test_files_and_threads_do_not_change_the_data(tmp_path: Path, files: int, threads: int) -> None:
    whole = written(tmp_path / "whole", 100, threads=1)
    assert written(tmp_path / "parts", 100, files=files, threads=threads) == whole
    assert np.array_equal(np.unique(whole["user"]), np.arange(100))
    assert written(tmp_path / "other", 100, seed=1) != whole


@pytest.mark.usefixtures("_small")
def test_the_same_call_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / name, 100, files=4)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.usefixtures("_small")
def test_fewer_users_are_the_beginning_of_more(tmp_path: Path) -> None:
    more = written(tmp_path / "more", 200, files=3)
    fewer = written(tmp_path / "fewer", 95, files=2)
    assert more.slice(0, len(fewer)) == fewer


@pytest.mark.usefixtures("_small")
def test_files_have_equal_parts_of_the_users(tmp_path: Path) -> None:
    written(tmp_path / "d", 10, files=4)
    users = [
        np.unique(pq.read_table(path)["user"]).tolist()
        for path in sorted((tmp_path / "d").iterdir())
    ]
    assert users == [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9]]


def test_chunks_do_not_repeat_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic_files, "_USERS", 50)
    table = written(tmp_path / "d", 100)
    items, second = table["item"].to_pylist(), int(np.searchsorted(table["user"], 50))
    assert items[:50] != items[second : second + 50]


def test_set_sizes_are_pareto(tmp_path: Path) -> None:
    table = written(tmp_path / "d", 20_000)
    sizes = np.bincount(table["user"].to_numpy())
    assert sizes.min() == 10
    for size in (20, 100, 1000):
        expected = (10 / size) ** 1.16
        assert abs((sizes >= size).mean() - expected) < 5 * math.sqrt(expected / len(sizes))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 0, 1, None), r"users must be at least 1, got 0"),
        ((5, -1, 1, None), r"seed must not be negative, got -1"),
        ((5, 0, 0, None), r"files must be a whole number from 1 to 5, got 0"),
        ((5, 0, 6, None), r"files must be a whole number from 1 to 5, got 6"),
        ((10**6, 0, 10**6, None), r"files .* to 100000, got 1000000"),
        ((5, 0, 1, 0), r"threads must be .* at least 1, got 0"),
    ],
)
def test_impossible_numbers(numbers: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        write_synthetic_files(tmp_path, *numbers, progress=QUIET)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_failure_ends_all_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    threads = active_count()

    def fail(_: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(failure)):
        write_synthetic_files(tmp_path, 3000, 0, 100, 2, progress=QUIET)
    assert active_count() == threads
    assert len(list(tmp_path.iterdir())) < 100


@pytest.mark.usefixtures("_small")
def test_the_bar_counts_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr("dp_sips.progress.Bar.__call__", lambda _, done: counted.append(done))
    written(tmp_path / "d", 100, files=7, threads=2)
    assert sum(counted) == 100
