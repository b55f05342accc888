"""dp-sips demo."""

from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv


def test_it_explains_the_outcome_within_82_columns(run: Any) -> None:
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    for words in ("generated", "--epsilon 2", "released", "held back", "weighted-gaussian"):
        assert words in ran.out
    assert max(map(len, ran.out.splitlines())) <= 82


def test_keep_leaves_the_data_and_the_release(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    ran = run("demo", "--keep", folder)
    assert str(folder) in ran.out
    data, released = pacsv.read_csv(folder / "searches.csv"), (folder / "released.csv")
    searched = set(data["search"].to_pylist())
    assert set(pacsv.read_csv(released)["search"].to_pylist()) < searched
    assert any("patient" in search for search in searched)
    assert "patient" not in released.read_text()


def test_files_are_not_replaced(run: Any, tmp_path: Path) -> None:
    (tmp_path / "released.csv").touch()
    ran = run("demo", "--keep", tmp_path)
    assert ran.refused("released.csv exists: --keep another folder")
    assert [path.name for path in tmp_path.iterdir()] == ["released.csv"]


def test_a_folder_that_cannot_be(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run("demo", "--keep", tmp_path / "file").refused("cannot be made a folder")
