"""Flags of every command: --config and --log-level."""

import logging
from typing import Final

from dp_sips.cli.config import FLAG
from dp_sips.cli.parser import Parser
from dp_sips.errors import UsageError, did_you_mean

LEVELS: Final = ("debug", "info", "warning", "error")


def add_general(parser: Parser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("general")
    group.add_argument(
        FLAG, metavar="FILE", help="read flags from a TOML file, under their own names, and INPUT "
        "as input; the command line overrides them"
    )  # fmt: skip
    group.add_argument(
        "--log-level",
        default="warning",
        metavar="LEVEL",
        help=f"what to log to stderr: {', '.join(LEVELS)} (default: warning)",
    )


def log_at(level: str) -> None:
    """Send the library's log records from this level on to stderr."""
    if level.lower() not in LEVELS:
        raise UsageError(f"unknown log level {level!r}: {did_you_mean(level, LEVELS)}")
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s", force=True)
    logging.getLogger("dp_sips").setLevel(level.upper())
