"""dp-sips completion, with the shells that are here: bash always is."""

import shutil
import subprocess
from typing import Any

import pytest

from dp_sips.cli.completion import _VALUES
from dp_sips.cli.parser import COMMANDS
from dp_sips.formats import WRITERS


def completed(script: str, *words: str) -> set[str]:
    """Return what bash offers after these words, the last of which is being typed."""
    asked = f"""{script}
COMP_WORDS=({" ".join(f"'{word}'" for word in ("dp-sips", *words))})
COMP_CWORD={len(words)}
_dp_sips
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return set(ran.stdout.split())


@pytest.fixture
def script(run: Any) -> str:
    ran = run("completion", "bash")
    assert (ran.code, ran.err) == (0, "")
    return str(ran.out)


def test_bash_completes_commands(script: str) -> None:
    assert completed(script, "") == {*COMMANDS, "--help", "--version"}
    assert completed(script, "se") == {"select"}


def test_bash_completes_the_flags_of_a_command(script: str) -> None:
    assert completed(script, "select", "data.csv", "--max") == {"--max-items"}
    assert completed(script, "count", "--k") == {"--keys"}
    assert completed(script, "select", "--k") == set()


def test_bash_completes_names(script: str) -> None:
    assert completed(script, "select", "--mechanism", "mad") == {"mad", "mad2r"}
    assert completed(script, "select", "--nulls", "") == {"error", "drop", "group"}


def test_bash_leaves_files_to_itself(script: str) -> None:
    assert completed(script, "select", "da") == set()


def test_formats_are_those_that_can_be_written() -> None:
    assert set(_VALUES["--format"]) == set(WRITERS)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_every_command_and_flag(run: Any, shell: str) -> None:
    ran = run("completion", shell)
    assert ran.code == 0
    for word in (*COMMANDS, "max-items", "keys", "weighted-gaussian"):
        assert word in ran.out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=ran.out, text=True, check=False)
        assert checked.returncode == 0


def test_a_shell_must_be_named(run: Any) -> None:
    assert run("completion").refused("SHELL is missing", "bash", "zsh", "fish")
    assert run("completion", "bsh").refused("unknown shell 'bsh'", "did you mean 'bash'")
