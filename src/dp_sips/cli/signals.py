"""Signals that ask a process to end: Ctrl-C (SIGINT), SIGTERM, and SIGHUP of a closed terminal.

Each of them unwinds the command as Ctrl-C does, so that temporaries and worker processes go. Signals
that the process was started to ignore, as SIGHUP is under nohup, stay ignored.
"""

import signal
from typing import Any, Final

_ENDING: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_SHELL_BASE: Final = 128
"""What a shell adds to the number of the signal that ended a command."""

_received: list[int] = []


def unwind_at_signals() -> None:
    """Raise `KeyboardInterrupt` at each of the signals from now on."""
    _handle(_raise)


def end_at_signals() -> None:
    """Let signals end the process at once: all that was to be written is complete."""
    _handle(signal.SIG_DFL, only=_raise)


def ignore_signals() -> None:
    """Let nothing interrupt the cleaning up."""
    _handle(signal.SIG_IGN, only=_raise)


def received_code() -> int | None:
    """Return the exit code for the first signal that came, if one did."""
    return _SHELL_BASE + _received[0] if _received else None


def _handle(handler: Any, only: Any = None) -> None:
    for number in _ENDING:
        current = signal.getsignal(number)
        if current is only or (only is None and current is not signal.SIG_IGN):
            signal.signal(number, handler)


def _raise(number: int, _: Any) -> None:
    _received.append(number)
    raise KeyboardInterrupt
