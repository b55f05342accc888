"""Parsers whose errors are one line, and know the flags of other libraries."""

import argparse
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from typing import Final, NoReturn

from dp_sips.errors import OutOfMemoryError, UsageError, did_you_mean
from dp_sips.room import check_addresses
from dp_sips.validation import FOREIGN

COMMANDS: Final = {
    "select": "release the items of a data set under differential privacy",
    "count": "release items and about how many users hold each",
    "plan": "say beforehand what a release will do, without any data",
    "explore": "move ε, δ and more on a page, and see what an item needs",
    "report": "make a page about a release, for the person who signs off",
    "ledger": "one budget for many releases: make a ledger, or show what is left",
    "mechanisms": "list the mechanisms, and what each is good for",
    "audit": "check that this build keeps its promises, and how tight they are",
    "convert": "between (ρ, δ) of zCDP and (ε, δ) of differential privacy",
    "tokenize": "turn texts into words or n-grams, a row for each",
    "generate": "write the paper's synthetic data, at any size",
    "demo": "select from a small generated data set, and explain the outcome",
    "completion": "print what bash, zsh or fish need to complete these commands",
}

READS_DATA: Final = (
    "select", "count", "audit", "ledger", "report", "tokenize", "generate", "demo", "completion",
)  # fmt: skip
"""Commands that need Arrow, and more memory than a plan."""

_EXIT_CODES: Final = """\
exit codes:
  0    done; an empty release is one, too
  2    bad usage or bad input: nothing was written
  1    another failure, such as a full disk: nothing half-written is left; of an audit:
       a promise is broken
  130  interrupted (Ctrl-C; 143 by SIGTERM, 129 by SIGHUP): nothing was written"""


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, and takes no abbreviations: --eps is another's name."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print with the usage before it."""
        raise UsageError(f"{message} ({self.prog} --help explains)")

    @property
    def flags(self) -> dict[str, argparse.Action]:
        """The flags that this parser knows, such as --user."""
        return {flag: act for flag, act in self._option_string_actions.items() if "--" in flag}

    @property
    def positional(self) -> list[str]:
        """The names of what is given without a flag, such as INPUT."""
        return [str(action.metavar) for action in self._get_positional_actions()]


def top_parser() -> Parser:
    """Return the parser of what stands before a command: --help and --version."""
    parser = Parser("dp-sips", "Which groups may I publish? Differentially private selection.")
    parser.usage = "dp-sips COMMAND …"
    listed = "\n".join(f"  {name:<12}{summary}" for name, summary in COMMANDS.items())
    parser.epilog = (
        f"commands:\n{listed}\n\ndp-sips COMMAND --help explains one, with examples; "
        f"dp-sips demo is a good start.\n\n{_EXIT_CODES}"
    )
    parser.add_argument("--version", action="version", version=f"dp-sips {version('dp-sips')}")
    return parser


def command_parser(name: str) -> Parser:
    """Return the parser of a command, still without its flags."""
    return Parser(f"dp-sips {name}", f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.")


def configured(name: str) -> Parser:
    """Return the parser of a command, with its own flags."""
    parser = command_parser(name)
    import_module(f"dp_sips.cli.{name}").configure(parser)
    return parser


def parse(parser: Parser, words: list[str]) -> argparse.Namespace:
    """Parse the words after a command; of an unknown flag, say which one is meant."""
    typed = list(joined(words))
    args, unknown = parser.parse_known_args(typed)
    for word in unknown:
        if word.startswith("-"):
            raise UsageError(_unknown_flag(word.split("=")[0], parser))
    if unknown:
        raise UsageError(_unexpected(unknown[0], typed, parser))
    return args


def _unexpected(word: str, words: list[str], parser: Parser) -> str:
    """Say what to do about a word that no flag takes: repeat the flag before it, if that helps."""
    before = words[: len(words) - 1 - words[::-1].index(word)]
    flag = next((earlier for earlier in reversed(before) if earlier.startswith("-")), "")
    action = parser.flags.get(flag)
    if action is not None and before[-1] != flag and type(action).__name__ == "_AppendAction":
        values = [*before[before.index(flag) + 1 :], word]
        repeated = " ".join(f"{flag} {value}" for value in values if not value.startswith("-"))
        return f"unexpected {word!r}: {flag} takes one {action.metavar}; repeat it, as {repeated}"
    return f"unexpected {word!r}: give such words together, before the flags"


def joined(words: list[str]) -> Iterator[str]:
    """Write a flag and a negative number as one word: argparse takes -1e-5 for a flag."""
    done = False
    for word, following in pairwise([*words, ""]):
        if done:
            done = False
        elif word.startswith("--") and "=" not in word and _is_negative(following):
            done = True
            yield f"{word}={following}"
        else:
            yield word


def _is_negative(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return word.startswith("-")


def _unknown_flag(flag: str, parser: Parser) -> str:
    name = flag.lstrip("-")
    if name.upper() in parser.positional:
        return f"unknown flag {flag}: {name.upper()} is given without a flag, before the others"
    meant = FOREIGN.get(name.replace("-", "_"), "")
    # The library says mechanism=Sips(rounds=…) and types= where the command line has --rounds
    # and, once for each column, --type.
    ours = "--" + re.sub(r".*\((\w+)=.*", r"\1", meant).replace("_", "-")
    for known in (ours, ours.removesuffix("s")):
        if known in parser.flags:
            return f"unknown flag {flag}: here it is called {known}"
    hint = _near(flag, parser)
    if owners := _owners(flag):
        fix = hint or "leave it out"
        return f"{flag} is a flag of {', '.join(owners)}, not of {parser.prog}: {fix}"
    return f"unknown flag {flag}: {hint or f'{parser.prog} --help lists all'}"


def _near(flag: str, parser: Parser) -> str:
    """Offer the flags that are spelled like this one, or else begin with it: of -e1, with --e."""
    hint = did_you_mean(flag, parser.flags)
    if hint.startswith("did"):
        return hint
    begin = flag if flag.startswith("--") else f"-{flag[:2]}"
    known = parser.flags if begin.strip("-") else ()
    begun = [repr(name) for name in known if name.startswith(begin)]
    return f"did you mean {' or '.join(begun)}?" if begun else ""


def _owners(flag: str) -> list[str]:
    """Return the commands that have a flag."""
    with suppress(OutOfMemoryError):  # some of them need Arrow, and Arrow needs room
        check_addresses()
        return [command for command in COMMANDS if flag in configured(command).flags]
    return []
