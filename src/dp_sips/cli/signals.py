"""Signals that ask a process to end: Ctrl-C (SIGINT), SIGTERM, and SIGHUP of a closed terminal.

Each of them unwinds the command as Ctrl-C does, so that temporaries and worker processes are
removed. Signals that the process was started to ignore, as SIGHUP is under nohup, stay ignored.
"""

import signal
from typing import Any, Final

_ENDING: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_SHELL_BASE: Final = 128
"""What a shell adds to the number of the signal that ended a command."""

_received: list[int] = []


def quiet_at_signals() -> None:
    """Let Ctrl-C end the process without a word, as the other signals do: nothing has begun."""
    _handle(signal.SIG_DFL, instead_of=(signal.default_int_handler,))


def unwind_at_signals() -> None:
    """Raise `KeyboardInterrupt` at each of the signals from now on."""
    _handle(_raise, instead_of=(signal.SIG_DFL,))


def end_at_signals() -> None:
    """Let signals end the process at once, as there is nothing to clean up."""
    _handle(signal.SIG_DFL, instead_of=(_raise,))


def ignore_signals() -> None:
    """Let nothing interrupt the cleaning up."""
    _handle(signal.SIG_IGN, instead_of=(_raise, signal.SIG_DFL))


def received_code() -> int | None:
    """Return the exit code for the first signal that came, if one did."""
    return _SHELL_BASE + _received[0] if _received else None


def _handle(handler: Any, instead_of: tuple[Any, ...]) -> None:
    for number in _ENDING:
        if signal.getsignal(number) in instead_of:
            signal.signal(number, handler)


def _raise(number: int, _: Any) -> None:
    _received.append(number)
    raise KeyboardInterrupt
