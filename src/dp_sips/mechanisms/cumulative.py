"""Cumulative evidence: SIPS that forgets nothing, and gives up on the hopeless.

Each round adds its noisy weights to what earlier rounds learnt about an item, so that the whole
budget speaks for every borderline item. The less hope an item's evidence leaves, the less of a
user's weight it claims; items whose evidence is hopeless leave the users' sets without being
released, and their weight moves to items that still have a chance. Users' sets are cut to max_items
once, for all rounds.

    for round l = 1, …, I, with a share f_l of the budget, σ_l = 1/√(2ρ f_l),
    c_l = f_l·trust^l and C_l = c_1 + … + c_l:
        weight_l(u) ← Σ a_u/√(Σ a²) over the holders of u, the inner sum over a holder's items
        evidence(u) ← evidence(u) + c_l (weight_l(u) + N(0, σ_l²))
        z ← evidence(u)/C_l, in deviations of its noise
        release u where evidence(u)/C_l ≥ T_l;  drop u where z < z_l
        a_u ← 1 from z_l + ramp on, 1/4, 1/2 or 3/4 before

Guarantee: (ε, δ)-DP, or δ-approximate ρ-zCDP, by the theorem in `evidence.py`. This mechanism is
not the paper's.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
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
    without_bounds,
)
from dp_sips.mechanisms.claims import CLAIMS, Schedule
from dp_sips.mechanisms.evidence import (
    NOISE_PARTS,
    SHARED_PARTS,
    STEP_BITS,
    JointBound,
    calibrate_evidence,
    calibrate_evidence_rho,
    claim_edges,
    joint_bound,
    largest_rho,
    lattice_cost,
)
from dp_sips.mechanisms.min_users import check_min_users, counted_holders
from dp_sips.mechanisms.point import zcdp_of_epsilon
from dp_sips.mechanisms.weighted_gaussian import NOISY_ROUNDS
from dp_sips.privacy.arrays import Blocks, Bools, Claims, Floats, Weights
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import LEAST_EPSILON, Accounting, rounded_up
from dp_sips.privacy.contributions import Contributions, Evidence
from dp_sips.privacy.guarantee import Guarantee, SamplerCost
from dp_sips.privacy.noise import Scrambler, in_steps
from dp_sips.privacy.search import boundary
from dp_sips.privacy.weights import WHOLE_CLAIM, claimed_weight
from dp_sips.validation import check_finite, check_positive, check_whole

# Rounds further apart than a factor of e²⁵ are nothing beside each other.
_LARGEST_GROWTH: Final = 25
# No ε that anyone asks for is above this.
_LARGEST_EPSILON: Final = 10_000.0
# Of a long list of holders, a few are worked out first, and those in between only where
# the chance grows by more than this.
_APART: Final = 64
_FLAT: Final = 1e-12

_STEPS: Final = 1 << STEP_BITS
_CLAIM_STEPS: Final[Claims] = np.diff(CLAIMS).astype(np.uint8)
_FEW_ROUNDS: Final = 7
_OPENING: Final = 0.007
"""The share of the first round, unless rounds are few: it releases what is very popular."""
_DROP_NOTHING: Final = -9.0
_BEND: Final = 0.65
"""Drop levels rise as rounds to this power: faster at first, when most items are still there."""

_WORDS: Final = """\
A user with k items gives 1/√k to each, and less to those whose evidence is poor.
Noisy weights of all rounds add up to evidence. An item is released in the first
round in which its evidence reaches the threshold, and given up where it is
hopeless; then it leaves the sets."""


def decide_on_evidence(
    blocks: Blocks,
    weights: Weights,
    evidence: Evidence,
    *,
    count: float,
    sigma: float,
    threshold: float,
    edges: Sequence[float],
    scrambler: Scrambler,
    shared: bool = False,
) -> tuple[Evidence, Bools, Claims]:
    """Add a round's noisy weights to the evidence; release above the threshold, drop the hopeless.

    Weights are whole steps of the lattice, and noise is rounded to it. An item without weight is
    never released. It is in nobody's set, and dropped; unless weights are reduced (`shared`): then,
    whether it has weight must not show in its claim.

    Guarantee: verdicts and claims are a function of the noisy weights, cut to the items that occur;
    claims do not fall with evidence.
    Public: how much the round counts, σ, and the sums of evidence at which an item is released or
    gets another claim. Sensitive: everything except what is released.
    """
    from dp_sips.mechanisms import adding

    total = in_steps(scrambler(blocks), sigma * _STEPS)
    claims = np.empty(len(total), dtype=np.uint8)
    levels = np.array(edges, dtype=np.float64)
    adding.add_round(weights, evidence, count / _STEPS, levels, _CLAIM_STEPS, total, claims)
    held = weights > 0
    if not shared:
        claims *= held.view(np.uint8)
    return total, held & (total >= threshold), claims


@dataclass(frozen=True)
class EvidenceRound:
    """One round: its noisy weights are added to those of earlier rounds.

    Attributes:
        rho: The round's part of ρ.
        delta: The round's part of δ.
        sigma: The standard deviation of its Gaussian noise, in units of a user's whole weight.
        threshold: The evidence from which an item is released: the average of the noisy weights
            so far, each counted as its round's `count` says.
        max_items: Δ0, how many items of a user count.
        share: The round's share of the budget; all shares add up to one.
        count: How much the round counts in evidence.
        counted: How much all rounds so far count.
        edges: The evidence from which an item keeps 1/4, 1/2, 3/4 and all of its weight, relative
            to others in the same set; below the first, it is given up.
        min_users: How many users must hold an item (mechanisms/min_users.py).
    """

    rho: float
    delta: float
    sigma: float
    threshold: float
    max_items: int
    share: float
    count: float
    counted: float
    edges: tuple[float, ...]
    min_users: int = 1

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Add to the evidence; release what it proves, and drop what it shows to be hopeless."""
        judge = partial(
            decide_on_evidence,
            count=self.count,
            sigma=self.sigma,
            threshold=self.threshold * self.counted,
            edges=[edge * self.counted for edge in self.edges],
            scrambler=noise,
            shared=self.min_users > 1,
        )
        weights = contributions.weigh_by_claim(STEP_BITS, self.min_users)
        contributions.remove(contributions.decide_on_evidence(weights, judge))

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        return without_bounds(asdict(self))


