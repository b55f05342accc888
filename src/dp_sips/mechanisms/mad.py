"""MAD and MAD2R (Chen et al. 2025): DPSU's idea, in parallel.

What popular items have above their need goes to the other items of their holders. MAD is one round;
in MAD2R, a first round tells the second where weight is needed: items that it shows to be hopeless
are given up, and those that will do well anyway get less of a user's weight.

    a round:  w(u) ← Σ 1/d over u's holders, d the size of a holder's set     Spread.first
              r(u) ← the part of w(u) above the target                       Spread.signal
              each holder gives W(u) − r(u)/d + its share of what returns     Spread.second
              release u where its weight + N(0, σ²) ≥ T

Guarantee: δ-approximate ρ-zCDP, or (ε, δ)-DP: an additional user moves the weights by an L2 norm of
at most 1, through others too (the theorem in `adaptive.py`), and two rounds are an adaptive
composition.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.mechanisms import adaptive
from dp_sips.mechanisms.adaptive import MOST_ADAPTIVE, WIDE_BITS, Spread, bias_edges, cells
from dp_sips.mechanisms.base import (
    Asked,
    Design,
    EpsilonDelta,
    check_few_items,
    table_of_rounds,
)
from dp_sips.mechanisms.turns import check_buffer
from dp_sips.mechanisms.weighted_gaussian import NOISY_ROUNDS
from dp_sips.privacy.arrays import Blocks, Bools, Claims, Floats, Weights
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import Budget, compose
from dp_sips.privacy.contributions import MOST, Contributions, Evidence
from dp_sips.privacy.decide import decide
from dp_sips.privacy.guarantee import Guarantee, SamplerCost, cascade_loss
from dp_sips.privacy.noise import Scrambler, gaussian
from dp_sips.privacy.threshold import sigma, threshold
from dp_sips.privacy.weights import WHOLE_CLAIM
from dp_sips.validation import check_finite, check_number, check_whole

# An edge nearer to the threshold than this many deviations would make a useless interval.
_NARROW: Final = 0.02

_WORDS: Final = """\
A user with k items gives about 1/√k to each, and moves what popular items do not need to
its other items. An item is released in the first round in which its weight plus noise
reaches the threshold; a first of two rounds tells the second which items need weight."""


def decide_and_note(
    blocks: Blocks,
    weights: Weights,
    evidence: Evidence,
    *,
    sigma: float,
    threshold: float,
    drop: float,
    scrambler: Scrambler,
    unit_bits: int,
) -> tuple[Evidence, Bools, Claims]:
    """Release above the threshold, drop the hopeless, and keep the noisy weights of the others.

    Guarantee: as `decide`; what is kept is the mechanism's own output, for a later round to use.
    Public: σ, the threshold, the drop level and the unit. Sensitive: everything else.
    """
    del evidence
    noisy = weights / (1 << unit_bits) + sigma * gaussian(scrambler(blocks))
    claims = np.where((weights > 0) & (noisy >= drop), WHOLE_CLAIM, 0).astype(np.uint8)
    return noisy, (weights > 0) & (noisy >= threshold), claims


@dataclass(frozen=True)
class AdaptiveRound:
    """A round in which what popular items do not need goes to other items of their holders.

    Attributes:
        rho: The round's part of ρ.
        delta: The round's part of δ.
        sigma: The standard deviation of its Gaussian noise, in units of a user's whole weight.
        threshold: The noisy weight from which an item is released.
        max_items: Δ0, how many items of a user count.
        spread: What a user gives to each of its items.
        drop: The noisy weight below which an item is given up; none in the last round.
    """

    rho: float
    delta: float
    sigma: float
    threshold: float
    max_items: int
    spread: Spread
    drop: float | None = None

    def run(self, contributions: Contributions, noise: Scrambler) -> None:
        """Spread weight in two passes, and release what reaches the threshold."""
        initial = contributions.spread(self.spread.first, self.max_items)
        weights = contributions.spread(
            self.spread.second, self.max_items, initial, self.spread.signal
        )
        judge: dict[str, Any] = {
            "sigma": self.sigma,
            "threshold": self.threshold,
            "scrambler": noise,
            "unit_bits": WIDE_BITS,
        }
        if self.drop is None:
            contributions.remove(contributions.decide(weights, partial(decide, **judge)))
            return
        note = partial(decide_and_note, drop=self.drop, **judge)
        contributions.remove(contributions.decide_on_evidence(weights, note))

    def row(self) -> dict[str, Any]:
        """Return the public numbers."""
        return {name: value for name, value in asdict(self).items() if name != "max_items"}


@dataclass(frozen=True)
class Mad:
    """MAD, max-adaptive-degree weighting (Chen et al. 2025): DPSU's idea, in parallel.

    Attributes:
        buffer: Target weight of an item: threshold + `buffer`·σ.
        largest: d_max: users with more items than this do not adapt.
    """

    buffer: float = 2.0
    largest: int = 50

    name: ClassVar[str] = "mad"
    default_max_items: ClassVar[int] = 100
    sequential: ClassVar[bool] = False
    noise: ClassVar[str] = "Gaussian"
    good_for: ClassVar[str] = "one adaptive round, on any cluster"

    def __post_init__(self) -> None:
        check_buffer(self.buffer)
        check_whole("largest", self.largest, least=2, most=MOST_ADAPTIVE)

    def design(self, asked: Asked, max_items: int) -> Design:
        """Use Weighted Gaussian's noise and threshold, and a target above it."""
        check_few_items(self.name, max_items)
        sampler = SamplerCost.of_cascade(rounds=1)
        budget = asked.budget(sampler, lambda b: threshold(b, max_items))
        step = self._round(budget, max_items)
        guarantee = Guarantee(budget.rho, budget.delta, sampler)
        return Design((step,), guarantee, Bounds(max_items, once=True))

    def chances(self, rounds: Sequence[AdaptiveRound], holders: Floats, items: int) -> Floats:
        """Return the chance where only this one of the holders' items is popular."""
        return _chances(rounds, holders, items)

    def words(self, rounds: Sequence[AdaptiveRound]) -> str:
        """Say what the rounds do."""
        return "\n".join((_WORDS, table_of_rounds([r.row() for r in rounds], NOISY_ROUNDS)))

    def _round(
        self, budget: Budget, max_items: int, *, lowest: float = 1.0, highest: float = 1.0
    ) -> AdaptiveRound:
        moves = adaptive.sensitivity(self.largest)
        noise = moves * sigma(budget)
        level = threshold(budget, max_items, weight=highest, sensitivity=moves)
        target = max(1.0, level + self.buffer * noise)
        if target > adaptive.LARGEST:
            raise UsageError(
                f"an item would need a weight of {target:g}, too much for {self.name}: "
                "give a larger epsilon or rho"
            )
        spread = Spread(target, self.largest, lowest, highest)
        return AdaptiveRound(budget.rho, budget.delta, noise, level, max_items, spread)


