"""--config FILE: flags from a TOML file, under their own names. The command line overrides them.

input = "visits/*.csv"
user = "id"
item = ["city", "product"]
epsilon = 1.0
delta = 1e-6
quiet = true
"""

import argparse
import tomllib
from pathlib import Path
from typing import Any, Final

from dp_sips.cli.parser import Parser, joined
from dp_sips.errors import InputError, UsageError, did_you_mean

FLAG: Final = "--config"
_TYPED: Final = {"--help", FLAG}
"""What has a meaning on the command line only."""
_INPUT: Final = "input"
_BUDGETS: Final = {"--epsilon", "--rho"}


def with_config(parser: Parser, words: list[str]) -> list[str]:
    """Return the words of the command line, with those of the file that --config names."""
    own, file = _taken_out(words)
    if file is None:
        return words
    given = _overridden(parser, own)
    flags = _read(file)
    _refuse_tables(flags, file)
    places = [] if _names_inputs(parser, own) else _listed(flags.get(_INPUT, []))
    configured = [
        word
        for name, value in flags.items()
        if f"--{name}" not in given
        for word in _as_words(name, value, parser, file)
    ]
    return [*map(str, places), *own, *configured]


def _overridden(parser: Parser, words: list[str]) -> set[str]:
    """Return the flags that a file has no say in: those given, and ε or ρ where the other is."""
    given = {word.split("=")[0] for word in words}
    takes_both = "--threshold-delta" in parser.flags  # to convert one into the other
    return given if takes_both or given.isdisjoint(_BUDGETS) else given | _BUDGETS


def _taken_out(words: list[str]) -> tuple[list[str], str | None]:
    """Return the words without --config, and the file that it names."""
    own, files = [], []
    rest = iter(words)
    for word in rest:
        if word == FLAG:
            files.append(next(rest, ""))
        elif word.startswith(f"{FLAG}="):
            files.append(word.removeprefix(f"{FLAG}="))
        else:
            own.append(word)
    if len(files) > 1:
        raise UsageError("--config is given twice: name one file")
    if "" in files:
        raise UsageError("--config needs a FILE")
    return own, files[0] if files else None


def _names_inputs(parser: Parser, words: list[str]) -> bool:
    return bool(getattr(parser.parse_known_args(list(joined(words)))[0], _INPUT, None))


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not TOML: {error}") from error


def _refuse_tables(flags: dict[str, Any], file: str) -> None:
    for name, value in flags.items():
        if any(isinstance(one, dict) for one in _listed(value)):
            raise UsageError(
                f"{file} has a table {name!r}: flags stand at the top level of the file, as "
                f"epsilon = 1.0, without [{name}]"
            )


def _as_words(name: str, value: Any, parser: Parser, file: str) -> list[str]:
    """Return a flag as it would be typed."""
    if name == _INPUT:
        return []
    flag = f"--{name}"
    if flag in _TYPED:
        raise UsageError(f"{file} names {name!r}, which is for the command line alone: remove it")
    if flag not in parser.flags:
        known = [known[2:] for known in parser.flags if known not in _TYPED]
        raise UsageError(f"{file} names {name!r}: {did_you_mean(name, known)}")
    if _is_switch(parser.flags[flag]):
        if not isinstance(value, bool):
            raise UsageError(f"{file}: {name} is true or false, got {value!r}")
        return [flag] if value else []
    return [f"{flag}={one}" for one in _listed(value)]


def _is_switch(action: argparse.Action) -> bool:
    return action.nargs == 0


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
