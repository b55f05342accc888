"""The command `dp-sips`, before the package and NumPy are imported."""

import signal
import sys
from contextlib import suppress
from typing import Final

_ADDRESSES: Final = 1 << 28
"""Bytes of address space below which NumPy cannot be imported, and may end the process."""


def main() -> int:
    """Run the command; until it can clean up after itself, Ctrl-C ends it without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _address_limit() < _ADDRESSES:
        sys.stderr.write("dp-sips: error: the limit on address space (ulimit -v) is too low\n")
        return 1
    from dp_sips.cli import main as run

    return run()


def _address_limit() -> float:
    with suppress(ImportError):  # not on Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            return limit
    return float("inf")
