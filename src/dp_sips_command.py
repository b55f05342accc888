"""The command `dp-sips`, before the package and NumPy are imported."""

import signal
import sys


def main() -> int:
    """Run the command; until it can clean up after itself, Ctrl-C ends it without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from dp_sips.cli import main as run
    except (ImportError, MemoryError) as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        # A library that is there and cannot be loaded: there is not enough memory for it.
        sys.stderr.write("dp-sips: error: out of memory: raise the limit (ulimit -v)\n")
        return 1
    return run()
