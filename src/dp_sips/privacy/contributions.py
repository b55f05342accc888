"""What an engine does for a round, as a protocol; README.md lists the duties that come with it.

A round (`mechanisms/`) says *what* is weighed and decided; an engine says *how*: over arrays, over
a cluster, or in plain Python. Callables that a round hands over work on batches of any size, in any
order, and are given everything that they need.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Protocol

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Blocks, Bools, Claims, Floats, Integers, Weights
from dp_sips.privacy.weights import HALF, UNIT_BITS

MOST: Final = 1 << 62
"""Sums of weights that users give by a `Split` stop here."""

Decide = Callable[[Blocks, Weights], Bools]
"""Verdicts for a column of items and their weights."""

Evidence = Floats
"""What earlier rounds have learnt about each item."""

DecideOnEvidence = Callable[[Blocks, Weights, Evidence], tuple[Evidence, Bools, Claims]]
"""New evidence, which items to release, and each item's claim: 0 if it is to be dropped."""

Split = Callable[[Integers, Integers], Weights]
"""What users give to each of their items: from the sizes of their sets and each item's signal."""

Measure = Callable[[Any], Integers]
"""A whole number for each user, from the sizes of their sets, or for each item, from its weight."""

Signal = Callable[[Weights, Evidence], Integers]
"""What users are told about each item: from its weights in an earlier pass, and its evidence."""


class Shares(Protocol):
    """A policy by which a user pays all of its items, in proportion to what they lack.

    `mechanisms.turns.Proportional` is one, and says what the attributes mean.
    """

    @property
    def power(self) -> int:
        """The norm."""

    @property
    def target(self) -> int:
        """What an item needs, in units."""

    @property
    def unit_bits(self) -> int:
        """A unit is 2^-unit_bits."""

    def payments(self, gaps: Sequence[int]) -> list[int]:
        """Return what a user pays to its items with these gaps."""


class Favourites(Protocol):
    """A policy by which a user backs one item; `mechanisms.turns.Favourite` is one."""

    @property
    def target(self) -> int:
        """What an item needs."""

    @property
    def by_row(self) -> bool:
        """Whether ties go to the first of a user's rows."""


class Contributions(Protocol):
    """The distinct pairs of users and items, as an engine holds them.

    Weights and verdicts are in whatever form the engine likes best; only the engine looks inside.

    Sensitive: everything except `released`.
    """

    def weigh(
        self,
        max_items: int,
        step_bits: int = UNIT_BITS,
        gamma: Fraction = HALF,
        min_users: int = 1,
    ) -> Any:
        """Return the weight of each item that is still in somebody's set.

        A user's first `max_items` in bounding order count; k of them get
        weight_table(max_items, step_bits, gamma)[k] each. Weights are `min_users.reduced`: the
        `min_users` − 1 largest of an item's contributions are left out.
        """

    def weigh_by_claim(self, step_bits: int, min_users: int = 1) -> Any:
        """Return the weight of each item in users' sets, which have been cut.

        Users give claimed_weight(claim, total, step_bits), `total` being the sum of their items'
        claims: what `decide_on_evidence` said last, WHOLE_CLAIM at first. Weights are reduced as
        those of `weigh`; items that are left without any are decided about, too.
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
        `weights` and evidence, or 0 where no signal is given. Sums stop at `MOST`.
        """

    def pay_shares(self, policy: Shares, max_items: int) -> Any:
        """Return what users pay to each item, one user after the other in the order of their turns.

        A user with more items pays to the first `max_items` in bounding order.
        """
        raise _no_turns(policy, max_items)

    def pay_favourites(self, policy: Favourites, max_items: int) -> Any:
        """Return what users pay to each item where each, in its turn, pays 1 to its favourite.

        That is the item below the target that the user has most often or, where the contributions
        were loaded with public counts, the item with the largest; ties are settled as
        `mechanisms.turns.Favourite` says.
        """
        raise _no_turns(policy, max_items)

    def settle(self, seats: int, spare: int, laps: int, max_items: int) -> Any:
        """Return the number of users who are seated at each item, in units of 2^-UNIT_BITS.

        A user asks its items in the order of `bounding.precedence`, `laps` times over, for one of
        their seats, then once for one of their spare seats; before that, users who are
        `bounding.loyal` ask their first item in bounding order for a seat and a spare seat.
        `mechanisms.matching` says who is seated. The first `max_items` in bounding order count.
        """

    def decide(self, weights: Any, decide: Decide) -> Any:
        """Return the verdict of `decide` on each item's block and weight."""

    def decide_on_evidence(self, weights: Any, decide: DecideOnEvidence) -> Any:
        """Let `decide` update each item's evidence (0 at first) and claim; return what to release.

        An item with a claim of 0 leaves the users' sets without being released.
        """

    def measure_users(self, measure: Measure) -> int:
        """Return the sum of `measure` over users, whose sets were cut once, by the sizes of these.

        Sensitive: the sum; a mechanism adds noise to it.
        """

    def measure_items(self, weights: Any, measure: Measure) -> int:
        """Return the sum of `measure` over the items that have weight.

        Sensitive: the sum; a mechanism adds noise to it.
        """

    def remove(self, verdicts: Any) -> None:
        """Move the items with a yes from the users' sets to the release."""

    def released(self) -> Any:
        """Return the items released so far as an Arrow table, in any order, without dictionaries.

        A dictionary would show in which order, or beside which others, the items were met.
        """

    def count(self, keys: Blocks, max_items: int, *, others: bool) -> tuple[Integers, int]:
        """Return how many users each of these items counts for, and how many users hold none.

        A user counts for the first `max_items` of the keys that are in the whole set, as it was
        loaded with `Bounds.whole`, in bounding order. Without `others`, no user holds none.

        Sensitive: all of it; a mechanism adds noise.
        """

    def fingerprint(self) -> int:
        """Return a keyed sum over the pairs, as they were loaded: other pairs, another sum.

        Sensitive: it goes with the key.
        """
        raise _not_saved()

    def snapshot(self) -> dict[str, Any]:
        """Return what the rounds so far have left, as arrays; items are named by their blocks.

        Sensitive: all of it.
        """
        raise _not_saved()

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Bring back what was left by rounds on the same pairs, with the same key."""
        del snapshot
        raise _not_saved()

    def close(self) -> None:
        """Free what is held outside of this object: threads, files, a cluster's cache."""
        return


def _not_saved() -> UsageError:
    return UsageError("this engine cannot save its rounds: choose engine='memory'")


def _no_turns(policy: Shares | Favourites, max_items: int) -> UsageError:
    del policy, max_items
    return UsageError("this engine cannot take one user after the other: choose engine='memory'")
