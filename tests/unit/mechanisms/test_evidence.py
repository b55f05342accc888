"""The numbers of the theorem in evidence.py, against the noise itself.

What the theorem has expectations of is simulated here from Gaussians, without lattice, chain or
slopes. Bounds must be above that, less five standard errors (a false alarm in three million), and
not far above it. Survival is checked against Gauss–Legendre quadrature, good to 1e-12.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from dp_sips import UsageError, plan
from dp_sips.mechanisms import Cumulative, evidence
from dp_sips.mechanisms.cumulative import EvidenceGuarantee
from dp_sips.mechanisms.evidence import (
    STEP_BITS,
    JointBound,
    Schedule,
    calibrate_evidence,
    calibrate_evidence_rho,
    joint_bound,
    survival,
)
from dp_sips.privacy.budget import gaussian_delta

Floats = NDArray[np.float64]

# Float32 walks and ndtr, against bounds that are exact where there is one item.
ROUNDING = 1 + 1e-7
SCHEDULES = {
    "default": Cumulative().schedule(),
    "one round": Cumulative(rounds=1).schedule(),
    "two rounds": Cumulative(rounds=2).schedule(),
    "gentle": Cumulative(rounds=6, growth=1.0, first_drop=-3.0, last_drop=0.5).schedule(),
    "harsh": Cumulative(rounds=5, growth=2.0, first_drop=1.0, last_drop=4.0).schedule(),
    "falling": Cumulative(rounds=3, growth=0.5, first_drop=0.0, last_drop=-2.0).schedule(),
}
# Half of all items are hopeless after a round that is nearly nothing: D(t) rises, falls and rises.
UNEVEN = Schedule((0.003, 0.997), (1.5, 0.0), 0.2, 8.0)


def all_of(schedules: Sequence[str] = tuple(SCHEDULES)) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("schedule", [SCHEDULES[s] for s in schedules], ids=schedules)


def quadrature(schedule: Schedule) -> list[float]:
    """Return the chance that noise alone is active in each round, by 300 nodes a round."""
    nodes, weights = np.polynomial.legendre.leggauss(300)
    chances, before = [1.0], 0.0
    places, masses = np.array([0.0]), np.array([1.0])
    for spent, drop in zip(schedule.spent[:-1], schedule.drops, strict=False):
        low, high = drop * math.sqrt(spent), 9.0
        now = low + (nodes + 1) * (high - low) / 2
        deviation = math.sqrt(spent - before)
        steps = (now[:, None] - places[None, :]) / deviation
        density = np.exp(-(steps**2) / 2) @ masses / (deviation * math.sqrt(2 * math.pi))
        places, masses, before = now, density * weights * (high - low) / 2, spent
        chances.append(float(masses.sum()))
    return chances


class TestSurvival:
    @all_of()
    def test_below_the_truth_and_near_it(self, schedule: Schedule) -> None:
        for bound, truth in zip(survival(schedule), quadrature(schedule), strict=True):
            # Each round rounds down by half of a step, 0.002, on average.
            assert truth - 1e-3 * len(schedule.shares) <= bound <= truth

    def test_first_round_has_all(self) -> None:
        assert survival(Cumulative().schedule())[0] == 1.0

    @all_of()
    def test_never_rises(self, schedule: Schedule) -> None:
        assert (np.diff(survival(schedule)) <= 0).all()

    @all_of(["default", "harsh"])
    def test_quadrature_is_what_gaussians_do(self, schedule: Schedule) -> None:
        alive = survivors(schedule, 100_000, 1, seed=1)[:, 0, :].mean(axis=0)
        for found, truth in zip(alive, quadrature(schedule), strict=True):
            assert abs(found - truth) <= 5 * math.sqrt(truth * (1 - truth) / 100_000) + 1e-9

    def test_first_round_of_next_to_nothing(self) -> None:
        """The lattice is wider than the noise: a poor bound, and still one."""
        rounds = Schedule((1e-9, 1e-5, 1.0), (-2.0, -2.0, 0.0), 0.2, 8.0)
        assert survival(rounds)[1] <= ndtr(2.0)
        assert 0 <= survival(rounds)[2] <= survival(rounds)[1]


def survivors(schedule: Schedule, trials: int, items: int, seed: int) -> NDArray[np.bool_]:
    """Return whether noise alone is active: trials × items × rounds."""
    random = np.random.default_rng(seed)
    walk = np.zeros((trials, items), dtype=np.float32)
    alive = np.ones((trials, items), dtype=np.bool_)
    found = []
    for share, spent, drop in zip(schedule.fractions, schedule.spent, schedule.drops, strict=True):
        found.append(alive.copy())
        walk += random.standard_normal(walk.shape, dtype=np.float32) * np.float32(math.sqrt(share))
        alive &= walk >= drop * math.sqrt(spent)
    return np.stack(found, axis=2)


def mean(values: Floats) -> tuple[float, float]:
    """Return a mean and its standard error."""
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


def noise_deltas(epsilon: float, mu: Floats) -> Floats:
    """δ_G for an array; good enough for values far above 1e-12."""
    mu = np.maximum(mu, 1e-9)
    return np.asarray(
        ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    )


@cache
def counts(schedule: Schedule, items: int) -> NDArray[np.int64]:
    """Return how many of some items survive: trials × rounds."""
    trials = min(20_000, max(1000, 200_000 // max(items, 1)))
    return np.asarray(survivors(schedule, trials, items, seed=items).sum(axis=1))


def simulated_release(
    schedule: Schedule, t: int, rho: float, thresholds: Floats
) -> tuple[float, float]:
    """Return D(t) and its standard error."""
    weights = 1 / np.sqrt(1 + counts(schedule, t - 1))
    shared = np.cumsum(schedule.fractions * weights, axis=1) / schedule.spent
    tails = ndtr((shared - thresholds) * np.sqrt(2 * rho * schedule.spent))
    return mean(t * tails.sum(axis=1))


def simulated_noise(
    schedule: Schedule, t: int, max_items: int, epsilon: float, rho: float
) -> tuple[float, float]:
    """Return G(t) and its standard error."""
    rest = max_items - t
    alive = counts(schedule, t)
    norms = rest / np.maximum(rest + alive, 1) if rest else np.zeros(alive.shape)
    return mean(noise_deltas(epsilon, np.sqrt(2 * rho * (norms @ schedule.fractions))))


def at(bound: JointBound, t: int) -> int:
    return int(np.searchsorted(bound._starts, t, side="right")) - 1


class TestRelease:
    """D(t), for blocks of a single t."""

    @all_of(["default", "gentle", "harsh"])
    @pytest.mark.parametrize(("t", "max_items"), [(1, 1), (7, 20), (16, 16), (60, 60), (300, 300)])
    @pytest.mark.parametrize(("rho", "quantile"), [(0.12, 5.0), (1.0, 3.0), (1.0, 5.0)])
    def test_above_the_truth_and_near_it(
        self, schedule: Schedule, t: int, max_items: int, *, rho: float, quantile: float
    ) -> None:
        thresholds = schedule.thresholds(rho, quantile)
        bound = joint_bound(schedule, max_items)
        claimed = bound.release(rho, thresholds)[at(bound, t)]
        truth, error = simulated_release(schedule, t, rho, thresholds)
        near = 1.15 if rho < 1 else 1.35 if quantile < 4 else 1.9
        assert (truth - 5 * error) / ROUNDING <= claimed <= near * truth + 5 * error

    @pytest.mark.parametrize("rho", [0.05, 0.5, 5.0])
    @pytest.mark.parametrize("t", [1, 2, 10, 100])
    def test_one_round_is_exact(self, rho: float, t: int) -> None:
        schedule = SCHEDULES["one round"]
        (threshold,) = schedule.thresholds(rho, 4.0)
        exact = t * ndtr((1 / math.sqrt(t) - threshold) * math.sqrt(2 * rho))
        claimed = joint_bound(schedule, t).release(rho, np.array([threshold]))[-1]
        assert exact <= claimed <= (1.1 if rho < 1 else 200) * exact

    @all_of(["default", "harsh"])
    def test_falls_with_thresholds(self, schedule: Schedule) -> None:
        bound = joint_bound(schedule, 60)
        found = [bound.release(0.3, schedule.thresholds(0.3, q)) for q in (2.0, 3.0, 4.5, 6.0)]
        for higher, lower in pairwise(found):
            assert (higher > lower).all()

    def test_every_t_of_a_block(self) -> None:
        """D(t) is not monotone: the bound of a block holds for all of it, not only for its end."""
        rho = 1.0
        thresholds = UNEVEN.thresholds(rho, 3.5)
        bound = joint_bound(UNEVEN, 193)
        ends = np.append(bound._starts[1:] - 1, 193)
        found = bound.release(rho, thresholds)
        alone = np.array([joint_bound(UNEVEN, t).release(rho, thresholds)[-1] for t in ALL])
        assert (np.diff(alone) < 0).any()
        for start, end, claimed in zip(bound._starts, ends, found, strict=True):
            inside = alone[(start <= ALL) & (end >= ALL)]
            assert claimed * (1 + 1e-8) >= inside.max(initial=0.0)
        assert (found > np.array([alone_at(alone, end) for end in ends]) * (1 + 1e-4)).any()

    def test_parts_of_rounds_add_up(self) -> None:
        schedule = SCHEDULES["default"]
        thresholds = schedule.thresholds(0.12, 4.0)
        bound = joint_bound(schedule, 60)
        parts = bound.release_by_round(0.12, thresholds)
        assert len(parts) == 12
        assert sum(parts) == pytest.approx(bound.threshold_delta(0.12, thresholds))

    @pytest.mark.parametrize("max_items", [193, 194, 195, 217, 400, 5000])
    def test_beyond_what_is_tracked_it_grows_with_t(self, max_items: int) -> None:
        schedule = SCHEDULES["two rounds"]
        thresholds = schedule.thresholds(0.3, 4.0)
        found = joint_bound(schedule, max_items).release(0.3, thresholds)
        first = joint_bound(schedule, 193).release(0.3, thresholds)[-1]
        assert found[-1] == pytest.approx(first / 193 * max_items)


ALL = np.arange(100, 194)


def alone_at(alone: Floats, t: int) -> float:
    return float(alone[t - ALL[0]]) if t >= ALL[0] else math.inf


class TestNoise:
    """G(t), at the start of its block."""

    @all_of(["default", "gentle", "harsh"])
    @pytest.mark.parametrize(
        ("t", "max_items"), [(1, 2), (1, 300), (3, 20), (10, 300), (16, 20), (136, 300)]
    )
    @pytest.mark.parametrize(("epsilon", "rho"), [(1.765, 0.12), (0.5, 0.2), (6.0, 2.0)])
    def test_above_the_truth_and_near_it(
        self, schedule: Schedule, t: int, max_items: int, epsilon: float, rho: float
    ) -> None:
        bound = joint_bound(schedule, max_items)
        assert t in bound._starts
        claimed = bound.noise(epsilon, rho)[at(bound, t)]
        truth, error = simulated_noise(schedule, t, max_items, epsilon, rho)
        # Where little norm is left, G is next to nothing beside D, and need not be sharp.
        whole = gaussian_delta(epsilon, math.sqrt(2 * rho))
        assert (truth - 5 * error) / ROUNDING <= claimed <= 1.1 * truth + 0.01 * whole

    @all_of()
    def test_falls_with_t_and_grows_with_rho(self, schedule: Schedule) -> None:
        bound = joint_bound(schedule, 100)
        found = [bound.noise(1.0, rho) for rho in (0.05, 0.1, 0.3, 1.0)]
        for noise in found:
            assert (np.diff(noise) <= 1e-15).all()
        for smaller, larger in pairwise(found):
            assert (smaller <= larger).all()

    def test_never_more_than_without_own_items(self) -> None:
        for max_items in (1, 2, 50, 5000):
            bound = joint_bound(SCHEDULES["default"], max_items)
            whole = gaussian_delta(1.0, math.sqrt(0.2))
            assert (bound.noise(1.0, 0.1) <= whole * (1 + 1e-6)).all()

    def test_all_novel_moves_nothing(self) -> None:
        """y = 0 for t = Δ0; the first cell ends at 1/400, so a trace of δ is left."""
        assert joint_bound(SCHEDULES["default"], 20).noise(1.765, 0.12)[-1] < 1e-15


class TestDelta:
    @all_of()
    def test_falls_with_epsilon(self, schedule: Schedule) -> None:
        bound = joint_bound(schedule, 20)
        thresholds = schedule.thresholds(0.3, 4.0)
        found = [bound.delta(e, 0.3, thresholds) for e in np.geomspace(0.01, 20, 25)]
        assert (np.diff(found) <= 0).all()
        assert found[0] > 2 * found[-1]

    def test_no_less_than_the_gaussian_alone(self) -> None:
        schedule = SCHEDULES["default"]
        bound = joint_bound(schedule, 20)
        for epsilon in (0.1, 1.0, 3.0):
            found = bound.delta(epsilon, 0.3, schedule.thresholds(0.3, 30.0))
            assert found >= gaussian_delta(epsilon, math.sqrt(0.6))

    def test_large_epsilon_leaves_the_novel_items(self) -> None:
        schedule = SCHEDULES["default"]
        bound, thresholds = joint_bound(schedule, 20), schedule.thresholds(0.3, 4.0)
        own = bound.threshold_delta(0.3, thresholds)
        assert bound.delta(60.0, 0.3, thresholds) == pytest.approx(own)

    def test_at_most_one(self) -> None:
        schedule = SCHEDULES["two rounds"]
        bound = joint_bound(schedule, 50)
        assert bound.delta(1e-6, 1e4, schedule.thresholds(1e4, 0.0)) == 1.0
        assert bound.threshold_delta(1e4, schedule.thresholds(1e4, 0.0)) == 1.0

    @all_of(["default", "harsh"])
    @pytest.mark.parametrize("max_items", [1, 3, 30, 300])
    def test_is_the_worst_number_of_novel_items(self, schedule: Schedule, max_items: int) -> None:
        thresholds = schedule.thresholds(0.12, 4.0)
        claimed = joint_bound(schedule, max_items).delta(1.765, 0.12, thresholds)
        for t in sorted({1, max_items // 10 + 1, max_items // 2 + 1, max_items}):
            release, one = simulated_release(schedule, t, 0.12, thresholds)
            noise, other = simulated_noise(schedule, t, max_items, 1.765, 0.12)
            assert release + noise - 5 * (one + other) <= claimed


class TestThresholds:
    def test_last_is_lowest_in_deviations(self) -> None:
        schedule = SCHEDULES["default"]
        levels = (schedule.thresholds(0.12, 5.0) - 0.2) * np.sqrt(2 * 0.12 * schedule.spent)
        assert levels[-1] == pytest.approx(5.0)
        assert levels[:-1] == pytest.approx(math.sqrt(25 + 2 * math.log(8)))

    def test_spent_ends_at_one(self) -> None:
        for schedule in SCHEDULES.values():
            assert schedule.spent[-1] == 1.0
            assert schedule.fractions.sum() == pytest.approx(1.0)
            assert (np.diff(schedule.spent) > 0).all()


class TestThinning:
    @pytest.mark.parametrize("chance", [0.0, 1e-12, 0.3, 0.977, 1 - 1e-12, 1.0])
    def test_rows_are_binomials(self, chance: float) -> None:
        from scipy import stats

        table = evidence._thinning(chance)
        assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), rel=1e-10)
        for row in (0, 1, 5, 192):
            expected = stats.binom.pmf(np.arange(193), row, chance)
            assert table[row] == pytest.approx(expected, rel=1e-9, abs=1e-300)


class TestBlocks:
    @pytest.mark.parametrize("max_items", [1, 2, 17, 18, 192, 193, 300, 100_000])
    def test_cover_every_t(self, max_items: int) -> None:
        starts = evidence._starts(max_items)
        assert starts[0] == 1
        assert starts[-1] == max_items
        assert (np.diff(starts) >= 1).all()


SIZES = [1, 2, 3, 17, 193, 300, 100_000]


class TestCalibration:
    @pytest.mark.parametrize("max_items", SIZES)
    @pytest.mark.parametrize("rounds", [1, 4])
    def test_holds_in_floats_and_spends_it_all(self, max_items: int, rounds: int) -> None:
        schedule = Cumulative(rounds=rounds).schedule()
        bound = joint_bound(schedule, max_items)
        for epsilon, delta in [
            (0.01, 1e-9), (0.1, 0.1), (0.5, 1e-6), (1.765, 4.96e-5), (3.0, 1e-12), (10.0, 1e-5),
            (60.0, 1e-8),
        ]:  # fmt: skip
            rho, thresholds = calibrate_evidence(epsilon, delta, schedule, max_items)
            assert 0.99 * delta <= bound.delta(epsilon, rho, thresholds) <= delta

    @pytest.mark.parametrize("max_items", [1, 300])
    def test_of_the_default(self, max_items: int) -> None:
        schedule = SCHEDULES["default"]
        rho, thresholds = calibrate_evidence(1.0, 1e-5, schedule, max_items)
        spent = joint_bound(schedule, max_items).delta(1.0, rho, thresholds)
        assert 0.99e-5 <= spent <= 1e-5

    @pytest.mark.parametrize("max_items", SIZES)
    @pytest.mark.parametrize("rho", [1e-4, 0.1, 3.0, 900.0, 1e4, 1e7])
    def test_zcdp_holds_in_floats(self, max_items: int, rho: float) -> None:
        """Where noise is tiny, 40 deviations are less than the weight of a user's only item."""
        schedule = SCHEDULES["two rounds"]
        for delta in (1e-10, 1e-5, 0.1):
            thresholds = calibrate_evidence_rho(rho, delta, schedule, max_items)
            spent = joint_bound(schedule, max_items).threshold_delta(rho, thresholds)
            assert 0.9 * delta <= spent <= delta

    def test_large_epsilon(self) -> None:
        schedule = SCHEDULES["two rounds"]
        for epsilon in (100.0, 1000.0, 5000.0):
            rho, thresholds = calibrate_evidence(epsilon, 1e-6, schedule, 10)
            assert thresholds[-1] > 1 / math.sqrt(10)
            assert joint_bound(schedule, 10).delta(epsilon, rho, thresholds) <= 1e-6

    def test_better_with_more_budget(self) -> None:
        schedule = SCHEDULES["default"]
        for values in ([0.3, 1.0, 3.0], [1e-9, 1e-6, 1e-3]):
            made = [
                calibrate_evidence(*((v, 1e-6) if v >= 0.3 else (1.0, v)), schedule, 20)
                for v in values
            ]
            assert [rho for rho, _ in made] == sorted(rho for rho, _ in made)
            last = [float(levels[-1]) for _, levels in made]
            assert last == sorted(last, reverse=True)

    def test_costs_more_with_more_items(self) -> None:
        schedule = SCHEDULES["two rounds"]
        last = [
            float(calibrate_evidence_rho(0.3, 1e-6, schedule, most)[-1])
            for most in (10, 300, 10**5)
        ]
        assert last == sorted(last)

    def test_golden_numbers(self) -> None:
        made = plan(Cumulative(), epsilon=1.765, delta=4.96e-5, max_items=300)
        assert made.guarantee.rho == pytest.approx(0.121, abs=5e-4)
        assert made.rounds[-1].threshold == pytest.approx(10.97, abs=0.02)
        assert made.bounds.once
        # Separate accounting of the two would have left each its part of delta only.
        separate = made.guarantee.threshold_delta + gaussian_delta(
            1.765, math.sqrt(2 * made.guarantee.rho)
        )
        assert separate > 1.9 * 4.96e-5