@dataclass(frozen=True)
class Mad2R(Mad):
    """MAD2R: a first round of MAD tells the second where weight is needed (Chen et al. 2025).

    Attributes:
        share: The first round's share of the budget: of ρ and δ, or with "basic" of ε and δ.
        lowest: b_min: no item gets less of a user's weight, relative to an equal split …
        highest: b_max: … and none more.
        lower: C_lb: an item does well if its noisy weight less `lower`·σ is above the threshold.
        upper: C_ub: it is hopeless if its noisy weight plus `upper`·σ is below it.
        composition: "exact", or "basic" as published: ε and δ of the rounds add up.
    """

    share: float = 0.1
    lowest: float = 0.5
    highest: float = 2.0
    lower: float = 1.0
    upper: float = 3.0
    composition: str = "exact"

    name: ClassVar[str] = "mad2r"
    good_for: ClassVar[str] = "two adaptive rounds, on any cluster"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, low, high in (("share", 0, 1), ("lowest", 0, 1), ("highest", 1, math.inf)):
            value = check_number(name, getattr(self, name))
            inside = low < value < high or (value == 1 and name != "share")
            if not inside:
                raise UsageError(f"{name} must be between {low} and {high}, got {value}")
        check_finite("lower", self.lower)
        check_finite("upper", self.upper)
        if self.composition not in {"exact", "basic"}:
            raise UsageError(f"composition must be 'exact' or 'basic', got {self.composition!r}")

    def design(self, asked: Asked, max_items: int) -> Design:
        """Make two rounds, of which the second has biases from the first.

        The sampler's part depends on the noise, a little, and the noise on the sampler's part.
        """
        check_few_items(self.name, max_items)
        sampler = SamplerCost.of_cascade(rounds=2)
        while True:
            first, second = self._two_rounds(asked, max_items, sampler)
            assert first.drop is not None
            levels = (first.threshold, first.drop, *second.spread.edges)
            needed = cascade_loss(1 + cells(levels, first.sigma))
            if needed <= sampler.loss:
                break
            sampler = replace(sampler, loss=1.01 * needed)
        spent = compose(Budget(r.rho, r.delta) for r in (first, second))
        guarantee = Guarantee(spent.rho, spent.delta, sampler)
        return Design((first, second), guarantee, Bounds(max_items, once=True))

    def _two_rounds(
        self, asked: Asked, max_items: int, sampler: SamplerCost
    ) -> tuple[AdaptiveRound, AdaptiveRound]:
        parts = self._parts(asked, max_items, sampler)
        second = self._round(parts[1], max_items, lowest=self.lowest, highest=self.highest)
        first = self._round(parts[0], max_items)
        first = replace(first, drop=second.threshold - self.upper * first.sigma)
        edges: tuple[float, ...] = ()
        if second.threshold > 0:  # else every item does well
            edges = bias_edges(self.lower * first.sigma, second.threshold, self.lowest)
        edges = tuple(e for e in edges if abs(e - first.threshold) > _NARROW * first.sigma)
        return first, replace(second, spread=replace(second.spread, edges=edges))

    def _parts(self, asked: Asked, max_items: int, sampler: SamplerCost) -> Sequence[Budget]:
        """Return the budgets of the two rounds."""
        shares = self.share, 1 - self.share
        if self.composition == "basic" and isinstance(asked, EpsilonDelta):
            epsilon, delta = asked.point(sampler)
            return [
                Budget.from_epsilon(
                    part * epsilon,
                    part * delta,
                    threshold_delta=part * delta / 2,
                    accounting="gaussian",
                )
                for part in shares
            ]

        def level(budget: Budget) -> float:
            return threshold(budget.split(shares)[-1], max_items, weight=self.highest)

        return asked.budget(sampler, level).split(shares)


