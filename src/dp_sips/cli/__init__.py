"""The command line: each command is one call of the library."""

from dp_sips.cli.run import main

__all__ = ["main"]
