"""JSON lines that nest too deep are refused before Arrow parses them.

Its parser calls itself for each level: 20,000 levels overflow the stack, which ends the process,
and far fewer take minutes, as each level costs more than the one before.
"""

import re
from typing import Final

import numpy as np

from dp_sips.errors import InputError

DEEPEST: Final = 64
_TEXT: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*+"')
_OPENING, _CASE, _NEWLINE = ord("{"), ord("{") ^ ord("["), ord("\n")


def check_nesting(lines: bytes, label: str) -> None:
    """Reject lines with more than `DEEPEST` brackets inside each other.

    A line with few opening brackets cannot nest deep; only the others are looked at one by one.
    """
    content = np.frombuffer(lines, np.uint8)
    openings = np.flatnonzero((content | _CASE) == _OPENING)
    if len(openings) <= DEEPEST:
        return
    ends = np.flatnonzero(content == _NEWLINE)
    owners = np.searchsorted(ends, openings)
    crowded = np.unique(owners[DEEPEST:][owners[DEEPEST:] == owners[:-DEEPEST]])
    edges = np.concatenate(([-1], ends, [len(content)]))
    for owner in crowded.tolist():
        if _depth(lines[edges[owner] + 1 : edges[owner + 1]]) > DEEPEST:
            raise InputError(
                f"{label} has a line that nests more than {DEEPEST} deep: users and items are "
                "plain values or lists, so leave such fields out"
            )


def _depth(line: bytes) -> int:
    """Return how deep brackets nest; those inside of texts do not count."""
    content = np.frombuffer(_TEXT.sub(b"", line), np.uint8) | _CASE
    steps = (content == _OPENING).astype(np.int64) - (content == ord("}"))
    return int(np.cumsum(steps).max(initial=0))
