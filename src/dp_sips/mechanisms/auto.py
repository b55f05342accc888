"""auto: a private look at the data decides between matching and cumulative evidence.

Matching releases most where people have few items each, cumulative evidence where they have many;
in between, it depends on the data. So `auto` spends up to 1 % of ε on three noisy numbers, chooses
by them, and spends the rest on what it chose:

    ñ ← n + Laplace                            n the number of users
    S̃ ← Σ (log2 min(k, 128) − 3.5) + Laplace   k the size of a user's set
    s ← 3.5 + S̃/ñ                              how long lists are, on average
    s below 1.4: matching;  s above 4.5: evidence;  both after 0.45 % of ε;  in between
    D ← Y − g·P + Laplace       Y = Σ π(H), what matching would release on average
                                P = Σ ramp(W), a proxy of what evidence would: the weights of
                                    one round, in which up to 64 items of a user count
                                g = exp(0.29 + 0.164 s), what further rounds are worth
    D above 2.5 scales of its noise: matching, else evidence

Sizes are measured from the middle of their range, 3.5, which halves what one user can move. The
ramp goes from 0.15 T to 3 T, T evidence's last threshold: wide enough to see what later rounds can
lift, and so flat that 64 items of a user move it little. Where noise hides the difference, evidence
is the safer choice: on small data with lists of some length, it is ahead by more. The constants
were fitted on the data sets of docs/yields.md; docs/choice.md shows how well they choose.

Guarantee: (ε, δ)-DP. An additional user
  - raises n by 1, and moves Σ (log2 min(k, 128) − 3.5) by at most 3.5, up or down;
  - raises H by 1 in one place or not at all (`matching.py`), hence Y by at most the largest step of
    the table of π, and does not lower it;
  - raises weights by w ≤ 1/√k on k ≤ 64 items, hence P by at most √64 times the slope of the ramp,
    and does not lower it. So D moves by at most the larger of the two, g times the second.
All three are whole numbers here, tables and ramps rounded down, and the rounding is part of the
sensitivities below. With Laplace noise of scale sensitivity/ε_i on each, given those before, the
look is Σε_i-DP, and only the choice leaves it. Given the choice, the release is (ε_r, δ)-DP, so
both together are (Σε_i + ε_r, δ)-DP. Whether D is asked for depends on ñ and S̃ alone, and where it
is not, its part of ε goes to the release: on every path the ε of what was done add up to ε. ∎

The noise of ñ and S̃ is rounded to whole numbers: a cell of width 1/b scales has at least
e^(−1/b)/b of the tail that it begins, and is a difference of two tails, so its odds are off by a
factor within 1 ± 2b·e^(1/b)·SAMPLER_ERROR (`_cells_cost`). D is compared once: a tail.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import Asked, Branch, Design, EpsilonDelta, Mechanism
from dp_sips.mechanisms.cumulative import Cumulative
from dp_sips.mechanisms.matching import Matching, MatchingRound
from dp_sips.mechanisms.min_users import check_min_users
from dp_sips.mechanisms.point import zcdp_of_epsilon
from dp_sips.mechanisms.single import Single
from dp_sips.mechanisms.sips import Sips
from dp_sips.mechanisms.sips_rule import SipsRule
from dp_sips.privacy.arrays import Floats, Integers, Weights
from dp_sips.privacy.budget import Accounting, rounded_up
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.decide import noisy_integer
from dp_sips.privacy.guarantee import LARGEST_EPSILON, Guarantee, SamplerCost
from dp_sips.privacy.noise import SAMPLER_ERROR, SAMPLER_TAIL, Scrambler
from dp_sips.privacy.weights import UNIT
from dp_sips.validation import check_positive

# Below this max_items, looking again at what is left beats a single cut.
_FEW_ITEMS: Final = 80
# Up to this many items a person, if the caller says so, matching releases most.
_SHORT: Final = 8
# From this min_users on, votes that do not count cost matching more than long lists cost others.
_MANY_USERS: Final = 10

_LOOK: Final = 0.01
"""The part of ε that the look spends."""

_SHARES: Final = (0.15, 0.3, 0.55)
"""How the look's ε is split between n, S and D."""

_SHORT_LISTS: Final = 1.4
_LONG_LISTS: Final = 4.5
_LEAN: Final = 2.5
_WORTH: Final = (0.29, 0.164)
_LENGTH_UNIT: Final = 16
_LARGEST_SIZE: Final = 128
# The middle of log2 of 1 and of the largest size, in units of 1/16.
_MIDDLE: Final = 56
_YIELD_UNIT: Final = 1024
_WORTH_UNIT: Final = 256
_PROXY_ITEMS: Final = 64
# Where the ramp of the proxy begins and ends, in units of evidence's last threshold.
_RAMP: Final = (0.15, 3.0)


