"""The notebooks run, and show what they say they show."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "experiments" / "notebooks.py"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def load_runner() -> Any:
    spec = importlib.util.spec_from_file_location("notebooks", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(path: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-W", "error", str(RUNNER), str(path), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_stored(path: Path) -> None:
    """In this process, whose releases are repeatable: a rare item would show, too."""
    runner, stored = load_runner(), json.loads(path.read_text("utf-8"))
    shown = runner.texts(runner.run_notebook(stored, path.name))
    assert shown == runner.texts(stored), f"run python {RUNNER.relative_to(ROOT)} {path.name}"


def test_stale_outputs_are_found(tmp_path: Path) -> None:
    cell = {
        "cell_type": "code", "execution_count": 1, "metadata": {}, "source": ["print(1 + 1)"],
        "outputs": [{"output_type": "stream", "name": "stdout", "text": ["3\n"]}],
    }  # fmt: skip
    path = tmp_path / "stale.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}), "utf-8")
    assert check(path).returncode == 1
    subprocess.run([sys.executable, RUNNER, path], check=True)
    assert check(path).returncode == 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored(path: Path) -> None:
    cells = [c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] for cell in cells if not re.search(r"=.*\Z", cell["source"][-1]))