@dataclass(frozen=True, repr=False)
class EvidenceGuarantee(Guarantee):
    """The guarantee of cumulative evidence: (ε, δ) by the theorem in `evidence.py`.

    Attributes:
        schedule: The constants of the rounds.
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
        return self.bound.delta(epsilon, self.noise_rho, np.array(self.thresholds))

    @property
    def bound(self) -> JointBound:
        """The theorem's D and G."""
        return joint_bound(self.schedule, self.max_items)

    @property
    def noise_rho(self) -> float:
        """ρ of all noise."""
        return self.rho


@dataclass(frozen=True)
class SharedEvidenceGuarantee(EvidenceGuarantee):
    """The guarantee with `min_users` above 1: `evidence.py`, "Items of several users".

    `rho` and `threshold_delta` follow from the (ε, δ) that was asked for, as in `PointGuarantee`.

    Attributes:
        noise: ρ of all noise.
    """

    noise: float

    def exact_epsilon(self, delta: float, accounting: Accounting) -> float:
        """Return the smallest ε that an exact sampler would have, rounded up."""
        del accounting  # there is only one
        return super().exact_epsilon(delta, "gaussian")

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the smallest δ that an exact sampler would have, rounded up."""
        del accounting
        return self._joint_delta(epsilon)

    @property
    def bound(self) -> JointBound:
        """The theorem's D, and the G of y = 1."""
        return joint_bound(self.schedule, self.max_items, shared=True)

    @property
    def noise_rho(self) -> float:
        """ρ of all noise."""
        return self.noise

    def __str__(self) -> str:
        return f"({math.sqrt(2 * self.rho) + self.sampler.loss:.4g}, {self.threshold_delta:.4g})-DP"


