"""What every engine can do: load contributions, weigh items, get verdicts, remove what was found.

The duties that the privacy argument puts on an engine are in privacy/README.md. The engines agree
to the bit: the same key and the same data give the same weights and the same release.
"""

from typing import Any, ClassVar, Protocol

import pyarrow as pa

from dp_sips.privacy.adaptive import Signal, Split
from dp_sips.privacy.decide import Decide, DecideOnEvidence
from dp_sips.privacy.noise import Key
from dp_sips.privacy.policy import Liking, Policy
from dp_sips.privacy.weights import UNIT_BITS
from dp_sips.progress import Progress
from dp_sips.sources import Source


class Contributions(Protocol):
    """The distinct pairs of users and items, as an engine holds them.

    Sensitive: everything but `released`.
    """

    def weigh(self, max_items: int, step_bits: int = UNIT_BITS) -> Any:
        """Return the weight of each item that is still in somebody's set.

        A user's first `max_items` in bounding order count; k of them get
        weight_table(max_items, step_bits)[k] each.
        """

    def spread(
        self,
        split: Split,
        max_items: int,
        weights: Any = None,
        signal: Signal | None = None,
    ) -> Any:
        """Return the sum of what `split` lets users give to each item that is still in their sets.

        `split` is called for batches of whole users, with the numbers of their items that count
        (the first `max_items` in bounding order) and those items' signals: `signal` of the items'
        `weights` and evidence, or 0 where no signal is given. Sums stop at adaptive.MOST.
        """

    def decide(self, weights: Any, decide: Decide) -> Any:
        """Return the verdict of `decide` on each item's block and weight."""

    def decide_on_evidence(self, weights: Any, decide: DecideOnEvidence) -> tuple[Any, Any]:
        """Let `decide` add to each item's evidence; return what to release and what to drop.

        Evidence starts at zero and stays with the item from round to round.
        """

    def remove(self, verdicts: Any) -> None:
        """Move the items with a yes from the users' sets to the release."""

    def drop(self, verdicts: Any) -> None:
        """Take the items with a yes out of the users' sets; they are not released."""

    def released(self) -> pa.Table:
        """Return the items released so far, in no particular order, and no column as a dictionary.

        A dictionary would show in which order, or beside which others, the items were met.
        """


class Turns(Contributions, Protocol):
    """Contributions of an engine that can take one user after the other."""

    def fold(self, policy: Policy, max_items: int, liking: Liking | None = None) -> Any:
        """Return what users pay to each item, one after the other in the order of their turns.

        A user with more items pays to its first `max_items` in bounding order. It likes best the
        item that it has most often or, where `liking` is given, that with most of it; of several
        alike, what `Favourite` says.
        """


class Engine(Protocol):
    """A way to run a plan. Its options are about speed; none changes the release's distribution.

    Attributes:
        takes_turns: Whether it can take one user after the other: whether it loads `Turns`.
    """

    takes_turns: ClassVar[bool]

    def load(
        self,
        source: Source,
        max_items: int,
        key: Key,
        progress: Progress,
        *,
        cut: bool = False,
        counts: bool = False,
    ) -> Contributions:
        """Read a source whole: repeats dropped, users' items in bounding order.

        With `cut`, a user's first `max_items` are all that it keeps, for all rounds. With `counts`,
        it is known how often each pair occurred.
        """
