"""What stands around the commands: help, version, unknown commands."""

from importlib.metadata import version
from typing import Any

import pytest

from dp_sips.cli.parser import COMMANDS


def test_version(run: Any) -> None:
    assert run("--version") == (0, f"dp-sips {version('dp-sips')}\n", "")


def test_help_names_every_command_and_exit_code(run: Any) -> None:
    ran = run("--help")
    assert ran.code == 0
    for word in (*COMMANDS, "130", "exit codes"):
        assert word in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(run: Any, command: str) -> None:
    ran = run(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "examples:" in ran.out
    assert f"dp-sips {command}" in ran.out.split("examples:")[1]


def test_no_command(run: Any) -> None:
    assert run().refused("no command", *COMMANDS)


def test_a_mistyped_command_is_guessed(run: Any) -> None:
    assert run("selct").refused("unknown command 'selct'", "did you mean 'select'")


def test_a_flag_before_the_command(run: Any) -> None:
    assert run("--quiet", "select").refused("--quiet")
