"""dp-sips generate."""

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
    ],
    ids=str,
)
def test_bad_usage(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, message: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.parquet").touch()
    assert run("generate", *words).refused(*message)
    assert [path.name for path in tmp_path.iterdir()] == ["old.parquet"]


def test_force(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    path.touch()
    assert run("generate", "--users", "5", "-o", path, "--force").code == 0
    assert path.stat().st_size
