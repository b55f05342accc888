"""Progress: bars on stderr, when somebody is there to see them, and lines in the log.

Log records go to the logger "dp_sips", at the level INFO: which step begins and ends. They carry
nothing about the data, as logs are kept and passed on.
"""

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")
_LOG: Final = logging.getLogger("dp_sips")


class Progress:
    """Shows how far long work has come.

    Sensitive: a bar shows numbers of rows. It goes to the terminal of the person who holds the
    data, and never to a log, a file or the result.
    """

    def __init__(self, *, show: bool | None = None) -> None:
        # A process may have no stderr at all.
        self.show = sys.stderr is not None and (sys.stderr.isatty() if show is None else show)

    @contextmanager
    def bar(self, what: str, total: int | None, unit: str = "row") -> Iterator["Bar"]:
        """Show a bar while the block runs; advance it by calling what is yielded.

        Public: `what`, which is logged.
        """
        _LOG.info("%s: begin", what)
        with self._bar(what, total, unit) as bar:
            yield bar
        _LOG.info("%s: done", what)

    @contextmanager
    def unlogged(self, what: str, total: int, unit: str) -> Iterator["Bar"]:
        """Show a bar, and log nothing: for work that only some data asks for."""
        with self._bar(what, total, unit) as bar:
            yield bar

    @contextmanager
    def _bar(self, what: str, total: int | None, unit: str) -> Iterator["Bar"]:
        if not self.show:
            yield Bar(None)
            return
        from tqdm import tqdm

        with tqdm(
            total=total,
            desc=f"{what:<20}",
            unit=unit,
            unit_scale=True,
            leave=False,
            dynamic_ncols=True,
        ) as shown:
            yield Bar(shown)

    def steps(self, what: str, steps: Iterable[T], total: int) -> Iterator[T]:
        """Go through `steps` with a bar."""
        with self.bar(what, total, unit="step") as bar:
            for number, step in enumerate(steps, start=1):
                yield step
                bar(1)
                _LOG.info("%s: %d of %d done", what, number, total)


class Bar:
    """One bar; calling it with a number moves it on by that much."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown

    def __call__(self, done: int) -> None:
        """Move the bar on."""
        if self._shown is not None:
            self._shown.update(done)
