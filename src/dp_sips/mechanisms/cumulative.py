"""Cumulative evidence: SIPS that forgets nothing, and gives up on the hopeless.

Each round adds its noisy weights to what earlier rounds learnt about an item, so that the whole
budget speaks for every borderline item. Items whose evidence is hopeless leave the users' sets
without being released, and their weight moves to items that still have a chance. Users' sets are
cut to max_items once, for all rounds.

    for round l = 1, …, I, with shares f_l of the budget, F_l = f_1 + … + f_l, σ_l = 1/√(2ρ f_l):
        weight_l(u) ← Σ 1/√k over the users that have u among their k active items
        evidence(u) ← evidence(u) + f_l (weight_l(u) + N(0, σ_l²))
        release u where evidence(u)/F_l ≥ T_l;  drop u where it is below z_l/√(2ρ F_l)

Guarantee: (ε, δ)-DP, or δ-approximate ρ-zCDP, by the theorem in `evidence.py`. This mechanism is
not the paper's.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import (
    Asked,
    Design,
    EpsilonDelta,
    RhoDelta,
    check_few_items,
    table_of_rounds,
)
from dp_sips.mechanisms.evidence import (
    STEP_BITS,
    Schedule,
    calibrate_evidence,
    calibrate_evidence_rho,
    drop_levels,
    joint_bound,
    lattice_cost,
)
from dp_sips.mechanisms.weighted_gaussian import NOISY_ROUNDS
from dp_sips.privacy.arrays import Blocks, Bools, Floats, Weights
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import LEAST_EPSILON, Accounting, rounded_up
from dp_sips.privacy.contributions import Contributions, Evidence
from dp_sips.privacy.guarantee import Guarantee, SamplerCost
from dp_sips.privacy.noise import Scrambler, gaussian
from dp_sips.privacy.search import boundary
from dp_sips.privacy.weights import UNIT, weight
from dp_sips.validation import check_finite, check_positive, check_whole

# Rounds further apart than a factor of e²⁵ are nothing beside each other.
_LARGEST_GROWTH: Final = 25
# No ε that anyone asks for is above this.
_LARGEST_EPSILON: Final = 10_000.0
# Of a long list of weights, every so many are worked out first, and those in between only where
# the chance grows by more than this.
_APART: Final = 64
_FLAT: Final = 1e-12

_WORDS: Final = """\
A user with k items gives 1/√k to each. Noisy weights of all rounds add up to
evidence. An item is released in the first round in which its evidence reaches
the threshold, and given up where it is hopeless; then it leaves the sets."""


def decide_on_evidence(
    blocks: Blocks,
    weights: Weights,
    evidence: Evidence,
    *,
    share: float,
    spent: float,
    sigma: float,
    threshold: float,
    drop: float,
    scrambler: Scrambler,
) -> tuple[Evidence, Bools, Bools]:
    """Add a round's noisy weights to the evidence; release above the threshold, drop the hopeless.

    What is compared is the average Σ f_l (weight_l + noise_l) / F.
    Noise is rounded to the lattice on which the weights lie. An item without weight is in nobody's
    set: it is dropped, and never released.

    Guarantee: both verdicts are a function of the noisy weights, cut to the items that occur.
    Public: the shares, σ, the threshold and the drop level. Sensitive: everything except
    what is released.
    """
    steps = 1 << STEP_BITS
    noisy = weights / UNIT + np.rint(gaussian(scrambler(blocks)) * (sigma * steps)) / steps
    total = evidence + share * noisy
    average = total / spent
    released = (weights > 0) & (average >= threshold)
    return total, released, (weights == 0) | (average < drop)


@dataclass(frozen=True)
class EvidenceRound:
    """One round: its noisy weights are added to those of earlier rounds.

    Attributes:
        rho: The round's part of ρ.
        delta: The round's part of δ.
        sigma: The standard deviation of its Gaussian noise, in units of a user's whole weight.
        threshold: The evidence from which an item is released: the average of the noisy weights
            so far, each with the share of its round.
        max_items: Δ0, how many items of a user count.
        share: The round's share of the budget; all shares add up to one.
        spent: The sum of the shares so far.
        drop: The evidence below which an item is given up.
    """

    rho: float
    delta: float
    sigma: float
    threshold: float
    max_items: int
    share: float
    spent: float
    drop: float

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Add to the evidence; release what it proves, and drop what it shows to be hopeless."""
        weights = contributions.weigh(self.max_items, STEP_BITS)
        judge = partial(
            decide_on_evidence,
            share=self.share,
            spent=self.spent,
            sigma=self.sigma,
            threshold=self.threshold,
            drop=self.drop,
            scrambler=noise,
        )
        released, hopeless = contributions.decide_on_evidence(weights, judge)
        contributions.remove(released)
        contributions.drop(hopeless)

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {name: value for name, value in asdict(self).items() if name != "max_items"}


