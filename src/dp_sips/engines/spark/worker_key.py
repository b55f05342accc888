"""What workers are told of the run's key: enough to lay pairs out, and nothing about the noise."""

from dataclasses import dataclass
from typing import Self, cast

from dp_sips.privacy.noise import Key, Scrambler

_BOUNDING = "bounding users", "bounding items"


@dataclass(frozen=True)
class _Words:
    """The words of a key that belong to bounding."""

    known: dict[str, int]

    def word(self, purpose: str) -> int:
        return self.known[purpose]

    def __repr__(self) -> str:
        return "_Words()"


@dataclass(frozen=True, repr=False)
class WorkerKey:
    """Derived secrets; those of the noise go to the workers of their own round only.

    Sensitive: it travels inside of pickled functions, and appears in no plan and no log.
    """

    words: _Words
    long_users: Scrambler
    long_items: Scrambler

    @classmethod
    def of(cls, key: Key) -> Self:
        """Derive what workers need."""
        words = _Words({purpose: key.word(purpose) for purpose in _BOUNDING})
        return cls(words, key.scrambler("long users"), key.scrambler("long items"))

    @property
    def bounding(self) -> Key:
        """Stand in for the key where `privacy.bounding` asks it for its words."""
        return cast("Key", self.words)
