"""Figures of plans, by Matplotlib: `pip install 'dp-sips[plot]'`.

Public: everything drawn here is computed from parameters; no data is touched.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Floats

_POINTS = 80
_NEARLY_SURE = 0.99


class Drawn(Protocol):
    """What a plan has to say."""

    def users_needed(self, probability: float, items_per_user: int = 1) -> int:
        """Return how many users must hold an item, for it to be released with this probability."""

    def release_probabilities(self, users: Floats, items_per_user: int) -> Floats:
        """Return the chance of release for each number of users."""


def draw_chances(lines: Mapping[str, tuple[Drawn, int]], ax: Any = None) -> Any:
    """Draw the chance of release against the number of users, and return Matplotlib's axes.

    Args:
        lines: A plan and a number of items per user, by what the legend calls them.
        ax: The axes to draw on; new ones unless given.
    """
    ax = new_axes() if ax is None else ax
    for label, (plan, items) in lines.items():
        most = plan.users_needed(_NEARLY_SURE, items)
        users = np.unique(np.round(np.geomspace(1, max(2, 1.2 * most), _POINTS)))
        ax.plot(users, plan.release_probabilities(users, items), label=label)
    ax.set(xscale="log", xlabel="users who hold the item", ylabel="chance of release")
    ax.set_ylim(0, 1.02)
    ax.grid(visible=True, alpha=0.3)
    ax.legend(frameon=False)
    return ax


def new_axes() -> Any:
    """Return the axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise UsageError("plots need Matplotlib: pip install 'dp-sips[plot]'") from error
    _, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    return ax