@dataclass(frozen=True)
class EvidenceGuarantee(Guarantee):
    """The guarantee of cumulative evidence: (ε, δ) by the theorem in `evidence.py`.

    Attributes:
        schedule: The shares and drop levels of the rounds.
        max_items: Δ0.
        thresholds: T_i of each round.
    """

    schedule: Schedule
    max_items: int
    thresholds: tuple[float, ...]

    def exact_epsilon(self, delta: float, accounting: Accounting) -> float:
        """Return the smallest ε that an exact sampler would have, rounded up."""
        if accounting == "zcdp":
            return super().exact_epsilon(delta, accounting)
        if self._joint_delta(_LARGEST_EPSILON) > delta:
            raise UsageError(f"delta is below what the thresholds spend, got {delta}")
        if self._joint_delta(LEAST_EPSILON) <= delta:
            return LEAST_EPSILON
        return boundary(lambda e: self._joint_delta(e) <= delta, _LARGEST_EPSILON, factor=0.5)

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the smallest δ that an exact sampler would have, rounded up."""
        if accounting == "zcdp":
            return super().exact_delta(epsilon, accounting)
        return self._joint_delta(epsilon)

    def _joint_delta(self, epsilon: float) -> float:
        bound = joint_bound(self.schedule, self.max_items)
        return bound.delta(epsilon, self.rho, np.array(self.thresholds))


@dataclass(frozen=True)
class Cumulative:
    """Cumulative evidence: SIPS that forgets nothing, and gives up on the hopeless.

    Attributes:
        rounds: I, how many rounds.
        growth: How much more of the budget each round gets than the one before.
        first_drop: Evidence below this many deviations of its noise is hopeless after round 1 …
        last_drop: … and after the last round but one; rounds in between go evenly.
    """

    rounds: int = 12
    growth: float = 1.2
    first_drop: float = -2.0
    last_drop: float = 3.0

    name: ClassVar[str] = "cumulative"
    default_max_items: ClassVar[int] = 300
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "most items from users with many items each"

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds)
        check_positive("growth", self.growth)
        if abs(math.log(self.growth)) * (self.rounds - 1) > _LARGEST_GROWTH:
            raise UsageError(
                f"growth must be nearer to 1 for {self.rounds} rounds, got {self.growth}"
            )
        check_finite("first_drop", self.first_drop)
        check_finite("last_drop", self.last_drop)

    def schedule(self) -> Schedule:
        """Return the constants of the mechanism as its accounting wants them."""
        step = (self.last_drop - self.first_drop) / max(1, self.rounds - 1)
        return Schedule(
            shares=tuple(self.growth**i for i in range(self.rounds)),
            drops=tuple(self.first_drop + step * i for i in range(self.rounds)),
            margin=0.2,
            patience=8.0,
        )

    def design(self, asked: Asked, max_items: int) -> Design:
        """Use one budget for all rounds, and thresholds for the sum of them."""
        check_few_items(self.name, max_items)
        schedule = self.schedule()
        match asked:
            case RhoDelta(rho, delta):
                thresholds = calibrate_evidence_rho(rho, delta, schedule, max_items)
                sampler = lattice_cost(rho, schedule, max_items)
            case EpsilonDelta():
                rho, thresholds, sampler = _calibrated(asked, schedule, max_items)
        bound = joint_bound(schedule, max_items)
        guarantee = EvidenceGuarantee(
            rho,
            bound.threshold_delta(rho, thresholds),
            sampler,
            schedule,
            max_items,
            tuple(thresholds.tolist()),
        )
        rounds = _rounds(rho, thresholds, schedule, max_items)
        return Design(rounds, guarantee, Bounds(max_items, once=True))

    def chances(self, rounds: Sequence[EvidenceRound], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders."""
        return _chances(rounds, holders * weight(items, STEP_BITS) / UNIT)

    def words(self, rounds: Sequence[EvidenceRound]) -> str:
        """Say what the rounds do."""
        return "\n".join((_WORDS, table_of_rounds([r.row() for r in rounds], NOISY_ROUNDS)))


