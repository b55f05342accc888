"""From the words of a command line to an exit code.

0 is a release, an empty one too; 2 bad usage or bad input; 128 + n a signal that asked for the end
(130 is Ctrl-C); 1 any other failure. Every error is one line on stderr.
"""

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from dp_sips.booked import what_stays_booked
from dp_sips.cli.config import with_config
from dp_sips.cli.general import add_general, log_at
from dp_sips.cli.parser import COMMANDS, READS_DATA, configured, parse, top_parser
from dp_sips.cli.signals import (
    ignore_signals,
    quiet_at_signals,
    received_code,
    unwind_at_signals,
)
from dp_sips.cli.streams import ReaderGone, forgive_characters, leave, say, writing_stdout
from dp_sips.cli.summary import in_flags
from dp_sips.errors import DpSipsError, InputError, UnwiseWarning, UsageError, did_you_mean
from dp_sips.room import check_addresses, is_out_of_memory, out_of_memory
from dp_sips.temporaries import discard_all

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130

_LONG_NAMES: Final = re.compile(
    r"(?<![-'\w])"
    r"((?:selection_)?max_items|min_users|public_items|items_per_user|memory_limit|spill_folder)"
    r"(?!['\w])"
)
"""Parameters that are nothing but parameters, except where a column is called so."""

_SHORT_NAMES: Final = re.compile(
    r"(?:^|(?<=leave out ))"
    r"(epsilon|delta|rho|share|seed|users|rounds|ratio|buffer|threads|mechanism|nulls|item|ngrams|"
    r"delimiter|encoding|checkpoint)"
    r"(?= must | is missing| is for | names |$)"
)
"""Words that are parameters where an error begins with one, or says to leave one out."""

_BOTH: Final = re.compile(
    r'\b(?:(?:\w+=\S+ of )?dp_sips\.CsvFiles|types=\{.*?\}|format="\w+") \((--.*?)\)'
)
"""Advice that names the parameter, and then the flag."""

_PHRASES: Final = {
    "give either epsilon or rho, together with delta": (
        "give either --epsilon or --rho, together with --delta"
    ),
    "keys are given, and nothing is selected": "--keys is given, and nothing is selected",
    "types names ": "--type names ",
    "user and item are the same column": "--user and --item are the same column",
}
"""What the library says in words that no rule turns into flags."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default that of this process, and return its exit code."""
    if argv is not None:
        return _guarded(list(argv), lambda: None)
    quiet_at_signals()
    # Arrow is all that we use of PySpark's ways to Python.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    code = _guarded(sys.argv[1:], unwind_at_signals)
    ignore_signals()
    if code != DONE:
        discard_all()
        # Arrow's threads may still be reading, and Python aborts when it ends beneath them.
        leave(code)
    return code


def _guarded(argv: list[str], ready: Callable[[], None]) -> int:
    """Run one command; turn what it raises into a line on stderr and a code."""
    forgive_characters()
    try:
        code = _run(argv, ready)
        if sys.stdout is not None:
            with writing_stdout():  # argparse leaves its help unflushed
                pass
    except BaseException as error:
        known = _outcome(error)
        if known is None:
            raise
        code = known
    return code


def _outcome(error: BaseException) -> int | None:
    """Say what went wrong, and return the exit code; `None` for what nobody foresaw."""
    signalled = received_code()
    if signalled or isinstance(error, KeyboardInterrupt):
        # Whatever an interrupted import or library made of it, this is the cause.
        return _report("interrupted: nothing was written", signalled or INTERRUPTED, error)
    if isinstance(error, ReaderGone):
        return DONE
    if isinstance(error, DpSipsError):
        wrong = isinstance(error, UsageError | InputError)
        return _report(str(error), WRONG if wrong else FAILED, error)
    if is_out_of_memory(error):
        return _report(out_of_memory(), FAILED, error)
    if isinstance(error, OSError) and error.strerror:
        # What the system says; a library's own words may show anything.
        named = "" if error.filename is None else f"{error.filename}: "
        return _report(named + error.strerror, FAILED, error)
    return None


def _run(argv: list[str], ready: Callable[[], None]) -> int:
    name, *words = argv or [""]
    try:
        if name in COMMANDS:
            if name in READS_DATA:
                check_addresses()
            # One command's imports are nothing to another: a plan needs no Arrow.
            command = import_module(f"dp_sips.cli.{name}")
            parser = configured(name)
            add_general(parser)
            args = parse(parser, with_config(parser, words))
            log_at(args.log_level)
            # Not before: interrupted imports end in anything, and there is nothing to clean up yet.
            ready()
            with warnings.catch_warnings():
                warnings.filterwarnings("always", category=UnwiseWarning)
                warnings.showwarning = _warn
                return command.run(args) or DONE
        return _without_command(argv)
    except SystemExit as stop:  # argparse has shown the help or the version
        return int(stop.code or DONE)


def _without_command(argv: list[str]) -> int:
    """Show the help or the version, or say what is missing."""
    if not argv:
        raise UsageError(f"no command: give one of {', '.join(COMMANDS)}, or --help")
    if not argv[0].startswith("-"):
        raise UsageError(f"unknown command {argv[0]!r}: {did_you_mean(argv[0], COMMANDS)}")
    parse(top_parser(), argv)
    raise UsageError(f"the command comes first: dp-sips {next(iter(COMMANDS))} {argv[0]} …")


def _report(message: str, code: int, error: BaseException) -> int:
    said = _in_flags(" ".join(message.split()))
    booked = what_stays_booked(error)
    if booked is not None:
        said += f" {booked}" if said.endswith((".", "?")) else f". {booked}"
    say("dp-sips: error: " + said)
    return code


def _warn(  # noqa: PLR0917 (the signature that `warnings` has)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Show a warning in one line; one that is not ours as Python does."""
    if issubclass(category, UnwiseWarning):
        say("dp-sips: warning: " + _in_flags(str(message)))
    else:
        del file
        say(warnings.formatwarning(message, category, filename, lineno, line).rstrip())


def _in_flags(message: str) -> str:
    """Spell the library's advice as it is typed here."""
    message = re.sub(r"\b(delta|epsilon|rho)=(?=[\d.])", r"--\1 ", message)
    message = re.sub(r"\b((?:selection_)?max_items)=(?=\d)", r"\1 ", message)
    message = re.sub(r'\bnulls="(\w+)"', r"--nulls \1", message)
    message = re.sub(r"\b(other|insecure_test)=True", _flag, message)
    message = re.sub(_LONG_NAMES, _flag, message)
    message = re.sub(_SHORT_NAMES, _flag, message)
    message = re.sub(r"\b(engine|mechanism)='([\w-]+)'(?: or '([\w-]+)')?", _chosen, message)
    message = re.sub(_BOTH, r"\1", message)
    for words, ours in _PHRASES.items():
        message = message.replace(words, ours)
    return re.sub(r"\bitem=\[(.*?)\]", lambda found: _repeated("--item", found[1]), message)


def _repeated(flag: str, listed: str) -> str:
    """Turn 'a', 'b' into --item a --item b."""
    return " ".join(f"{flag} {value.strip()}" for value in listed.replace("'", "").split(","))


def _chosen(found: re.Match[str]) -> str:
    """Turn mechanism='auto' or 'mad2r' into --mechanism auto or mad2r."""
    name, first, *others = filter(None, found.groups())
    return " or ".join((f"--{name} {first}", *others))


def _flag(name: re.Match[str]) -> str:
    return in_flags(name[1])
