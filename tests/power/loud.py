"""A mechanism that breaks its promise, for audits to find."""

from dataclasses import dataclass, replace
from typing import Any

from dp_sips import WeightedGaussian
from dp_sips.mechanisms.base import Asked, Design


@dataclass(frozen=True)
class Loud(WeightedGaussian):
    """A threshold that is too low by a user's whole weight."""

    def design(self, asked: Asked, max_items: int) -> Design:
        made = super().design(asked, max_items)
        rounds: tuple[Any, ...] = made.rounds
        return replace(made, rounds=tuple(replace(r, threshold=r.threshold - 1) for r in rounds))