def _calibrated(
    asked: EpsilonDelta, schedule: Schedule, max_items: int
) -> tuple[float, Floats, SamplerCost]:
    """Return ρ, the thresholds and the lattice's cost, which depend on each other.

    A smaller ρ means more noise, hence more cells of the lattice and a larger cost: search until
    what was set aside is enough.
    """
    asked.point(SamplerCost.of(len(schedule.shares), max_items))  # the least that it can be
    aside = SamplerCost(0.0, 0.0)
    while True:
        rho, thresholds = calibrate_evidence(*asked.point(aside), schedule, max_items)
        cost = lattice_cost(rho, schedule, max_items)
        if aside.loss >= cost.loss and aside.tail >= cost.tail:
            return rho, thresholds, aside
        aside = SamplerCost(1.01 * cost.loss, 1.01 * cost.tail)
        if aside.loss > asked.epsilon / 2:
            raise UsageError(
                f"epsilon={asked.epsilon:g} and delta={asked.delta:g} need more noise than "
                f"cumulative can add for max_items={max_items}: try max_items=100, or "
                "mechanism='sips'"
            )


def _rounds(
    rho: float, thresholds: Floats, schedule: Schedule, max_items: int
) -> tuple[EvidenceRound, ...]:
    parts = joint_bound(schedule, max_items).release_by_round(rho, thresholds)
    return tuple(
        EvidenceRound(
            rho=rho * share,
            delta=part,
            sigma=rounded_up(1 / math.sqrt(2 * rho * share)),
            threshold=level,
            max_items=max_items,
            share=share,
            spent=spent,
            drop=drop,
        )
        for share, spent, level, drop, part in zip(
            schedule.fractions.tolist(),
            schedule.spent.tolist(),
            thresholds.tolist(),
            drop_levels(rho, schedule),
            parts,
            strict=True,
        )
    )


def _chances(rounds: Sequence[EvidenceRound], weights: Floats) -> Floats:
    """Return the chances of ascending weights; where they hardly grow, most are read off."""
    places = np.arange(len(weights))
    some = np.unique(np.append(places[::_APART], places[-1:]))
    known = _followed(rounds, weights[some])
    found = np.interp(places, some, known)
    for n in np.flatnonzero(np.diff(known) > _FLAT):
        between = slice(some[n], some[n + 1])
        found[between] = _followed(rounds, weights[between])
    return found


def _followed(rounds: Sequence[EvidenceRound], weights: Floats) -> Floats:
    """Follow the noise of items' evidence through all rounds, on a lattice.

    Σ f_l noise_l, in units that make it a Brownian motion at time F_l, is released above one level
    and dropped below another; both depend on the weight.
    """
    from scipy.special import ndtr

    step, reach = 0.005, 9.0
    size = int(reach / step)
    lattice = np.arange(-size, size + 1) * step
    edges = np.append(lattice - step / 2, lattice[-1] + step / 2)
    chance = np.zeros((len(weights), len(lattice)))
    chance[:, size] = 1.0
    released, before = np.zeros(len(weights)), 0.0
    for r in rounds:
        unit = math.sqrt(2 * r.rho / r.share)  # noise of evidence F·X is B(F) / unit
        moves = np.diff(ndtr(edges / math.sqrt(r.spent - before)))
        chance = _convolved(chance, moves)[:, size : size + len(lattice)]
        level, drop = ((x - weights[:, None]) * r.spent * unit for x in (r.threshold, r.drop))
        found = lattice >= level
        released += np.where(found, chance, 0).sum(axis=1)
        chance = np.where(found | (lattice < drop), 0, chance)
        before = r.spent
    return np.clip(released, 0, 1)


def _convolved(rows: Floats, moves: Floats) -> Floats:
    """Return the convolution of each row with `moves`."""
    length = 1 << (rows.shape[1] + len(moves) - 1).bit_length()
    transformed = np.fft.rfft(rows, length) * np.fft.rfft(moves, length)
    return np.fft.irfft(transformed, length)
