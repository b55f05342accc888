"""compare: mechanisms side by side, from public parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dp_sips import notebook
from dp_sips.errors import UsageError
from dp_sips.levers import SIZES
from dp_sips.mechanisms import Mechanism
from dp_sips.plan import Plan, plan
from dp_sips.plotting import draw_chances
from dp_sips.privacy.budget import Budget
from dp_sips.validation import check_whole

COMPARED: Final = (
    "matching", "cumulative", "sips-rule", "sips", "weighted-gaussian", "mad2r", "dpsu", "gw",
)  # fmt: skip
"""The mechanisms that anyone would choose between."""

WITH_RHO: Final = tuple(name for name in COMPARED if name != "sips-rule")
"""Those of them that take ρ."""

_CHANCE: Final = 0.95


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each of several plans needs; see `compare`.

    Attributes:
        plans: The plans by the names of their mechanisms.
    """

    plans: dict[str, Plan]

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row for each mechanism: users needed for a 95 % chance, by items that a user has.

        None stands where no number of users is enough, or where fewer items of a user count.
        """
        return [
            {"mechanism": name} | {f"{size} items": _needed(made, size) for size in SIZES}
            for name, made in self.plans.items()
        ]

    def plot(self, items_per_user: int = 10, ax: Any = None) -> Any:
        """Draw the chance of release against the number of users, a line for each mechanism."""
        size = check_whole("items_per_user", items_per_user)
        able = {name: (made, size) for name, made in self.plans.items() if _needed(made, size)}
        return draw_chances(able, ax)

    def __str__(self) -> str:
        head = ("mechanism", *(f"{size} items" for size in SIZES))
        body = [[_shown(value) for value in row.values()] for row in self.table]
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        return "\n".join(
            row[0].ljust(widths[0])
            + "".join(f"  {cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))
            for row in (head, *body)
        )

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.plans)}>"

    def _repr_html_(self) -> str:
        names = ("mechanism", *(f"{size} items" for size in SIZES))
        body = [["–" if v is None else v for v in row.values()] for row in self.table]
        words = "Users that an item needs for a 95 % chance, by how many items each of them has:"
        return notebook.paragraph(words) + notebook.table(names, body)


def compare(
    *mechanisms: str | Mechanism,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    budget: Budget | None = None,
    max_items: int | None = None,
) -> Comparison:
    """Put mechanisms side by side: how many users an item needs with each. No data is involved.

    These are needs in one plain case: all holders of an item have the same number of items, and
    nothing else is released. What comes out of real data depends on more; docs/yields.md shows it.

    Args:
        mechanisms: Names, or mechanisms with their own parameters; the usual ones if none is given.
        epsilon: As in `plan`.
        delta: As in `plan`.
        rho: As in `plan`.
        budget: As in `plan`.
        max_items: As in `plan`.
    """
    usual = COMPARED if rho is None and budget is None else WITH_RHO
    chosen: Sequence[str | Mechanism] = mechanisms or usual
    plans = [
        plan(m, epsilon=epsilon, delta=delta, rho=rho, budget=budget, max_items=max_items)
        for m in chosen
    ]
    return Comparison({_name(asked, made): made for asked, made in zip(chosen, plans, strict=True)})


def _name(asked: str | Mechanism, made: Plan) -> str:
    return asked if isinstance(asked, str) else f"{made.mechanism.name} {asked}"


def _needed(made: Plan, size: int) -> int | None:
    if size > made.max_items:
        return None
    try:
        return made.users_needed(_CHANCE, size)
    except UsageError:
        return None


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)