class TestGuarantee:
    @pytest.mark.parametrize("max_items", [1, 20, 300])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-8), (1.765, 4.96e-5), (5.0, 1e-3)])
    def test_round_trips(self, epsilon: float, delta: float, max_items: int) -> None:
        made = plan(Cumulative(rounds=4), epsilon=epsilon, delta=delta, max_items=max_items)
        held = made.guarantee
        assert isinstance(held, EvidenceGuarantee)
        assert held.delta(epsilon=epsilon) <= delta
        assert held.delta(epsilon=epsilon) == pytest.approx(delta, rel=0.01)
        assert held.epsilon(delta=delta) <= epsilon
        assert held.epsilon(delta=delta) == pytest.approx(epsilon, rel=0.01)
        for other in (2 * delta, 5 * delta):
            assert held.delta(epsilon=held.epsilon(delta=other)) <= other * (1 + 1e-9)

    @pytest.mark.parametrize("asked", [{"epsilon": 28.0}, {"epsilon": 0.1}, {"rho": 3.0}])
    def test_delta_pays_for_every_cell_of_the_far_tails(self, asked: dict[str, float]) -> None:
        """Beyond 10.5 deviations, a cell of the lattice is off by a step of u at each border."""
        made = plan(Cumulative(), **asked, delta=1e-6, max_items=300)
        cells = sum(2 * (13.2 - 10.5) * step.sigma * 2**STEP_BITS for step in made.rounds)
        assert made.guarantee.sampler.tail >= 300 * math.exp(28) * cells * 2 * 2.0**-128
        assert made.guarantee.sampler.tail < 1e-9

    def test_zcdp_is_the_weaker_statement_about_novel_items(self) -> None:
        made = plan(Cumulative(rounds=4), rho=0.1, delta=1e-6, max_items=50)
        held = made.guarantee
        assert held.rho == 0.1
        assert held.threshold_delta <= 1e-6
        for epsilon in (0.5, 1.0, 3.0):
            zcdp = held.delta(epsilon=epsilon, accounting="zcdp")
            assert held.delta(epsilon=epsilon) <= zcdp

    def test_less_than_the_thresholds_spend_is_refused(self) -> None:
        made = plan(Cumulative(rounds=2), rho=0.1, delta=1e-4, max_items=5)
        with pytest.raises(UsageError, match="delta"):
            made.guarantee.epsilon(delta=1e-5)

    def test_rounds_are_the_theorems(self) -> None:
        made = plan(Cumulative(rounds=3), rho=0.5, delta=1e-3, max_items=4)
        schedule = Cumulative(rounds=3).schedule()
        for index, step in enumerate(made.table()):
            share, spent = schedule.fractions[index], schedule.spent[index]
            assert step["rho"] == pytest.approx(0.5 * share)
            assert step["sigma"] >= 1 / math.sqrt(2 * 0.5 * share)
            level = schedule.drops[index] / math.sqrt(2 * 0.5 * spent)
            assert step["drop"] == pytest.approx(level - 2.0 ** -(STEP_BITS + 1))
        assert sum(step["rho"] for step in made.table()) == pytest.approx(0.5)
        assert sum(step["delta"] for step in made.table()) <= 1e-3
