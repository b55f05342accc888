"""Every example in the README and in docs/ runs, and prints what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from dp_sips.cli import main

ROOT = Path(__file__).parents[2]
# The examples of docs/scale.md need clusters that are not here.
PAGES = sorted(
    {ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")}
    - {ROOT / "docs" / "scale.md"}
)


def fenced(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"(?ms)^```(python|console|text)\n(.*?)^```", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, text in fenced(page):
        if kind == "text":
            assert capsys.readouterr().out == text
            continue
        capsys.readouterr()
        if kind == "python":
            exec(compile(text, page.name, "exec"), names)  # noqa: S102 (our own pages)
        else:
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "dp-sips"
                assert main(arguments) == 0, capsys.readouterr().err


def test_there_are_examples() -> None:
    assert sum(len(fenced(page)) for page in PAGES) >= 10
