"""A plan: the rounds of a release, computed from public parameters before any data is touched.

A plan can be printed, explained, tested and audited.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from dp_sips import notebook
from dp_sips.errors import UsageError
from dp_sips.levers import SIZES, levers
from dp_sips.mechanisms import Mechanism, find_mechanism, min_users_of, requiring
from dp_sips.mechanisms.auto import recommended
from dp_sips.mechanisms.base import Asked, Branch, Look, asked_for
from dp_sips.mechanisms.chances import binomial
from dp_sips.mechanisms.counting import selection_part
from dp_sips.mechanisms.min_users import check_min_users
from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import Budget
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.guarantee import Guarantee
from dp_sips.privacy.noise import Scrambler
from dp_sips.unwise import warn_of_budget
from dp_sips.validation import check_number, check_whole, refuse_unknown

_MOST_USERS: Final = 1 << 34


@dataclass(frozen=True, repr=False)
class Plan:
    """The rounds that will run, and what they guarantee.

    Attributes:
        mechanism: What makes the rounds.
        asked: The privacy parameters as they were given: ε or ρ, and δ.
        rounds: What will be done, in order. What a round has (noise, a threshold, a coin, a target)
            depends on the mechanism; `table()` shows all of it.
        guarantee: What the release spends, all rounds together.
        bounds: How users' sets are bounded.
        look: The private look at the data that decides which of `rounds` run; mostly None.
        chosen_by: The public numbers of the look that chose this plan, if one did.
        branch: The guarantee of what the look chose, by itself.
        share: The part of the budget that counts of users have; the rounds have the rest.
    """

    mechanism: Mechanism
    asked: Asked
    rounds: tuple[Any, ...]
    guarantee: Guarantee
    bounds: Bounds
    look: Look | None = None
    chosen_by: dict[str, Any] | None = None
    branch: Guarantee | None = None
    share: float | None = None

    @property
    def max_items(self) -> int:
        """Δ0, how many items of a user count."""
        return self.bounds.max_items

    @property
    def min_users(self) -> int:
        """How many users must hold an item for it to be released at all."""
        return min_users_of(self.mechanism)

    def after_look(self, contributions: Contributions, noise: Scrambler) -> "Plan":
        """Return the plan that a private look at the data chooses; without a look, this plan."""
        return (
            self
            if self.look is None
            else self._of(self.look, self.look.choose(contributions, noise))
        )

    def branches(self) -> "list[Plan]":
        """Return the plans among which a look at the data chooses; without a look, none."""
        return [] if self.look is None else [self._of(self.look, b) for b in self.look.branches]

    def _of(self, look: Look, branch: Branch) -> "Plan":
        """Return the plan of a branch."""
        design = branch.design
        return Plan(
            branch.mechanism,
            self.asked,
            design.rounds,
            self.guarantee,
            design.bounds,
            chosen_by={"name": self.mechanism.name, "epsilon": look.spent(branch)},
            branch=design.guarantee,
        )

    def release_probability(self, users: int, items_per_user: int = 1) -> float:
        """Return the chance of an item that `users` users hold, each with `items_per_user` items.

        Exact where rounds are independent of what others hold, as long as none of the users' other
        items is found (if some are, the weight of the rest grows, and the chance with it). For
        mechanisms in which users look at what others gave (dpsu, policy-laplace, gw, matching, mad,
        mad2r) it is the chance in a typical case: all holders have the same items, or only this one
        is popular. Of users with more than max_items, bounding lets only some count.
        """
        users = check_whole("users", users, least=0)
        items = check_whole("items_per_user", items_per_user)
        if items <= self.max_items:
            return float(self._chance(np.array([float(users)]), items)[0])
        holders, odds = binomial(users, self.max_items / items)
        return min(1.0, float(odds @ self._chance(holders, self.max_items)))

    def users_needed(self, probability: float, items_per_user: int = 1) -> int:
        """Return how many users must hold an item, for it to be released with this probability."""
        if not 0 < check_number("probability", probability) < 1:
            raise UsageError(f"probability must be in (0, 1), got {probability!r}")
        low, high = 0, 1
        while self.release_probability(high, items_per_user) < probability:
            if high >= _MOST_USERS:
                raise UsageError(
                    f"no number of users gives an item a chance of {probability:g}: "
                    "give a larger epsilon or rho, or a larger buffer"
                )
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self.release_probability(middle, items_per_user) < probability:
                low = middle
            else:
                high = middle
        return high

    def explain(self) -> str:
        """Say in plain words what will happen; nothing in it depends on data."""
        parts = (self._promise(), self.mechanism.words(self.rounds), self._least(), self._needs())
        return "\n\n".join(filter(None, parts))

    def table(self) -> list[dict[str, Any]]:
        """Return the rounds as rows of a table."""
        return [{"round": i, **r.row()} for i, r in enumerate(self.rounds, start=1)]

    def levers(self, spell: Callable[[str], str] = str) -> str:
        """Say how many users an item needs, and what other settings would change about it.

        Args:
            spell: How a parameter is called where this is read, if not by its name.
        """
        if not self.rounds:
            return self.mechanism.words(self.rounds)
        return levers(self, self.asked, self._with, spell)

    def _with(self, asked: Asked, min_users: int) -> "Plan":
        """Return the plan of the same mechanism with other privacy parameters and `min_users`."""
        part = asked if self.share is None else selection_part(asked, self.share)
        mechanism = self.mechanism
        if min_users != self.min_users:
            mechanism = replace(mechanism, min_users=min_users)  # type: ignore[type-var]
        new = mechanism.design(part, self.max_items)
        return Plan(mechanism, asked, new.rounds, new.guarantee, new.bounds, new.look)

    def release_probabilities(self, users: Floats, items_per_user: int) -> Floats:
        """Return `release_probability` for each of many numbers of users."""
        items = check_whole("items_per_user", items_per_user)
        if items <= self.max_items:
            return self._chance(np.asarray(users, float), items)
        return np.array([self.release_probability(round(n), items) for n in users])

    def plot(self, items_per_user: Sequence[int] = SIZES, ax: Any = None) -> Any:
        """Draw the chance of release against the number of users; return Matplotlib's axes.

        Args:
            items_per_user: A line is drawn for each; those above max_items are left out.
            ax: The axes to draw on; new ones unless given. Needs `pip install 'dp-sips[plot]'`.
        """
        from dp_sips.plotting import draw_chances

        sizes = [check_whole("items_per_user", size) for size in items_per_user]
        drawn = [size for size in sizes if size <= self.max_items]
        return draw_chances({f"{m} item{'s' * (m > 1)} per user": (self, m) for m in drawn}, ax)

    def __repr__(self) -> str:
        return f"<Plan {self.mechanism.name}: {self.asked}, max_items={self.max_items}>"

    def _repr_html_(self) -> str:
        sizes = [size for size in SIZES if size <= self.max_items]
        needs = [(m, self._needed(0.5, m), self._needed(0.95, m)) for m in sizes]
        words = f"{self.mechanism.name}: {self.asked}, up to {self.max_items:,} items of a user."
        names = ("items per user", "users for a 50 % chance", "users for 95 %")
        return notebook.paragraph(words) + notebook.table(names, needs)

    def _chance(self, holders: Floats, items: int) -> Floats:
        """Return the chance of release for each number of holders; without any, it is zero."""
        return np.where(holders > 0, self.mechanism.chances(self.rounds, holders, items), 0.0)

    def _promise(self) -> str:
        asked, spent = str(self.asked), str(self.guarantee)
        given = ", ".join(f"{name} = {value:g}" for name, value in asdict(self.asked).items())
        return "\n".join(
            (
                f"{self.mechanism.name} with {given}, at most {self.max_items} items of each user.",
                "Anyone who sees the released items can hardly tell whether any one user, with",
                "all of their items, was in the data. The release is",
                f"  {asked}, as asked; as spent:",
                *(f"  {part}" for part in spent.split("; ")),
            )
        )

    def _least(self) -> str:
        if self.min_users == 1:
            return ""
        m = self.min_users
        return (
            f"Nothing that fewer than {m:,} users hold is released, whatever the noise: of what\n"
            f"users give to an item, the {m - 1:,} largest parts do not count."
        )

    def _needs(self) -> str:
        sizes = [m for m in SIZES if m <= self.max_items]
        if self.max_items not in sizes and self.max_items < SIZES[-1]:
            sizes.append(self.max_items)
        about = "about" if self.look is None else "at most about"
        return "\n".join(
            f"With these settings an item needs {about} {self._needed(0.5, m)} users "
            f"(each holding {m} item{'s' * (m > 1)})\n"
            f"for a 50 % chance, {self._needed(0.95, m)} for 95 %."
            for m in sizes
        )

    def _needed(self, chance: float, items: int) -> str:
        try:
            return f"{self.users_needed(chance, items):,}"
        except UsageError:
            return "more than 2³⁴"


def plan(
    mechanism: str | Mechanism = "auto",
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    budget: Budget | None = None,
    max_items: int | None = None,
    items_per_user: float | None = None,
    min_users: int = 1,
    **unknown: Any,
) -> Plan:
    """Compute the rounds of a release from public parameters.

    Args:
        mechanism: "auto" for the recommended one, another name such as "sips", or a mechanism with
            its own parameters: `Sips(rounds=5)`.
        epsilon: ε of (ε, δ)-differential privacy; give this or `rho`.
        delta: δ, together with either.
        rho: ρ of the paper's δ-approximate ρ-zCDP.
        budget: ρ and δ as a `Budget`, in place of numbers.
        max_items: Δ0, how many items of a user count; each mechanism has its default.
        items_per_user: Roughly how many items a person has, if that is public: "auto" then needs no
            look at the data. It must not come from the data that is protected.
        min_users: How many users must hold an item for it to be released at all.
        unknown: Refused, with the name that is meant where another library's is given.

    Guarantee: with `epsilon`, a release by this plan is (ε, δ)-DP; with `rho`, it is δ-approximate
    ρ-zCDP. The mechanism's file has the proof.
    """
    refuse_unknown(unknown)
    asked = asked_for(epsilon, delta, rho, budget)
    warn_of_budget(asked)
    return planned(mechanism, asked, max_items, items_per_user, min_users)


def planned(
    mechanism: str | Mechanism,
    asked: Asked,
    max_items: int | None,
    items_per_user: float | None,
    min_users: int = 1,
) -> Plan:
    """Return a plan, as `plan` does, without its warnings."""
    most = None if max_items is None else check_whole("max_items", max_items)
    if mechanism == "auto":
        chosen, design = recommended(asked, most, items_per_user, check_min_users(min_users))
    elif items_per_user is not None:
        raise UsageError("items_per_user is a hint for mechanism='auto': leave it out")
    else:
        chosen = requiring(find_mechanism(mechanism), check_min_users(min_users))
        design = chosen.design(asked, most or chosen.default_max_items)
    spent = asked.about(design.guarantee)
    return Plan(chosen, asked, design.rounds, spent, design.bounds, design.look)
