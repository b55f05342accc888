"""A plan: the rounds of a release, computed from public parameters before any data is touched.

A plan can be printed, explained, tested and audited. What it says about chances is exact for an
item held by n users with m items each, as long as none of their other items is found; where some
are found, the others' weight grows, and the chance with it.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_sips.errors import UsageError
from dp_sips.mechanisms import Mechanism, find_mechanism
from dp_sips.parameters import refuse_unknown
from dp_sips.privacy.budget import Budget, calibrate, check_delta, check_epsilon, compose
from dp_sips.privacy.guarantee import Guarantee, sampler_loss
from dp_sips.privacy.threshold import check_max_items, sigma, threshold
from dp_sips.privacy.weights import UNIT, weight


@dataclass(frozen=True)
class Round:
    """One round: weigh, add noise, release what reaches the threshold.

    Attributes:
        rho: The round's part of ρ.
        delta: The round's part of δ.
        sigma: The standard deviation of its Gaussian noise, in units of a user's whole weight.
        threshold: The noisy weight from which an item is released.
        max_items: Δ0, how many items of a user count.
    """

    rho: float
    delta: float
    sigma: float
    threshold: float
    max_items: int


@dataclass(frozen=True)
class Plan:
    """The rounds that will run, and what they guarantee."""

    mechanism: Mechanism
    max_items: int
    rounds: tuple[Round, ...]
    asked: dict[str, float]
    """The privacy parameters as they were given: epsilon or rho, and delta."""

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the release spends, all rounds together."""
        spent = compose(Budget(r.rho, r.delta) for r in self.rounds)
        return Guarantee(spent.rho, spent.delta, sampler_loss(len(self.rounds), self.max_items))

    def release_probability(self, users: int, items_per_user: int = 1) -> float:
        """Return the chance of an item that `users` users hold, each with `items_per_user` items.

        Exact as long as none of the users' other items is found, a lower bound otherwise. Users
        with more than max_items drop the item with the chance that bounding gives it.
        """
        users = _whole("users", users, least=0)
        items = _whole("items_per_user", items_per_user, least=1)
        if items <= self.max_items:
            return float(self._chance(np.array([float(users)]), items)[0])
        present = self.max_items / items
        holders, odds = _binomial(users, present)
        return min(1.0, float(odds @ self._chance(holders, self.max_items)))

    def users_needed(self, probability: float, items_per_user: int = 1) -> int:
        """Return how many users must hold an item, for it to be released with this probability."""
        probability = _probability(probability)
        low, high = 0, 1
        while self.release_probability(high, items_per_user) < probability:
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
        from dp_sips.explain import explain

        return explain(self)

    def table(self) -> list[dict[str, Any]]:
        """Return the rounds as rows of a table."""
        names = ("rho", "delta", "sigma", "threshold")
        return [
            {"round": i, **{name: getattr(r, name) for name in names}}
            for i, r in enumerate(self.rounds, start=1)
        ]

    def _chance(self, holders: NDArray[np.float64], items: int) -> NDArray[np.float64]:
        """Return 1 − Π_i Φ((T_i − n·w)/σ_i) for each number n of holders; none, no chance."""
        from scipy.special import log_ndtr

        weights = holders * (weight(items) / UNIT)
        missed = sum(log_ndtr((r.threshold - weights) / r.sigma) for r in self.rounds)
        return np.where(holders > 0, -np.expm1(missed), 0.0)


def plan(
    mechanism: str | Mechanism = "sips",
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    max_items: int = 100,
    **unknown: Any,
) -> Plan:
    """Compute the rounds of a release from public parameters.

    Args:
        mechanism: A name, such as "sips", or a mechanism with its own parameters: `Sips(rounds=5)`.
        epsilon: ε of (ε, δ)-differential privacy; give this or `rho`.
        delta: δ, together with either.
        rho: ρ of the paper's δ-approximate ρ-zCDP.
        max_items: Δ0, how many items of a user count.
        unknown: Refused, with the name that is meant where another library's is given.

    Guarantee: with `epsilon`, the release is (ε, δ)-DP by the exact Gaussian curve, with δ split
    between noise and thresholds so that the last threshold is lowest. With `rho`, it is
    δ-approximate ρ-zCDP.
    """
    refuse_unknown(unknown)
    chosen, most = find_mechanism(mechanism), check_max_items(max_items)
    budget, asked = _budget(chosen, most, epsilon, delta, rho)
    rounds = tuple(
        Round(part.rho, part.delta, sigma(part), threshold(part, most), most)
        for part in budget.split(chosen.shares())
    )
    return Plan(chosen, most, rounds, asked)


def _budget(
    mechanism: Mechanism,
    max_items: int,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
) -> tuple[Budget, dict[str, float]]:
    if (epsilon is None) == (rho is None):
        given = "both" if epsilon is not None else "neither"
        raise UsageError(f"give either epsilon or rho, together with delta; got {given}")
    if delta is None:
        raise UsageError(
            "delta is missing: give one well below 1 / (number of users), such as 1e-6"
        )
    delta = check_delta(delta)
    if rho is not None:
        budget = Budget.from_rho(rho, delta)
        return budget, {"rho": budget.rho, "delta": budget.delta}
    assert epsilon is not None
    shares = mechanism.shares()
    epsilon = check_epsilon(epsilon)
    rest = epsilon - sampler_loss(len(shares), max_items)
    if rest <= 0:
        raise UsageError(f"epsilon is too small for max_items={max_items}, got {epsilon}")
    budget = calibrate(rest, delta, lambda b: threshold(b.split(shares)[-1], max_items))
    return budget, {"epsilon": epsilon, "delta": delta}


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise UsageError(f"probability must be in (0, 1), got {value!r}")
    return float(value)


def _binomial(trials: int, chance: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the likely values of a binomial and their probabilities; the rest is below 1e-15."""
    from scipy.special import gammaln

    mean = trials * chance
    reach = 9 * math.sqrt(mean * (1 - chance)) + 40
    values = np.arange(max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach)) + 1.0)
    logs = (
        gammaln(trials + 1.0)
        - gammaln(values + 1)
        - gammaln(trials - values + 1)
        + values * math.log(chance)
        + (trials - values) * math.log1p(-chance)
    )
    return values, np.exp(logs)
