"""The numbers of the theorem in evidence.py, against the noise itself.

What the theorem has expectations of is simulated here from Gaussians, without lattice, quantiles or
chords. Bounds must be above that, less five standard errors (a false alarm in three million), and
not far above it. Chances of claims are checked against Gauss–Legendre quadrature, good to 1e-12.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr

from dp_sips import UsageError, plan
from dp_sips.mechanisms import Cumulative, evidence
from dp_sips.mechanisms.claims import (
    CLAIMS,
    UPWARDS,
    ClaimSums,
    Schedule,
    claim_chances,
    claim_quantiles,
)
from dp_sips.mechanisms.cumulative import EvidenceGuarantee
from dp_sips.mechanisms.evidence import (
    STEP_BITS,
    JointBound,
    calibrate_evidence,
    calibrate_evidence_rho,
    joint_bound,
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
    "harsh": Cumulative(
        rounds=5, growth=2.0, first_drop=1.0, last_drop=4.0, ramp=0.5, trust=1.3
    ).schedule(),
    "falling": Cumulative(
        rounds=3, growth=0.5, first_drop=0.0, last_drop=-2.0, ramp=0.0, trust=0.8
    ).schedule(),
}
# Half of all items are hopeless after a round that is nearly nothing.
UNEVEN = Schedule((0.003, 0.997), 1.0, (1.5, 0.0), 1.0, 0.2, 8.0)


def all_of(schedules: Sequence[str] = tuple(SCHEDULES)) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("schedule", [SCHEDULES[s] for s in schedules], ids=schedules)


def quadrature(schedule: Schedule) -> list[Floats]:
    """Return the chance that noise alone has at least each claim, by 100 nodes a claim."""
    nodes, weights = np.polynomial.legendre.leggauss(100)
    chances, before = [np.ones(len(CLAIMS) - 1)], 0.0
    places, masses = np.array([0.0]), np.array([1.0])
    for index, time in enumerate(schedule.variances[:-1]):
        edges = [*schedule.edges(index) * math.sqrt(time), 9.0 * math.sqrt(time)]
        deviation = math.sqrt(time - before)
        parts = [
            (low + (nodes + 1) * (high - low) / 2, weights * (high - low) / 2)
            for low, high in pairwise(edges)
        ]
        now, widths = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        steps = (now[:, None] - places[None, :]) / deviation
        density = np.exp(-(steps**2) / 2) @ masses / (deviation * math.sqrt(2 * math.pi))
        places, masses, before = now, density * widths, time
        sums = masses.reshape(len(parts), -1).sum(axis=1)
        chances.append(np.cumsum(sums[::-1])[::-1])
    return chances


def at_least(schedule: Schedule) -> Floats:
    """Return the bound on the chance of at least each claim except 0 (rounds × claims)."""
    return np.asarray(np.cumsum(claim_chances(schedule)[:, :0:-1], axis=1)[:, ::-1])


class TestClaims:
    @all_of()
    def test_below_the_truth_and_near_it(self, schedule: Schedule) -> None:
        for bound, truth in zip(at_least(schedule), quadrature(schedule), strict=True):
            # Each round rounds down by half of a step, 0.004, on average.
            assert (bound <= truth + 1e-12).all()
            assert (bound >= truth - 2e-3 * len(schedule.shares)).all()

    def test_first_round_has_all(self) -> None:
        assert (at_least(SCHEDULES["default"])[0] == 1.0).all()

    @all_of()
    def test_what_is_dropped_stays_dropped(self, schedule: Schedule) -> None:
        assert (np.diff(at_least(schedule)[:, 0]) <= 1e-9).all()

    @all_of(["default", "harsh"])
    def test_quadrature_is_what_gaussians_do(self, schedule: Schedule) -> None:
        found = claims(schedule, 100_000, 1, seed=1)[:, 0, :]
        for index, truth in enumerate(quadrature(schedule)):
            for claim, chance in zip(CLAIMS[1:], truth, strict=True):
                seen = (found[:, index] >= claim).mean()
                error = math.sqrt(max(chance * (1 - chance), 0.0) / 100_000)
                assert abs(seen - chance) <= 5 * error + 1e-9

    def test_first_round_of_next_to_nothing(self) -> None:
        """The lattice is wider than the noise: a poor bound, and still one."""
        rounds = Schedule((1e-9, 1e-5, 1.0), 1.0, (-2.0, -2.0, 0.0), 1.0, 0.2, 8.0)
        assert at_least(rounds)[1, 0] <= ndtr(2.0)
        assert 0 <= at_least(rounds)[2, 0] <= at_least(rounds)[1, 0]

    def test_levels_rounded_up_would_be_caught(self) -> None:
        """A lattice that rounds up is above the truth: what `test_below_the_truth` looks for."""
        schedule = SCHEDULES["default"]
        shifted = Schedule(
            schedule.shares, schedule.trust, tuple(z - 0.1 for z in schedule.drops),
            schedule.ramp, schedule.margin, schedule.patience,
        )  # fmt: skip
        truth = np.stack(quadrature(schedule))
        assert (at_least(shifted) > truth).any()


def law_of_sum(chances: Floats, count: int) -> Floats:
    """Return the chance of each sum of claims, in sixteenths: nothing is cut off."""
    one, law = np.zeros(CLAIMS[-1] + 1), np.ones(1)
    one[list(CLAIMS)] = chances
    for _ in range(count):
        law = np.convolve(law, one)
    return law


class TestSumsOfClaims:
    LEFTS = evidence._QUANTILES[:-1] * (1 - 1e-9)

    @all_of()
    def test_quantiles_are_those_of_the_whole_law(self, schedule: Schedule) -> None:
        counts = [0, 1, 2, 15, 16, 17, 33, 100, 191, 192]
        found = claim_quantiles(schedule, np.array(counts), self.LEFTS)
        for count, rounds in zip(counts, found, strict=True):
            for chances, quantiles in zip(claim_chances(schedule), rounds, strict=True):
                below = np.cumsum(law_of_sum(chances, count)) * UPWARDS
                exact = np.searchsorted(below, self.LEFTS) / CLAIMS[-1]
                assert quantiles.tolist() == np.minimum(exact, count).tolist()

    @given(st.lists(st.floats(0, 30).map(lambda x: math.exp(-x)), min_size=5, max_size=5))
    @settings(max_examples=30, deadline=None)
    def test_never_above_those_of_any_law(self, odds: list[float]) -> None:
        chances = np.array([odds]) / sum(odds)
        sums = ClaimSums(chances, 192)
        for count in (1, 20, 70, 192):
            exact = np.searchsorted(np.cumsum(law_of_sum(chances[0], count)), self.LEFTS)
            (found,) = sums.quantiles(count, self.LEFTS)
            assert (found * CLAIMS[-1] <= exact).all()

    def test_drops_beyond_the_lattice(self) -> None:
        """No noise gets so far: nothing has a claim."""
        high = Schedule((0.3, 0.3, 0.4), 1.0, (2.0, 20.0, 20.0), 1.0, 0.2, 8.0)
        assert claim_chances(high)[2].tolist() == [1.0 + 1e-15, 0.0, 0.0, 0.0, 0.0]


def claims(schedule: Schedule, trials: int, items: int, seed: int) -> NDArray[np.int64]:
    """Return the claims, in sixteenths, of noise alone: trials × items × rounds."""
    random = np.random.default_rng(seed)
    walk = np.zeros((trials, items), dtype=np.float32)
    held = np.full((trials, items), CLAIMS[-1])
    found, before = [], 0.0
    for index, time in enumerate(schedule.variances):
        found.append(held)
        deviation = np.float32(math.sqrt(time - before))
        walk += random.standard_normal(walk.shape, dtype=np.float32) * deviation
        edges = schedule.edges(index) * math.sqrt(time)
        held = np.where(held > 0, np.array(CLAIMS)[np.searchsorted(edges, walk, "right")], 0)
        before = time
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
def sums(schedule: Schedule, items: int) -> Floats:
    """Return the sums of the claims of some items: trials × rounds."""
    trials = min(20_000, max(1000, 200_000 // max(items, 1)))
    return np.asarray(claims(schedule, trials, items, seed=items).sum(axis=1) / CLAIMS[-1])


def simulated_release(
    schedule: Schedule, t: int, rho: float, thresholds: Floats
) -> tuple[float, float]:
    """Return D(t) and its standard error."""
    weights = 1 / np.sqrt(1 + sums(schedule, t - 1))
    shared = np.cumsum(schedule.counts * weights, axis=1) / schedule.counted
    tails = ndtr((shared - thresholds) / schedule.deviations(rho))
    return mean(t * tails.sum(axis=1))


def simulated_noise(
    schedule: Schedule, t: int, max_items: int, epsilon: float, rho: float
) -> tuple[float, float]:
    """Return G(t) and its standard error."""
    rest = max_items - t
    own = sums(schedule, t)
    norms = rest / (rest + own) if rest else np.zeros(own.shape)
    return mean(noise_deltas(epsilon, np.sqrt(2 * rho * (norms @ schedule.fractions))))


def at(bound: JointBound, t: int) -> int:
    return int(np.searchsorted(bound.starts, t, side="right")) - 1


class TestRelease:
    """D(t), for blocks of a single t."""

    @all_of(["default", "gentle", "harsh"])
    @pytest.mark.parametrize(("t", "max_items"), [(1, 1), (7, 20), (16, 16), (60, 60), (250, 250)])
    @pytest.mark.parametrize(("rho", "quantile"), [(0.12, 5.0), (1.0, 3.0), (1.0, 5.0)])
    def test_above_the_truth_and_near_it(
        self, schedule: Schedule, t: int, max_items: int, *, rho: float, quantile: float
    ) -> None:
        thresholds = schedule.thresholds(rho, quantile)
        bound = joint_bound(schedule, max_items)
        claimed = bound.release(rho, thresholds)[at(bound, t)]
        truth, error = simulated_release(schedule, t, rho, thresholds)
        near = 1.15 if rho < 1 else 1.35
        assert (truth - 5 * error) / ROUNDING <= claimed <= near * truth + 5 * error

    @pytest.mark.parametrize("rho", [0.05, 0.5, 5.0])
    @pytest.mark.parametrize("t", [1, 2, 10, 100])
    def test_one_round_is_exact(self, rho: float, t: int) -> None:
        schedule = SCHEDULES["one round"]
        (threshold,) = schedule.thresholds(rho, 4.0)
        exact = t * ndtr((1 / math.sqrt(t) - threshold) * math.sqrt(2 * rho))
        claimed = joint_bound(schedule, t).release(rho, np.array([threshold]))[-1]
        assert exact <= claimed <= 1.01 * exact

    @all_of(["default", "harsh"])
    def test_falls_with_thresholds(self, schedule: Schedule) -> None:
        bound = joint_bound(schedule, 60)
        found = [bound.release(0.3, schedule.thresholds(0.3, q)) for q in (2.0, 3.0, 4.5, 6.0)]
        for higher, lower in pairwise(found):
            assert (higher[1:] > lower[1:]).all()

    def test_every_t_of_a_block(self) -> None:
        """The bound of a block holds for all of it, not only for its ends."""
        rho = 1.0
        thresholds = UNEVEN.thresholds(rho, 3.5)
        bound = joint_bound(UNEVEN, 193)
        ends = np.append(bound.starts[1:] - 1, 193)
        found = bound.release(rho, thresholds)
        alone = {t: joint_bound(UNEVEN, t).release(rho, thresholds)[-1] for t in range(100, 194, 5)}
        for start, end, claimed in zip(bound.starts, ends, found, strict=True):
            for t in range(max(100, -(-int(start) // 5) * 5), int(end) + 1, 5):
                assert claimed * (1 + 1e-8) >= alone[t]

    @all_of()
    @pytest.mark.parametrize("max_items", [1, 250, 5000])
    def test_some_blocks_are_as_all(self, schedule: Schedule, max_items: int) -> None:
        thresholds = schedule.thresholds(0.3, 4.0)
        bound = joint_bound(schedule, max_items)
        some = np.arange(0, len(bound.starts), 3)[::-1]
        found = bound.release_of(some, 0.3, thresholds)
        assert found == pytest.approx(bound.release(0.3, thresholds)[some], rel=1e-13)

    @pytest.mark.parametrize("rho", [0.01, 0.12, 1.0, 10.0, 100.0])
    @pytest.mark.parametrize("quantile", [0.0, 4.0, 6.0])
    def test_estimates_are_near(self, rho: float, quantile: float) -> None:
        schedule = SCHEDULES["default"]
        bound, thresholds = joint_bound(schedule, 250), schedule.thresholds(rho, quantile)
        found = bound.estimate(rho, thresholds)
        assert found == pytest.approx(bound.release(rho, thresholds), rel=0.06)

    def test_parts_of_rounds_add_up(self) -> None:
        schedule = SCHEDULES["default"]
        thresholds = schedule.thresholds(0.12, 4.0)
        bound = joint_bound(schedule, 60)
        parts = bound.release_by_round(0.12, thresholds)
        assert len(parts) == 17
        assert sum(parts) == pytest.approx(bound.threshold_delta(0.12, thresholds))

    @pytest.mark.parametrize("max_items", [193, 194, 195, 217, 400, 5000])
    def test_beyond_what_is_tracked_it_grows_with_t(self, max_items: int) -> None:
        schedule = SCHEDULES["two rounds"]
        thresholds = schedule.thresholds(0.3, 4.0)
        found = joint_bound(schedule, max_items).release(0.3, thresholds)
        first = joint_bound(schedule, 193).release(0.3, thresholds)[-1]
        assert found[-1] == pytest.approx(first / 193 * max_items)

    @all_of(["default", "harsh"])
    def test_an_item_does_not_count_itself(self, schedule: Schedule) -> None:
        """With one item there is no other: B is 0, and the item weighs 1 in every round."""
        thresholds = schedule.thresholds(1.0, 3.0)
        alone = ndtr((1 - thresholds) / schedule.deviations(1.0)).sum()
        counting_itself = ndtr((math.sqrt(0.5) - thresholds) / schedule.deviations(1.0)).sum()
        claimed = joint_bound(schedule, 1).release(1.0, thresholds)[-1]
        assert counting_itself < alone <= claimed

    def test_the_filter_is_in_the_deviation(self) -> None:
        """Deviations of the budget's shares would be too small: the simulation shows it."""
        schedule = SCHEDULES["harsh"]
        random = np.random.default_rng(3)
        noise = random.standard_normal((200_000, 5)) / np.sqrt(schedule.fractions)
        found = (np.cumsum(noise * schedule.counts, axis=1) / schedule.counted).std(axis=0)
        ignoring = 1 / np.sqrt(np.cumsum(schedule.fractions))
        assert schedule.deviations(0.5) == pytest.approx(found, rel=0.01)
        assert (ignoring[1:] < 0.999 * schedule.deviations(0.5)[1:]).all()


