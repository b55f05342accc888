"""The audit: it passes on what is sound, and finds what is broken.

Black boxes report a sound build by chance with a probability of at most 1e-8 an audit, of which
there are fewer than fifty here.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from tests.power.loud import Loud

from dp_sips import (
    Audit,
    Budget,
    Cumulative,
    Mad2R,
    Matching,
    Sips,
    UsageError,
    WeightedGaussian,
    audit,
    plan,
)
from dp_sips.auditing import Row, run
from dp_sips.auditing.divergence import true_delta
from dp_sips.auditing.enumeration import Cells, Coins, Tree, distributions
from dp_sips.auditing.integration import chance
from dp_sips.auditing.looking import look_rows
from dp_sips.auditing.neighbours import Neighbours, families
from dp_sips.auditing.probing import Dial, cell_chances, chances
from dp_sips.auditing.statistics import Counts, at_least, at_most, best_event, lower_bound
from dp_sips.auditing.worlds import OUTCOMES, SHOWN, Worlds, only_with
from dp_sips.engines.memory import MemoryEngine
from dp_sips.engines.reference import ReferenceContributions, ReferenceEngine
from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.adaptive import Spread
from dp_sips.mechanisms.auto import SizeLook
from dp_sips.mechanisms.base import Asked, Design
from dp_sips.mechanisms.mad import decide_and_note
from dp_sips.mechanisms.single import SingleRule
from dp_sips.privacy.contributions import Decide
from dp_sips.privacy.decide import decide, decide_by_coin, decide_with_laplace
from dp_sips.privacy.weights import weight


def methods(found: Sequence[Row]) -> set[str]:
    return {row.method for row in found}


class TestSound:
    @pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS])
    def test_every_mechanism_keeps_its_promise(self, mechanism: str) -> None:
        found = audit(mechanism, quick=True)
        assert found.passed, found.table()
        assert "black box" in methods(found.rows)
        # Exact audits reach what the promises are made of, or a little less.
        exact = [row.tightness for row in found.rows if row.method == "exact"]
        loose = {"mad2r": 0.8, "sips-rule": 0.5, "flat-rule": 0.5}
        assert max(exact) > loose.get(mechanism, 0.9)

    def test_of_a_budget(self) -> None:
        budget = Budget(2.0, 0.05)
        found = audit(["sips", "gw"], budget=budget, max_items=1, quick=True)
        assert found.passed, found.table()
        stated, _ = plan("sips", budget=budget, max_items=1).guarantee.stated()
        assert {row.epsilon for row in found.rows if row.mechanism == "sips"} == {stated}
        assert max(row.tightness for row in found.rows if row.method == "exact") > 0.9

    def test_what_is_audited_of_a_budget(self) -> None:
        options = {"rho": 0.1, "delta": 1e-6, "max_items": None}
        able = {name for name in MECHANISMS if run._can_be_planned(name, options)}
        assert {"sips", "gw", "cumulative"} <= able
        assert "sips-rule" not in able
        with pytest.raises(UsageError, match="either a budget"):
            audit("sips", epsilon=2.0, budget=Budget(0.1, 1e-6))

    def test_on_the_reference_engine(self) -> None:
        names = ["sips", "matching", "gw"]
        found = audit(names, engine="reference", epsilon=3.0, delta=0.05, max_items=3, quick=True)
        assert found.passed, found.table()
        assert {row.engine for row in found.rows} == {"reference"}


@dataclass(frozen=True)
class LowerThreshold(WeightedGaussian):
    """A threshold of 5 % less than it should be."""

    name: ClassVar[str] = "lower threshold"

    def design(self, asked: Asked, max_items: int) -> Design:
        made = super().design(asked, max_items)
        rounds = tuple(replace(step, threshold=0.95 * step.threshold) for step in made.rounds)
        return replace(made, rounds=rounds)


@dataclass(frozen=True)
class LessNoise(WeightedGaussian):
    """Noise of 0.9 times what it should be."""

    name: ClassVar[str] = "less noise"

    def design(self, asked: Asked, max_items: int) -> Design:
        made = super().design(asked, max_items)
        return replace(made, rounds=tuple(replace(r, sigma=0.9 * r.sigma) for r in made.rounds))


@dataclass(frozen=True)
class SteeperCoin(Matching):
    """A coin for 1.1 ε."""

    name: ClassVar[str] = "steeper coin"

    def design(self, asked: Asked, max_items: int) -> Design:
        made = super().design(asked, max_items)
        (step,) = made.rounds
        coin = SingleRule(1.1 * step.coin.epsilon, step.coin.delta)
        return replace(made, rounds=(replace(step, coin=coin),))


@dataclass(frozen=True)
class LowerEvidence(Cumulative):
    """Thresholds of evidence that are 10 % too low."""

    name: ClassVar[str] = "lower evidence"

    def design(self, asked: Asked, max_items: int) -> Design:
        made = super().design(asked, max_items)
        rounds = tuple(replace(step, threshold=0.9 * step.threshold) for step in made.rounds)
        return replace(made, rounds=rounds)


@dataclass(frozen=True)
class LowerSecond(Mad2R):
    """A second threshold that is too low by b_max, the most that a user gives to an item."""

    name: ClassVar[str] = "lower second"

    def design(self, asked: Asked, max_items: int) -> Design:
        made = super().design(asked, max_items)
        first, second = made.rounds
        return replace(
            made, rounds=(first, replace(second, threshold=second.threshold - self.highest))
        )


@dataclass(frozen=True)
class HeavyBias(Mad2R):
    """A second round that gives items of a user twice their weight, whatever the norm."""

    name: ClassVar[str] = "heavy bias"

    def design(self, asked: Asked, max_items: int) -> Design:
        made = super().design(asked, max_items)
        first, second = made.rounds
        spread = HeavySpread(**asdict(second.spread))
        return replace(made, rounds=(first, replace(second, spread=spread)))


class HeavySpread(Spread):
    def second(self, *args: Any) -> Any:
        return super().second(*args) * np.uint64(2)


class Untruncated(ReferenceContributions):
    """All items of a user count, each as if Δ0 of them did."""

    def weigh(self, max_items: int, *more: Any, **options: Any) -> Any:
        histogram = super().weigh(10**6, *more, **options)
        return {item: max(given, weight(max_items)) for item, given in histogram.items()}


class GivenBack(ReferenceContributions):
    """Releases an item that nobody has: the next number after each that is found."""

    def remove(self, verdicts: Any) -> None:
        super().remove([*verdicts, *((item[0] + 1,) for item in verdicts)])


@dataclass(frozen=True)
class Broken(ReferenceEngine):
    """The reference engine with other contributions."""

    kind: type[ReferenceContributions] = ReferenceContributions

    def load(self, *args: Any) -> Any:
        loaded = super().load(*args)
        loaded.__class__ = self.kind
        return loaded


class TestBroken:
    @pytest.mark.parametrize(
        "mechanism", [LowerThreshold(), LessNoise(), SteeperCoin(), LowerEvidence()]
    )
    def test_mechanisms_are_caught_exactly(self, mechanism: Any) -> None:
        found = audit(mechanism, quick=True)
        assert not found.passed
        assert "exact" in methods(found.violations)
        assert mechanism.name in found.verdict
        assert "BROKEN" in found.table()

    @pytest.mark.parametrize("mechanism", [LowerSecond(), HeavyBias()])
    def test_second_rounds_are_caught_exactly(self, mechanism: Any) -> None:
        found = audit(mechanism, epsilon=3, delta=0.05, max_items=2, quick=True)
        assert "exact" in methods(found.violations)

    def test_a_lower_threshold_is_caught_by_black_box(self) -> None:
        found = audit(Loud(), delta=0.05, max_items=1, quick=True)
        assert {"exact", "black box"} == methods(found.violations)

    def test_truncation_that_is_missing_is_caught(self) -> None:
        engine = Broken(Untruncated)
        found = audit(
            "weighted-gaussian", engine=engine, epsilon=3, delta=0.05, max_items=3, quick=True
        )
        assert "own items, above Δ0" in {row.family for row in found.violations}
        assert "exact" in methods(found.violations)

    def test_items_that_nobody_has_are_caught(self) -> None:
        found = audit("single", engine=Broken(GivenBack), epsilon=3, delta=0.05, quick=True)
        assert "black box" in methods(found.violations)


@dataclass(frozen=True)
class LouderLook(SizeLook):
    """A look whose noise is that of 1.1 times what it spends."""

    def choose(self, contributions: Any, noise: Any) -> Any:
        real = SizeLook(**{f.name: getattr(self, f.name) for f in fields(self)})
        return replace(real, epsilon=1.1 * self.epsilon).choose(contributions, noise)


class Longer(ReferenceContributions):
    """Lengths of users count twice."""

    def measure_users(self, measure: Any) -> int:
        return super().measure_users(measure) * (1 if measure.__name__ == "_ones" else 2)


class TestLook:
    """The choice that auto makes, from the function that makes it."""

    PLAN = plan("auto", epsilon=1.0, delta=1e-5)

    def found(self, look: Any = None, engine: Any = None) -> list[float]:
        made = replace(self.PLAN, look=look or self.PLAN.look)
        rows = look_rows(made, engine or ReferenceEngine())
        return [found / promised for _, found, promised in rows]

    def test_spends_what_it_says(self) -> None:
        early, late = self.found()
        assert 0.999 < early <= 1
        assert 0.9 < late <= 1

    def test_less_noise_is_caught(self) -> None:
        look: Any = self.PLAN.look
        louder = LouderLook(**{f.name: getattr(look, f.name) for f in fields(look)})
        assert min(self.found(louder)) > 1.05

    def test_a_user_who_counts_twice_is_caught(self) -> None:
        assert self.found(engine=Broken(Longer))[0] > 1.5


class TestProbing:
    """The chances of verdicts, from the functions that make them."""

    BLOCKS = np.zeros((3, 2), dtype=np.uint64)
    WEIGHTS = np.array([1, 5, 40], dtype=np.uint64) << np.uint64(30)

    def found(self, judge: Decide, dial: Dial) -> tuple[Any, Any]:
        return chances(judge, dial, self.BLOCKS, self.WEIGHTS)

    def test_gaussian(self) -> None:
        dial = Dial()
        yes, no = self.found(
            lambda b, w: decide(b, w, sigma=3.0, threshold=12.0, scrambler=dial), dial
        )
        z = (np.array([1, 5, 40]) - 12.0) / 3.0
        np.testing.assert_allclose(yes, ndtr(z), rtol=1e-9)
        np.testing.assert_allclose(no, ndtr(-z), rtol=1e-9)

    def test_laplace(self) -> None:
        dial = Dial()
        yes, no = self.found(
            lambda b, w: decide_with_laplace(
                b, w, scale=1.0, threshold=12.0, scrambler=dial, unit_bits=30
            ),
            dial,
        )
        np.testing.assert_allclose(yes[:2], np.exp([-11.0, -7.0]) / 2, rtol=1e-9)
        np.testing.assert_allclose(no[2], np.exp(-28.0) / 2, rtol=1e-9)

    def test_coins(self) -> None:
        dial, coin = Dial(), SingleRule(1.0, 1e-9)
        yes, no = self.found(lambda b, w: decide_by_coin(b, w, coin=coin, scrambler=dial), dial)
        np.testing.assert_allclose(yes, coin.odds(self.WEIGHTS)[0], rtol=1e-9)
        np.testing.assert_allclose(no, coin.odds(self.WEIGHTS)[1], rtol=1e-9, atol=1e-30)

    def test_no_weight_has_no_chance(self) -> None:
        dial = Dial()
        yes, no = chances(
            lambda b, w: decide(b, w, sigma=3.0, threshold=-12.0, scrambler=dial),
            dial,
            self.BLOCKS[:1],
            np.zeros(1, dtype=np.uint64),
        )
        assert (yes[0], no[0]) == (0, 1)


class TestEnumeration:
    def test_a_tree_has_all_branches(self) -> None:
        tree, passes = Tree(), 0
        while not tree.done:
            if tree.verdict(0, 0.25, 0.75):
                tree.verdict(1, 0.5, 0.5)
            tree.verdict(2, 1.0, 0.0)
            tree.end()
            passes += 1
        assert passes == 3
        assert tree.distribution == {(2,): 0.75, (0, 2): 0.125, (0, 1, 2): 0.125}

    def test_a_verdict_may_have_several_cells(self) -> None:
        tree, seen = Tree(), []
        while not tree.done:
            seen.append(tree.cell(0, (0.5, 0.25, 0.0, 0.25)))
            if seen[-1] == 1:
                tree.verdict(1, 0.5, 0.5)
            tree.end()
        assert seen == [0, 1, 1, 3]
        assert tree.distribution == {(): 0.625, (1,): 0.125, (0,): 0.25}

    def test_cells_of_a_first_round(self) -> None:
        """Dropped below 2, steps of bias from 5 and 9 on, released from 12 on, with σ = 3."""
        dial = Dial()
        note = partial(
            decide_and_note, sigma=3.0, threshold=12.0, drop=2.0, scrambler=dial, unit_bits=30
        )
        cells = Cells(note, (5.0, 9.0))
        weights = np.array([7 << 30, 0], dtype=np.uint64)
        found = cell_chances(cells, cells.count, dial, np.zeros((2, 2), dtype=np.uint64), weights)
        levels = (np.array([-np.inf, 2.0, 5.0, 9.0, 12.0, np.inf]) - 7) / 3
        np.testing.assert_allclose([c[0] for c in found], np.diff(ndtr(levels)), rtol=1e-9)
        assert [c[1] for c in found] == [1, 0, 0, 0, 0]

    @pytest.mark.parametrize("holders", [5, 20, 40])
    def test_two_rounds_of_mad_are_what_the_mechanism_says(self, holders: int) -> None:
        made = plan("mad2r", epsilon=1.0, delta=1e-5, max_items=2)
        pair = Neighbours(((0,),) * (holders - 1), (0,))
        (found,) = distributions(made, MemoryEngine(), [pair], extra=True, seed=1, coins=Coins())
        assert found[0,] == pytest.approx(made.release_probability(holders), rel=1e-6)

    @pytest.mark.parametrize("engine", [ReferenceEngine(), MemoryEngine(threads=1)])
    def test_is_what_the_formula_says(self, engine: Any) -> None:
        """One item of five users and one of their own, in three rounds."""
        made = plan(Sips(3), epsilon=1.0, delta=0.01, max_items=2)
        pair = Neighbours(((0,),) * 4, (0,))
        (found,) = distributions(made, engine, [pair], extra=True, seed=1, coins=Coins())
        assert found[0,] == pytest.approx(made.release_probability(5), rel=1e-9)
        assert sum(found.values()) == pytest.approx(1)
        (less,) = distributions(made, engine, [pair], extra=False, seed=1, coins=Coins())
        assert less[0,] == pytest.approx(made.release_probability(4), rel=1e-9)
        assert true_delta(found, less, 0.0) == pytest.approx(found[0,] - less[0,])

    def test_engines_agree(self) -> None:
        made = plan("mad", epsilon=1.0, delta=1e-5, max_items=2)
        pairs = [member for family in families(made) for member in family.members if member.others]
        pairs = [pair for pair in pairs if pair.items <= 3]
        one, other = (
            distributions(made, engine, pairs, extra=True, seed=3, coins=Coins())
            for engine in (ReferenceEngine(), MemoryEngine(threads=1))
        )
        for a, b in zip(one, other, strict=True):
            assert a == pytest.approx(b)

    def test_integration_is_what_the_mechanism_says(self) -> None:
        made = plan(Cumulative(), epsilon=1.0, delta=1e-5, max_items=1)
        for holders in (10, 20, 30):
            assert chance(made.rounds, holders) == pytest.approx(
                made.release_probability(holders), rel=0.02
            )


class TestStatistics:
    def test_bounds_are_clopper_and_pearsons(self) -> None:
        known = stats.binomtest(7, 100).proportion_ci(0.98, method="exact")
        assert at_least(7, 100, 0.01) == pytest.approx(known.low)
        assert at_most(7, 100, 0.01) == pytest.approx(known.high)
        assert at_least(0, 100, 0.01) == 0
        assert at_most(100, 100, 0.01) == 1

    def test_events_of_coins(self) -> None:
        """P(1) = 0.5 beside 0.1: δ(1) = 0.5 − 0.1 e, found up to what the bounds leave."""
        never = np.zeros(2, dtype=bool)
        one = Counts(np.array([5000, 5000]), 0, never)
        other = Counts(np.array([9000, 1000]), 0, never)
        event = best_event(one, other, 1.0, 1e-9)
        assert event.tolist() == [False, True]
        bound = lower_bound(one, other, event, 1.0, 1e-9)
        assert 0.13 < bound < 0.5 - 0.1 * np.e
        assert lower_bound(other, one, best_event(other, one, 1.0, 1e-9), 1.0, 1e-9) == 0

    def test_what_cannot_occur_has_no_chance(self) -> None:
        one = Counts(np.array([99_990, 10]), 0, np.zeros(2, dtype=bool))
        other = Counts(np.array([100_000, 0]), 0, np.array([False, True]))
        event = best_event(one, other, 1.0, 1e-9)
        assert lower_bound(one, other, event, 1.0, 1e-9) == at_least(10, 100_000, 1e-9) > 0


class TestWorlds:
    PAIR = Neighbours(((0, 1), (1,)), (0, 7, 8))

    def test_users_and_items_are_apart(self) -> None:
        worlds = Worlds.of([self.PAIR] * 3)
        table = worlds.table(extra=True).to_pydict()
        rows = list(zip(table["u"], table["i"], strict=True))
        assert len(rows) == len(set(rows)) == 3 * 6
        assert all(user // worlds.width == item // worlds.width for user, item in rows)
        assert worlds.table(extra=False).num_rows == 3 * 3

    def test_outcomes(self) -> None:
        worlds = Worlds.of([self.PAIR] * 2)
        found = worlds.outcomes(np.array([1, worlds.width + 0, worlds.width + 8]))
        assert found.tolist() == [2, 1 + (1 << SHOWN)]
        assert found.max() < OUTCOMES

    def test_outcomes_that_need_the_user(self) -> None:
        assert self.PAIR.novel == {7, 8}
        only = only_with(Neighbours(((0,),), (0, 1)))
        assert np.flatnonzero(only[:4]).tolist() == [2, 3]
        assert not only_with(self.PAIR)[: 1 << SHOWN].any()


class TestResult:
    ROW = Row("m", "memory", "black box", "own item", 1.0, 1e-5, 3, 2.0, 0.5, 0.25, 100)

    def made(self, *rows: Row) -> Audit:
        return Audit(rows, quick=True, seconds=3.0)

    def test_violations(self) -> None:
        assert self.ROW.violated
        assert self.ROW.tightness == 2.0
        found = self.made(self.ROW, replace(self.ROW, found=0.25))
        assert found.violations == (self.ROW,)
        assert found.verdict == "1 promises are broken: m."

    def test_rounding_is_no_violation_of_an_exact_row(self) -> None:
        row = replace(self.ROW, method="exact", found=0.25 + 1e-13)
        assert not row.violated
        assert replace(row, method="black box").violated

    def test_json(self) -> None:
        facts = json.loads(self.made(self.ROW).to_json())
        assert facts["passed"] is False
        assert facts["rows"][0]["tightness"] == 2.0
        assert facts["false_alarm"] < 1e-6

    def test_the_table_has_the_nearest_of_each_family(self) -> None:
        found = self.made(replace(self.ROW, found=0.1), replace(self.ROW, found=0.2))
        assert [row.found for row in found.nearest()] == [0.2]

    def test_the_page_is_complete_in_itself(self) -> None:
        page = self.made(replace(self.ROW, mechanism="<m>")).report()
        assert page.count("<svg") == 1
        assert "&lt;m&gt;" in page
        assert "<m>" not in page
        assert "http" not in page.replace("http-equiv", "")
        assert 'class="broken"' in page


def test_unknown_mechanisms_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown mechanism 'spis'"):
        audit("spis", quick=True)