def _chances(rounds: Sequence[AdaptiveRound], holders: Floats, items: int) -> Floats:
    """Return the chance where only this one of the holders' items is popular.

    Of two rounds, the first may release the item, drop it, or tell the second how well it does.
    """
    from scipy.special import ndtr

    first, *later = rounds
    weights = _spread_weights(first, holders, items, 0.0)
    missed = ndtr((first.threshold - weights) / first.sigma)
    if not later:
        return np.asarray(1 - missed)
    second, found = later[0], 1 - missed
    edges = [e for e in second.spread.edges if e < first.threshold]
    cells = [first.drop or -math.inf, *edges, first.threshold]
    for low, high in pairwise(cells):
        odds = ndtr((high - weights) / first.sigma) - ndtr((low - weights) / first.sigma)
        again = _spread_weights(second, holders, items, low)
        found += np.maximum(odds, 0) * ndtr((again - second.threshold) / second.sigma)
    return np.asarray(np.minimum(found, 1))


def _spread_weights(step: AdaptiveRound, holders: Floats, items: int, evidence: float) -> Floats:
    """Return the weight of an item with this evidence, each of whose holders has `items` items."""
    size, spread = np.array([items]), step.spread
    alone = np.zeros(items, dtype=np.int64)
    initial = np.minimum(holders * float(spread.first(size, alone)[0]), MOST).astype(np.uint64)
    signals = spread.signal(initial, np.full(len(holders), evidence))
    given = np.empty(len(holders))
    for n, signal in enumerate(signals):
        alone[0] = signal
        given[n] = spread.second(size, alone)[0]
    return holders * given / 2.0**WIDE_BITS
