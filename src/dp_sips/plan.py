"""A plan: the rounds of a release, computed from public parameters before any data is touched.

A plan can be printed, explained, tested and audited. What it says about chances is exact for an
item held by n users with m items each, as long as none of their other items is found; where some
are found, the others' weight grows, and the chance with it.
"""

from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_sips.chances import binomial, chances
from dp_sips.errors import UsageError
from dp_sips.mechanisms import Cumulative, Mechanism, Single, Sips, SipsRule, find_mechanism
from dp_sips.parameters import refuse_unknown
from dp_sips.planners import terms_of
from dp_sips.privacy.budget import check_delta, check_epsilon, check_rho
from dp_sips.privacy.guarantee import Guarantee
from dp_sips.privacy.threshold import check_max_items
from dp_sips.rounds import AnyRound, RuleRound

_MOST_USERS = 1 << 34
# Below this, re-truncation beats evidence on some data sets (experiments/yields.py --max-items).
_FEW_ITEMS = 80


@dataclass(frozen=True)
class Plan:
    """The rounds that will run, and what they guarantee.

    Attributes:
        mechanism: What makes the rounds.
        max_items: Δ0, how many items of a user count.
        rounds: What will be done, in order: each a Round, an EvidenceRound or a RuleRound, all of
            one kind.
        guarantee: What the release spends, all rounds together.
        asked: The privacy parameters as they were given: epsilon or rho, and delta.
        cut: Whether users' sets are cut to max_items once, and not again in each round.
        counts: Whether it matters how often a user has an item.
    """

    mechanism: Mechanism
    max_items: int
    rounds: tuple[Any, ...]
    guarantee: Guarantee
    asked: dict[str, float]
    cut: bool = False
    counts: bool = False

    def release_probability(self, users: int, items_per_user: int = 1) -> float:
        """Return the chance of an item that `users` users hold, each with `items_per_user` items.

        Exact as long as none of the users' other items is found, a lower bound otherwise. Users
        with more than max_items drop the item with the chance that bounding gives it.
        """
        users = _whole("users", users, least=0)
        items = _whole("items_per_user", items_per_user, least=1)
        if items <= self.max_items:
            return float(self._chance(np.array([float(users)]), items)[0])
        holders, odds = binomial(users, self.max_items / items)
        return min(1.0, float(odds @ self._chance(holders, self.max_items)))

    def users_needed(self, probability: float, items_per_user: int = 1) -> int:
        """Return how many users must hold an item, for it to be released with this probability."""
        probability = _probability(probability)
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
        from dp_sips.explain import explain

        return explain(self)

    def table(self) -> list[dict[str, Any]]:
        """Return the rounds as rows of a table."""
        return [{"round": i, **_row(r)} for i, r in enumerate(self.rounds, start=1)]

    def _chance(self, holders: NDArray[np.float64], items: int) -> NDArray[np.float64]:
        """Return the chance of release for each number of holders; none, no chance."""
        return np.where(holders > 0, chances(self.rounds, holders, items), 0.0)


def _row(step: AnyRound) -> dict[str, Any]:
    if isinstance(step, RuleRound):
        return {**asdict(step.rule), "median": step.threshold}
    return {name: value for name, value in asdict(step).items() if name != "max_items"}


def plan(
    mechanism: str | Mechanism = "auto",
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    max_items: int | None = None,
    **unknown: Any,
) -> Plan:
    """Compute the rounds of a release from public parameters.

    Args:
        mechanism: "auto" for the recommended one, another name such as "sips", or a mechanism with
            its own parameters: `Sips(rounds=5)`.
        epsilon: ε of (ε, δ)-differential privacy; give this or `rho`.
        delta: δ, together with either.
        rho: ρ of the paper's δ-approximate ρ-zCDP.
        max_items: Δ0, how many items of a user count; each mechanism has its default.
        unknown: Refused, with the name that is meant where another library's is given.

    Guarantee: with `epsilon`, the release is (ε, δ)-DP by exact Gaussian accounting, calibrated so
    that the last threshold is lowest. With `rho`, it is δ-approximate ρ-zCDP.
    """
    refuse_unknown(unknown)
    asked = _asked(epsilon, delta, rho)
    given = None if max_items is None else check_max_items(max_items)
    chosen = _recommended(given, asked) if mechanism == "auto" else find_mechanism(mechanism)
    most = given or chosen.default_max_items
    terms = terms_of(chosen, most, asked)
    return Plan(
        chosen, most, terms.rounds, terms.guarantee, asked, cut=terms.cut, counts=terms.counts
    )


def _recommended(max_items: int | None, asked: dict[str, float]) -> Mechanism:
    """Return the mechanism that releases most, as far as public parameters can tell.

    Cumulative evidence cuts sets once. Where so few items of a user count that many are cut, it is
    better to look again in each round at what is left, as SIPS does. Where one counts, users are
    taken to have one each.
    """
    if max_items == 1 and "epsilon" in asked:
        return Single()
    if max_items is None or max_items >= _FEW_ITEMS:
        return Cumulative()
    return SipsRule() if "epsilon" in asked else Sips()


def _asked(epsilon: float | None, delta: float | None, rho: float | None) -> dict[str, float]:
    """Return the privacy parameters by name, checked."""
    if (epsilon is None) == (rho is None):
        given = "both" if epsilon is not None else "neither"
        raise UsageError(f"give either epsilon or rho, together with delta; got {given}")
    if delta is None:
        raise UsageError(
            "delta is missing: give one well below 1 / (number of users), such as 1e-6"
        )
    delta = check_delta(delta)
    if rho is not None:
        return {"rho": check_rho(rho), "delta": delta}
    assert epsilon is not None
    return {"epsilon": check_epsilon(epsilon), "delta": delta}


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise UsageError(f"probability must be in (0, 1), got {value!r}")
    return float(value)