@dataclass(frozen=True)
class Cumulative:
    """Cumulative evidence: SIPS that forgets nothing, and gives up on the hopeless.

    Attributes:
        rounds: I, how many rounds. Of seven or more, the first is tiny and drops nothing.
        growth: How much more of the budget each other round gets than the one before.
        trust: How much more than its share of the budget each round counts than the one before.
        first_drop: Evidence below this many deviations of its noise is hopeless after the first of
            the other rounds …
        last_drop: … and after the last; in between, it rises fast at first.
        ramp: How many deviations above that an item has its whole share of a user's weight.
        min_users: How many users must hold an item for it to be released at all.
    """

    rounds: int = 17
    growth: float = 1.0
    trust: float = 1.06
    first_drop: float = -2.5
    last_drop: float = 3.0
    ramp: float = 1.5
    min_users: int = 1

    name: ClassVar[str] = "cumulative"
    default_max_items: ClassVar[int] = 250
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "most items from users with many items each"

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds)
        check_min_users(self.min_users)
        for name in ("growth", "trust"):
            factor = check_positive(name, getattr(self, name))
            if abs(math.log(factor)) * (self.rounds - 1) > _LARGEST_GROWTH:
                raise UsageError(
                    f"{name} must be nearer to 1 for {self.rounds} rounds, got {factor}"
                )
        check_finite("first_drop", self.first_drop)
        check_finite("last_drop", self.last_drop)
        if check_finite("ramp", self.ramp) < 0:
            raise UsageError(f"ramp must not be negative, got {self.ramp}")

    def schedule(self) -> Schedule:
        """Return the constants of the mechanism as its accounting wants them."""
        opening = int(self.rounds >= _FEW_ROUNDS)
        count = self.rounds - opening
        grown = np.array([self.growth**i for i in range(count)])
        others = grown * ((1 - opening * _OPENING) / grown.sum())
        drops = (
            self.first_drop + (self.last_drop - self.first_drop) * np.linspace(0, 1, count) ** _BEND
        )
        return Schedule(
            shares=(_OPENING,) * opening + tuple(others.tolist()),
            trust=self.trust,
            drops=(_DROP_NOTHING,) * opening + tuple(drops.tolist()),
            ramp=self.ramp,
            margin=0.2,
            patience=8.0,
        )

    def design(self, asked: Asked, max_items: int) -> Design:
        """Use one budget for all rounds, and thresholds for the sum of them."""
        check_few_items(self.name, max_items)
        schedule, shared = self.schedule(), self.min_users > 1
        match asked:
            case RhoDelta() if shared:
                raise UsageError(
                    "min_users with cumulative needs epsilon, not rho: try mechanism='sips'"
                )
            case RhoDelta(rho, delta):
                thresholds = calibrate_evidence_rho(rho, delta, schedule, max_items)
                sampler = lattice_cost(rho, schedule, max_items)
            case EpsilonDelta():
                rho, thresholds, sampler = _calibrated(asked, schedule, max_items, shared=shared)
        bound = joint_bound(schedule, max_items, shared=shared)
        rounds = tuple(
            replace(step, min_users=self.min_users) for step in _rounds(rho, thresholds, bound)
        )
        constants = schedule, max_items, tuple(thresholds.tolist())
        if shared:
            epsilon, delta = asked.point(sampler)
            statement = zcdp_of_epsilon(epsilon), delta, sampler
            guarantee: Guarantee = SharedEvidenceGuarantee(*statement, *constants, rho)
        else:
            spent = bound.threshold_delta(rho, thresholds)
            guarantee = EvidenceGuarantee(rho, spent, sampler, *constants)
        return Design(rounds, guarantee, Bounds(max_items, once=True))

    def chances(self, rounds: Sequence[EvidenceRound], holders: Floats, items: int) -> Floats:
        """Return the chance of release of an item, for each number of its holders.

        The other items of its holders are taken to keep their whole claims.
        """
        counted = counted_holders(holders, rounds[0].min_users)
        return np.where(counted > 0, _chances(rounds, counted, items), 0.0)

    def words(self, rounds: Sequence[EvidenceRound]) -> str:
        """Say what the rounds do."""
        return "\n".join((_WORDS, table_of_rounds([r.row() for r in rounds], NOISY_ROUNDS)))


@lru_cache
def _calibrated(
    asked: EpsilonDelta, schedule: Schedule, max_items: int, *, shared: bool
) -> tuple[float, Floats, SamplerCost]:
    """Return ρ, the thresholds and the lattice's cost, which depend on each other.

    A smaller ρ means more noise, hence more cells of the lattice and a larger cost: search until
    what was set aside is enough.
    """
    least = SamplerCost.of(len(schedule.shares), max_items)  # the least that it can be
    epsilon, delta = asked.point(least)
    part = (SHARED_PARTS if shared else NOISE_PARTS)[0]
    cost = lattice_cost(largest_rho(epsilon, part * delta), schedule, max_items)
    while True:
        aside = SamplerCost(1.01 * cost.loss, 1.01 * cost.tail)
        if aside.loss > asked.epsilon / 2:
            raise UsageError(
                f"epsilon={asked.epsilon:g} and delta={asked.delta:g} need more noise than "
                f"cumulative can add for max_items={max_items}: try max_items=100, or "
                "mechanism='sips'"
            )
        point = asked.point(aside)
        rho, thresholds = calibrate_evidence(*point, schedule, max_items, shared=shared)
        cost = lattice_cost(rho, schedule, max_items)
        if aside.loss >= cost.loss and aside.tail >= cost.tail:
            return rho, thresholds, aside


