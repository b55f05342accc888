"""When to look for repeats among scattered rows: all the time, or now and then if there are few."""

from typing import Final

_LOOK: Final = 1 << 19
"""Rows of one look; those of its first half may repeat rows that nobody has watched."""
_WORTH_IT: Final = 1 / 16
"""The least share of repeats for which it pays to look for them."""
_PAUSE: Final = 15
"""After a look that did not pay, up to this many times as many rows go unwatched."""


class Watch:
    """Is asked about batch after batch of rows, and told how many repeats were found.

    A pause is no longer than what was kept before it: repeats that begin in it cannot make memory
    more than about twice as full before they are noticed.
    """

    def __init__(self) -> None:
        self._kept, self._unwatched = 0, 0
        self._looked, self._judged, self._found = 0, 0, 0

    def is_on(self, rows: int) -> bool:
        """Return whether to look for repeats among the next rows."""
        self._kept += rows
        if self._unwatched <= 0:
            return True
        self._unwatched -= rows
        return False

    def note(self, rows: int, repeats: int) -> None:
        """Note how many of the rows were repeats."""
        self._kept -= repeats
        if 2 * self._looked >= _LOOK:
            self._judged += rows
            self._found += repeats
        self._looked += rows
        if self._looked < _LOOK:
            return
        self._looked = _LOOK // 2
        if self._found < _WORTH_IT * self._judged:
            self._unwatched = min(_PAUSE * _LOOK, self._kept)
            self._looked = 0
        self._judged = self._found = 0
