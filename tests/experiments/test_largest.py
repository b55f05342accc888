"""The benchmark of the largest data set: what it keeps, shows, sees of a process, and resumes."""

import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ("largest", "largest_page", "watching", "measure", "contenders")


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Find the scripts, and leave no trace of names that others may have, too."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield
    for name in SCRIPTS:
        sys.modules.pop(name, None)


def run(page: Any, users: int, mechanism: str, released: int) -> Any:
    return page.Run(
        users, 63 * users, 200 * users, mechanism, 1.5, 2.5, 3 << 30, 2 << 30, 5, released
    )


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    page = import_module("largest_page")
    runs = [run(page, 800, "sips", 7), run(page, 80_000_000, "sips", 1_200_000)]
    assert page.read_runs(tmp_path) == []
    page.write_runs(tmp_path, runs)
    assert page.read_runs(tmp_path) == runs
    assert (tmp_path / "largest.svg").read_text().startswith("<?xml")
    small, large = (tmp_path / "largest.md").read_text().splitlines()[2:]
    assert small.endswith("| 7 |  |")
    assert large.endswith("| 1,200,000 | 1,137,467 |")


def test_files_without_names_are_seen() -> None:
    watching = import_module("watching")
    before = watching.unnamed_files()
    with tempfile.TemporaryFile() as file, tempfile.NamedTemporaryFile() as named:
        for sink in (file, named):
            sink.write(b"x" * 1_000_000)
            sink.flush()
        assert 1_000_000 <= watching.unnamed_files() - before < 1_900_000
    assert watching.unnamed_files() == before
    assert watching.memory("VmHWM") >= watching.memory("RssAnon") > 1_000_000
    assert watching.memory("VmHWM", process=0) == 0


def test_what_was_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    largest, page = import_module("largest"), import_module("largest_page")
    words = ["--out", str(tmp_path), "--users", "300", "--mechanisms", "sips", "weighted-gaussian"]
    monkeypatch.setattr(sys, "argv", ["largest.py", *words, "--resume"])
    monkeypatch.setattr(page, "draw", lambda *_: None)
    monkeypatch.setattr(largest, "measure", in_this_process)
    monkeypatch.setattr(largest.signal, "signal", lambda *_: None)
    page.write_runs(tmp_path, [run(page, 300, "sips", 7), run(page, 300, "auto", 8)])
    largest.main()
    done = page.read_runs(tmp_path)
    assert [r.mechanism for r in done] == ["sips", "auto", "generate", "weighted-gaussian"]
    assert done[-1].rows > 3000
    assert len(capsys.readouterr().out.splitlines()) == 2
    largest.main()
    assert page.read_runs(tmp_path) == done


def in_this_process(call: Any, watch: Any) -> Any:
    del watch
    return import_module("measure").Measured(1.0, 1.0, 1.0, call()())
