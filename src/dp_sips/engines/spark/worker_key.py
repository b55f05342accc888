"""What workers are told of the run's key: enough to lay pairs out, and nothing about the noise."""

from dataclasses import dataclass
from typing import Self

from dp_sips.privacy.noise import Key, Purpose, Scrambler

_BOUNDING = Purpose.BOUNDING_USERS, Purpose.BOUNDING_ITEMS


@dataclass(frozen=True, repr=False)
class WorkerKey:
    """Derived secrets; those of the noise go to the workers of their own round only.

    Sensitive: it travels inside of pickled functions, and appears in no plan and no log.
    """

    words: dict[Purpose, int]
    long_users: Scrambler
    long_items: Scrambler

    @classmethod
    def of(cls, key: Key) -> Self:
        """Derive what workers need."""
        words = {purpose: key.word(purpose) for purpose in _BOUNDING}
        long_users, long_items = map(key.scrambler, (Purpose.LONG_USERS, Purpose.LONG_ITEMS))
        return cls(words, long_users, long_items)

    def word(self, purpose: Purpose) -> int:
        """Return a word of bounding."""
        return self.words[purpose]