class TestNoise:
    """G(t), at the start of its block."""

    @all_of(["default", "gentle", "harsh"])
    @pytest.mark.parametrize(
        ("t", "max_items"), [(1, 2), (1, 250), (3, 20), (10, 250), (16, 20), (150, 250)]
    )
    @pytest.mark.parametrize(("epsilon", "rho"), [(1.765, 0.12), (1.0, 0.2), (6.0, 2.0)])
    def test_above_the_truth_and_near_it(
        self, schedule: Schedule, t: int, max_items: int, epsilon: float, rho: float
    ) -> None:
        bound = joint_bound(schedule, max_items)
        block = at(bound, t)
        claimed = bound.noise(epsilon, rho)[block]
        truth, error = simulated_noise(schedule, int(bound.starts[block]), max_items, epsilon, rho)
        # Where little norm is left, G is next to nothing beside D, and need not be sharp.
        whole = gaussian_delta(epsilon, math.sqrt(2 * rho))
        assert (truth - 5 * error) / ROUNDING <= claimed <= 1.1 * truth + 0.01 * whole

    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.765, 6.0, 20.0])
    def test_convex_as_far_as_it_is_used(self, epsilon: float) -> None:
        """δ_G over y has its inflection where the docstring says."""
        border = math.sqrt(1 + epsilon**2) - 1
        y = np.linspace(0.05, 1.0, 400)

        def bends(rho: float) -> Floats:
            deltas = [gaussian_delta(epsilon, math.sqrt(2 * rho * float(at_y))) for at_y in y]
            return np.diff(deltas, 2)

        assert (bends(border) >= -1e-12).all()
        assert (bends(1.3 * border) < -1e-9).any()

    def test_whole_where_it_is_not_convex(self) -> None:
        bound = joint_bound(SCHEDULES["two rounds"], 20)
        whole = gaussian_delta(0.5, math.sqrt(0.4))
        assert bound.noise(0.5, 0.2) == pytest.approx(np.full(len(bound.starts), whole))

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
            assert bound.noise(1.0, 0.1)[0] >= whole

    def test_all_novel_moves_nothing(self) -> None:
        """y = 0 for t = Δ0."""
        assert joint_bound(SCHEDULES["default"], 20).noise(1.765, 0.12)[-1] == 0


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
    @pytest.mark.parametrize("max_items", [1, 3, 30, 250])
    def test_is_the_worst_number_of_novel_items(self, schedule: Schedule, max_items: int) -> None:
        thresholds = schedule.thresholds(0.12, 4.0)
        claimed = joint_bound(schedule, max_items).delta(1.765, 0.12, thresholds)
        for t in sorted({1, max_items // 10 + 1, max_items // 2 + 1, max_items}):
            release, one = simulated_release(schedule, t, 0.12, thresholds)
            noise, other = simulated_noise(schedule, t, max_items, 1.765, 0.12)
            assert release + noise - 5 * (one + other) <= claimed


class TestSchedule:
    def test_last_threshold_is_lowest_in_deviations(self) -> None:
        schedule = SCHEDULES["default"]
        levels = (schedule.thresholds(0.12, 5.0) - 0.2) / schedule.deviations(0.12)
        assert levels[-1] == pytest.approx(5.0)
        assert levels[:-1] == pytest.approx(math.sqrt(25 + 2 * math.log(8)))

    def test_shares_add_up_to_one(self) -> None:
        for schedule in SCHEDULES.values():
            assert schedule.fractions.sum() == pytest.approx(1.0)

    def test_many_rounds_open_with_a_tiny_one(self) -> None:
        assert Cumulative(rounds=6).schedule().drops[0] == -2.5
        for rounds in (7, 17):
            schedule = Cumulative(rounds=rounds).schedule()
            assert schedule.shares[0] == 0.007
            assert schedule.drops[:2] == (-9.0, -2.5)
            assert schedule.drops[-1] == 3.0
            assert (np.diff(schedule.drops[1:], 2) < 0).all()

    def test_claims_rise_along_the_ramp(self) -> None:
        schedule = SCHEDULES["two rounds"]
        assert schedule.edges(0) - schedule.drops[0] == pytest.approx([0.0, 0.75, 1.125, 1.5])


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("rounds", 0), ("growth", 0.0), ("growth", -1.0), ("growth", 1e9), ("trust", 0.0),
            ("trust", 1e-9), ("first_drop", math.nan), ("last_drop", math.inf), ("ramp", -0.1),
            ("ramp", math.inf), ("trust", "2"),
        ],
    )  # fmt: skip
    def test_bad_ones_are_refused(self, name: str, value: object) -> None:
        with pytest.raises(UsageError, match=name):
            Cumulative(**{name: value})  # type: ignore[arg-type]


