"""What every engine can do: read, and load contributions for rounds to run on.

The duties that the privacy argument puts on an engine are in privacy/README.md. The engines agree
to the bit: the same key and the same data give the same weights and the same release.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import Source


@runtime_checkable
class Engine(Protocol):
    """A way to run a plan. Its options are about speed; none changes the release's distribution.

    Attributes:
        takes_turns: Whether it can take one user after the other: whether its contributions have
            `pay_shares` and `pay_favourites`.
        saves_rounds: Whether its contributions have `snapshot` and `restore`.
    """

    takes_turns: ClassVar[bool] = False
    saves_rounds: ClassVar[bool] = False

    def read(self, data: Any) -> Any:
        """Return what this engine reads in its own way as a table; other data as it is."""
        return data

    def load(self, source: Source, bounds: Bounds, key: Key, progress: Progress) -> Contributions:
        """Read a source whole: repeats dropped, users' items in bounding order."""