@dataclass(frozen=True, repr=False)
class PathGuarantee(Guarantee):
    """The guarantee of a look and of one release after it: their ε add up.

    Attributes:
        look: ε of the look, in exact arithmetic.
        release: The guarantee of the release.
    """

    look: float
    release: Guarantee

    @classmethod
    def of(cls, look: float, release: Guarantee, sampler: SamplerCost) -> Self:
        """Return the guarantee of a path; `sampler` is what it adds to the look."""
        cost = SamplerCost(sampler.loss + release.sampler.loss, sampler.tail + release.sampler.tail)
        rho = rounded_up(release.rho + zcdp_of_epsilon(look))
        return cls(rho, release.threshold_delta, cost, look, release)

    def exact_epsilon(self, delta: float, accounting: Accounting) -> float:
        """Return the smallest ε that an exact sampler would have, rounded up."""
        return rounded_up(self.look + self.release.exact_epsilon(delta, accounting))

    def exact_delta(self, epsilon: float, accounting: Accounting) -> float:
        """Return the smallest δ that an exact sampler would have, rounded up."""
        rest = epsilon * (1 - 2.0**-50) - self.look
        return self.release.exact_delta(rest, accounting) if rest > 0 else 1.0


@dataclass(frozen=True, repr=False)
class LookGuarantee(Guarantee):
    """The guarantee of a look and of what it chooses, whatever that is.

    With probability p_c the look chooses c, after spending ℓ_c, and the release is then
    (ε − ℓ_c, δ_c)-DP. So P[Y] ≤ Σ p_c (e^(ε−ℓ_c) P′_c[Y] + δ_c) ≤ e^ε P′[Y] + max δ_c: the curve is
    the worst of all paths, and says nothing about the choice.

    Attributes:
        paths: The guarantee of each path.
    """

    paths: tuple[PathGuarantee, ...]

    @classmethod
    def of(cls, paths: Sequence[PathGuarantee]) -> Self:
        """Return the guarantee of these paths."""
        cost = SamplerCost(
            max(path.sampler.loss for path in paths), max(path.sampler.tail for path in paths)
        )
        rho = max(path.rho for path in paths)
        return cls(rho, max(path.threshold_delta for path in paths), cost, tuple(paths))

    def epsilon(self, *, delta: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest ε for which the release is (ε, δ)-DP, rounded up."""
        return max(path.epsilon(delta=delta, accounting=accounting) for path in self.paths)

    def delta(self, *, epsilon: float, accounting: Accounting = "gaussian") -> float:
        """Return the smallest δ for which the release is (ε, δ)-DP, rounded up."""
        return max(path.delta(epsilon=epsilon, accounting=accounting) for path in self.paths)


@dataclass(frozen=True)
class SizeLook:
    """Three noisy numbers that decide between two branches.

    Attributes:
        epsilon: What all three spend, in exact arithmetic.
        sampler: What the sampler adds to it.
        short: The branch for short lists, matching, after the whole look …
        long: … and for long ones, cumulative evidence.
        early_short: The same where the first two numbers decide.
        early_long: The same for long lists.
        min_users: How many users must hold an item. Above 1, matching needs more votes than it was
            compared for when the lengths were fitted, so that short lists alone do not decide.
    """

    epsilon: float
    sampler: SamplerCost
    short: Branch
    long: Branch
    early_short: Branch
    early_long: Branch
    min_users: int = 1

    def choose(self, contributions: Contributions, noise: Scrambler) -> Branch:
        """Look at the data, and return what to run.

        Guarantee: the choice is `epsilon`-DP.
        Public: the choice. Sensitive: everything else.
        """
        scales = [1 / (self.epsilon * share) for share in _SHARES]
        users = noisy_integer(
            contributions.measure_users(_ones), scale=scales[0], scrambler=noise, place=0
        )
        lengths = noisy_integer(
            contributions.measure_users(_lengths), scale=_MIDDLE * scales[1],
            scrambler=noise, place=1,
        )  # fmt: skip
        length = _mean_length(lengths, users)
        if length < _SHORT_LISTS and self.min_users == 1:
            return self.early_short
        if length > _LONG_LISTS:
            return self.early_long
        return self._compare(contributions, length, scales[2], noise)

    def spent(self, branch: Branch) -> float:
        """Return what was spent to choose this branch, in exact arithmetic."""
        if branch in (self.early_short, self.early_long):
            return self.epsilon * rounded_up(_SHARES[0] + _SHARES[1])
        return self.epsilon

    @property
    def branches(self) -> tuple[Branch, ...]:
        """Every branch that may be chosen."""
        return self.short, self.long, self.early_short, self.early_long

    def guarantee(self) -> LookGuarantee:
        """Return the guarantee of the look and of what it chooses, whatever that is."""
        return LookGuarantee.of(
            [
                PathGuarantee.of(self.spent(branch), branch.design.guarantee, self.sampler)
                for branch in self.branches
            ]
        )

    def measure(self, contributions: Contributions) -> tuple[float, float, float]:
        """Return Y, P and s without noise, for experiments.

        Sensitive: all three.
        """
        lengths, users = (contributions.measure_users(f) for f in (_lengths, _ones))
        expected, reached = self._yields(contributions)
        return expected / _YIELD_UNIT, reached / _YIELD_UNIT, _mean_length(lengths, users)

    def _yields(self, contributions: Contributions) -> tuple[int, int]:
        """Return Y and P in their units."""
        matching: MatchingRound = self.short.design.rounds[0]
        expected = contributions.measure_items(
            matching.weigh(contributions), _ExpectedYield(matching)
        )
        weights = contributions.weigh(_PROXY_ITEMS, min_users=self.min_users)
        return expected, contributions.measure_items(weights, self._proxy)

    @property
    def _proxy(self) -> "_Proxy":
        return _Proxy(self.long.design.rounds[-1].threshold)

    def _compare(
        self, contributions: Contributions, length: float, scale: float, noise: Scrambler
    ) -> Branch:
        """Compare what the branches would release."""
        worth = round(_WORTH_UNIT * math.exp(_WORTH[0] + _WORTH[1] * length))
        expected, reached = self._yields(contributions)
        difference = _WORTH_UNIT * expected - worth * reached
        step = _ExpectedYield(self.short.design.rounds[0]).sensitivity
        scale *= max(_WORTH_UNIT * step, worth * self._proxy.sensitivity)
        found = noisy_integer(difference, scale=scale, scrambler=noise, place=2)
        return self.short if found > _LEAN * scale else self.long


def _ones(sizes: Integers) -> Integers:
    return np.ones_like(sizes)


def _lengths(sizes: Integers) -> Integers:
    """Return log2 k − 3.5 of each size, in units of 1/16, rounded down: from −56 to 56."""
    logs = np.log2(np.clip(sizes, 1, _LARGEST_SIZE)) * _LENGTH_UNIT
    return np.minimum(logs.astype(np.int64), 2 * _MIDDLE) - _MIDDLE


def _mean_length(lengths: int, users: int) -> float:
    """Return s of sums of `_lengths` and `_ones`."""
    length = (_MIDDLE + lengths / max(1, users)) / _LENGTH_UNIT
    return min(max(length, 0.0), 2 * _MIDDLE / _LENGTH_UNIT)


@dataclass(frozen=True)
class _ExpectedYield:
    """What matching releases of each item on average, in units of 1/1024, rounded down."""

    matching: MatchingRound

    def __call__(self, weights: Weights) -> Integers:
        yes, _ = self.matching.coin.odds(weights)
        return np.floor(yes * _YIELD_UNIT).astype(np.int64)

    @property
    def sensitivity(self) -> int:
        """The largest step from one number of users to the next."""
        users = np.arange(self.matching.seats + self.matching.spare + 1, dtype=np.uint64)
        return int(np.diff(self(users * np.uint64(UNIT))).max())


@dataclass(frozen=True)
class _Proxy:
    """How well each item does in one round: 0 up to 0.15 T, 1 from 3 T on, linear in between."""

    threshold: float

    def __call__(self, weights: Weights) -> Integers:
        above = np.maximum(weights.astype(np.int64) - self._low, 0)
        reached: Integers = np.minimum(above, self._width) * _YIELD_UNIT // self._width
        return reached

    @property
    def sensitivity(self) -> int:
        """√64 of weight at the ramp's slope, and one unit of rounding for each of 64 items."""
        root = math.isqrt(_PROXY_ITEMS)
        return -(-root * UNIT * _YIELD_UNIT // self._width) + _PROXY_ITEMS

    @property
    def _low(self) -> int:
        return round(_RAMP[0] * self.threshold * UNIT)

    @property
    def _width(self) -> int:
        return round((_RAMP[1] - _RAMP[0]) * self.threshold * UNIT)


def _cells_cost(scales: Sequence[float]) -> SamplerCost:
    """Return what rounding costs where whole numbers with these scales of noise are used."""
    cells = sum(2 * b * math.exp(1 / b) for b in scales) + 1
    return SamplerCost(3 * cells * SAMPLER_ERROR, (len(scales) + 1) * SAMPLER_TAIL)


def _look(asked: EpsilonDelta, max_items: int, min_users: int) -> SizeLook:
    """Return the look and its branches, which together spend what was asked."""
    epsilon = min(asked.epsilon, LARGEST_EPSILON)
    whole = _LOOK * epsilon
    users, lengths, _ = (1.02 / (whole * share) for share in _SHARES)
    sampler = _cells_cost((users, _MIDDLE * lengths))
    if sampler.loss > 0.01 * whole:
        raise UsageError(f"epsilon={asked.epsilon:g} is too small for a look at the data")
    delta = (asked.delta - sampler.tail) / (1 + sampler.loss) * (1 - 2.0**-50)
    early = (whole - sampler.loss) * (_SHARES[0] + _SHARES[1]) + sampler.loss
    short, long, early_short, early_long = (
        Branch(mechanism, mechanism.design(EpsilonDelta(rest, delta), max_items))
        # A little less, so that rounded sums stay below what was asked.
        for rest in ((epsilon - spent) * (1 - 2.0**-45) for spent in (whole, early))
        for mechanism in (Matching(min_users=min_users), Cumulative(min_users=min_users))
    )
    branches = short, long, early_short, early_long
    return SizeLook(whole - sampler.loss, sampler, *branches, min_users)


@dataclass(frozen=True)
class Auto:
    """The recommended mechanism: matching or cumulative evidence, by a private look at the data.

    Where the caller says how long lists are, or how many items of a user count, no look is needed.

    Attributes:
        items_per_user: Roughly how many items a person has; None to look.
        min_users: How many users must hold an item for it to be released at all.
    """

    items_per_user: float | None = None
    min_users: int = 1

    name: ClassVar[str] = "auto"
    default_max_items: ClassVar[int] = Cumulative.default_max_items
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "coins or Gaussian"
    good_for: ClassVar[str] = "most items from any data"

    def __post_init__(self) -> None:
        check_min_users(self.min_users)
        if self.items_per_user is not None:
            check_positive("items_per_user", self.items_per_user)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Return both branches and the look that decides between them."""
        if not isinstance(asked, EpsilonDelta):
            raise UsageError("a look at the data needs epsilon: rho has no meaning for matching")
        look = _look(asked, max_items, self.min_users)
        return Design((look.short, look.long), look.guarantee(), look.long.design.bounds, look)

    def chances(self, rounds: Sequence[Branch], holders: Floats, items: int) -> Floats:
        """Return the lower of the two branches' chances: what can be had whichever is chosen."""
        chances = [b.mechanism.chances(b.design.rounds, holders, items) for b in rounds]
        return np.asarray(np.minimum.reduce(chances))

    def words(self, rounds: Sequence[Branch]) -> str:
        """Say what the look does, and what may follow."""
        short, long = rounds
        return "\n".join(
            (
                f"A private look at the data, with at most {_LOOK:.0%} of epsilon, decides",
                "what runs:",
                f"{short.mechanism.name} if people have few items each, or {long.mechanism.name}.",
                "",
                f"{short.mechanism.name}: {short.mechanism.words(short.design.rounds)}",
                "",
                f"{long.mechanism.name}: {long.mechanism.words(long.design.rounds)}",
            )
        )


def recommended(
    asked: Asked,
    max_items: int | None,
    items_per_user: float | None = None,
    min_users: int = 1,
) -> tuple[Mechanism, Design]:
    """Return what `mechanism="auto"` means for these public parameters, and its design.

    SIPS serves where the budget is too small for the others.
    """
    *first_choices, last = _candidates(asked, max_items, items_per_user, min_users)
    for mechanism in first_choices:
        try:
            return mechanism, mechanism.design(asked, max_items or mechanism.default_max_items)
        except UsageError:
            continue
    return last, last.design(asked, max_items or last.default_max_items)


def _candidates(
    asked: Asked, max_items: int | None, items_per_user: float | None, min_users: int
) -> list[Mechanism]:
    """Return the mechanisms to try, best first; the last always works where any does."""
    auto, m = Auto(items_per_user, min_users), min_users
    sips, cumulative = Sips(min_users=m), Cumulative(min_users=m)
    if not isinstance(asked, EpsilonDelta):
        return [sips] if max_items and max_items < _FEW_ITEMS else [cumulative, sips]
    if max_items == 1:
        return [Single(m), sips]
    if auto.items_per_user is not None:
        short = auto.items_per_user <= _SHORT and m < _MANY_USERS
        return [Matching(min_users=m) if short else cumulative, sips]
    if max_items and max_items < _FEW_ITEMS:
        short = max_items <= _SHORT and m < _MANY_USERS
        return [Matching(min_users=m) if short else SipsRule(min_users=m), sips]
    return [auto, cumulative, sips]


CHOICES: Final = (
    (Matching.name, "where people have few items each"),
    (Cumulative.name, "where they have many: a private look at the data decides"),
    (SipsRule.name, f"for --max-items from {_SHORT + 1} to {_FEW_ITEMS - 1}"),
    (Sips.name, "for a tiny --epsilon, or few --max-items with --rho"),
    (Single.name, "for --max-items 1"),
)
"""What `auto` chooses, and when."""