class TestBlocks:
    @pytest.mark.parametrize("max_items", [1, 2, 17, 18, 192, 193, 300, 100_000])
    def test_cover_every_t(self, max_items: int) -> None:
        starts = evidence._starts(max_items)
        assert starts[:2].tolist() == [0, 1]
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
        made = plan(Cumulative(), epsilon=1.765, delta=4.96e-5, max_items=250)
        assert made.guarantee.rho == pytest.approx(0.121, abs=5e-4)
        assert made.rounds[-1].threshold == pytest.approx(11.46, abs=0.02)
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
    def test_delta_pays_for_every_cell_of_the_far_tails(self, asked: Any) -> None:
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
            share = schedule.fractions[index]
            assert step["rho"] == pytest.approx(0.5 * share)
            assert step["sigma"] >= 1 / math.sqrt(2 * 0.5 * share)
            assert step["count"] == pytest.approx(share * 1.06**index)
            assert step["counted"] == pytest.approx(sum(schedule.counts[: index + 1]))
            deviation = schedule.deviations(0.5)[index]
            ramp = np.array([0.0, 0.5, 0.75, 1.0]) * 1.5
            edges = (schedule.drops[index] + ramp) * deviation - 2.0 ** -(STEP_BITS + 1)
            assert step["edges"] == pytest.approx(edges)
        assert sum(step["rho"] for step in made.table()) == pytest.approx(0.5)
        assert sum(step["delta"] for step in made.table()) <= 1e-3