def _rounds(rho: float, thresholds: Floats, bound: JointBound) -> tuple[EvidenceRound, ...]:
    schedule = bound.schedule
    parts = bound.release_by_round(rho, thresholds)
    return tuple(
        EvidenceRound(
            rho=rho * share,
            delta=part,
            sigma=rounded_up(1 / math.sqrt(2 * rho * share)),
            threshold=level,
            max_items=bound.max_items,
            share=share,
            count=count,
            counted=counted,
            edges=tuple(edges),
        )
        for share, count, counted, level, edges, part in zip(
            schedule.fractions.tolist(),
            schedule.counts.tolist(),
            schedule.counted.tolist(),
            thresholds.tolist(),
            claim_edges(rho, schedule).tolist(),
            parts,
            strict=True,
        )
    )


def _chances(rounds: Sequence[EvidenceRound], holders: Floats, items: int) -> Floats:
    """Return the chances of ascending numbers of holders; where flat, most are read off."""
    places = np.arange(len(holders))
    some = np.unique(np.append(places[::_APART], places[-1:]))
    known = _followed(rounds, holders[some], items)
    found = np.interp(places, some, known)
    for n in np.flatnonzero(np.diff(known) > _FLAT):
        between = slice(some[n], some[n + 1])
        found[between] = _followed(rounds, holders[between], items)
    return found


def _followed(rounds: Sequence[EvidenceRound], holders: Floats, items: int) -> Floats:
    """Follow items' evidence through all rounds, on a lattice, in deviations of all noise.

    Places on the lattice are relative to what evidence would be with a whole claim and no noise.
    An item with a smaller claim falls behind that.
    """
    from scipy.special import ndtr

    step, reach = 0.005, 9.0
    size = int(reach / step)
    lattice = np.arange(-size, size + 1) * step
    borders = np.append(lattice - step / 2, lattice[-1] + step / 2)
    deviation = math.sqrt(sum((r.count * r.sigma) ** 2 for r in rounds))
    rest = WHOLE_CLAIM * (items - 1)
    given = [claimed_weight(claim, claim + rest, STEP_BITS) / _STEPS for claim in CLAIMS[1:]]
    chances = [np.zeros((len(holders), len(lattice))) for _ in given]
    chances[-1][:, size] = 1.0
    released = np.zeros(len(holders))
    for r in rounds:
        behind = [holders * ((given[-1] - each) * r.count / deviation / step) for each in given]
        moved = sum(map(_moved_down, chances, behind), np.zeros_like(chances[0]))
        moves = np.diff(ndtr(borders * (deviation / (r.count * r.sigma))))
        chance = _convolved(moved, moves)[:, size : size + len(lattice)]
        expected = holders * given[-1]
        above = [
            lattice >= (level - expected[:, None]) * (r.counted / deviation)
            for level in (*r.edges, r.threshold)
        ]
        released += np.where(above[-1], chance, 0).sum(axis=1)
        above = [inside & ~above[-1] for inside in above[:-1]] + [np.zeros_like(above[-1])]
        chances = [np.where(inside & ~higher, chance, 0) for inside, higher in pairwise(above)]
    return np.clip(released, 0, 1)


def _moved_down(rows: Floats, steps: Floats) -> Floats:
    """Return each row moved down by a number of steps, between two places where it is not whole."""
    width = rows.shape[1]
    whole = np.minimum(np.floor(steps), width).astype(np.int64)
    part = (steps - np.floor(steps))[:, None]
    padded = np.pad(rows, ((0, 0), (0, width + 1)))
    places = whole[:, None] + np.arange(width)
    near, far = (np.take_along_axis(padded, places + more, axis=1) for more in (0, 1))
    return np.asarray((1 - part) * near + part * far)


def _convolved(rows: Floats, moves: Floats) -> Floats:
    """Return the convolution of each row with `moves`."""
    length = 1 << (rows.shape[1] + len(moves) - 1).bit_length()
    transformed = np.fft.rfft(rows, length) * np.fft.rfft(moves, length)
    return np.fft.irfft(transformed, length)
