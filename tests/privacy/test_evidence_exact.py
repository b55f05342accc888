"""Cumulative evidence without sampling, and as it runs.

Given what became of all items so far, each item's evidence is a one-dimensional density that the
others' noise says nothing about. So the distribution over all histories of a few items is a
product of densities on Gauss–Legendre nodes, branch by branch, and the true δ(ε) between
neighbours follows by enumeration. Others' weight is whatever the test says, round by round: that
covers every crowd. What the new user gives depends on its items' claims, as everywhere.

Simulations are exact binomial tests with a false-alarm rate of `ALPHA`; there are fewer than
twenty.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr

from dp_sips import MemoryEngine, Plan, plan, select_partitions
from dp_sips.auditing.divergence import true_delta
from dp_sips.mechanisms import Cumulative
from dp_sips.mechanisms.claims import CLAIMS
from dp_sips.mechanisms.cumulative import EvidenceRound
from dp_sips.mechanisms.evidence import STEP_BITS, claim_edges
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.privacy.weights import claimed_weight
from dp_sips.progress import Progress
from dp_sips.sources import open_source

Floats = NDArray[np.float64]
Histories = dict[tuple[Any, ...], float]
ALPHA = 1e-8
DELTA = 0.05
# What 40 nodes a claim leave, many times over; the smallest promise here is 1e-6.
ROUNDING = 1e-10
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class Item:
    """An item whose fate is followed.

    Attributes:
        others: What everybody but the new user gives to it in each round; nothing if it is novel.
        held: Whether the new user holds it.
    """

    others: tuple[float, ...]
    held: bool

    @property
    def novel(self) -> bool:
        return not any(self.others)


@dataclass(frozen=True)
class Active:
    """Evidence so far, Σ c_l (weight_l + noise_l): places and masses; and the item's claim."""

    places: Floats
    masses: Floats
    claim: int


START = Active(np.zeros(1), np.ones(1), CLAIMS[-1])
Fates = dict[Any, float | Active]
Judge = Callable[[EvidenceRound, float], tuple[float, ...]]


def by_evidence(step: EvidenceRound, given: float) -> tuple[float, ...]:
    del given
    return step.edges


def advance(
    state: Active, step: EvidenceRound, given: float, edges: tuple[float, ...], *, last: bool
) -> Fates:
    """Return the chances that an item is released and dropped, and what it is with each claim.

    After the last round, claims make no difference: it is kept.
    """
    sure, deviation = state.places + step.count * given, step.count * step.sigma
    high = step.threshold * step.counted
    borders = [min(edge * step.counted, high) for edge in edges] + [high]
    released = float(state.masses @ ndtr((sure - high) / deviation))
    dropped = float(state.masses @ ndtr((borders[0] - sure) / deviation))
    fates: Fates = {"released": released, "dropped": dropped}
    if last:
        return {**fates, "kept": float(state.masses.sum()) - released - dropped}
    for claim, (low, top) in zip(CLAIMS[1:], pairwise(borders), strict=True):
        places = low + (NODES + 1) * (top - low) / 2
        steps = (places[:, None] - sure[None, :]) / deviation
        density = np.exp(-(steps**2) / 2) @ state.masses / (deviation * math.sqrt(2 * math.pi))
        fates[claim] = Active(places, density * NODE_WEIGHTS * (top - low) / 2, claim)
    return fates


def weights_of(claims: list[int]) -> list[float]:
    """Return what the new user gives to items with these claims."""
    total = sum(claims)
    return [claimed_weight(claim, total, STEP_BITS) / 2**STEP_BITS for claim in claims]


def histories(
    items: tuple[Item, ...],
    rounds: tuple[EvidenceRound, ...],
    *,
    user: bool,
    show: bool,
    edges: Judge = by_evidence,
) -> Histories:
    """Return the probability of each output, with or without the new user.

    With `show`, the output is what became of each item and when (of novel ones: which were
    released, and when); otherwise it is the released set, as in truth.
    """
    found: Histories = defaultdict(float)
    occurring = [i for i, item in enumerate(items) if not item.novel or user]

    def follow(index: int, odds: float, states: dict[int, Active], seen: tuple[Any, ...]) -> None:
        if index == len(rounds) or not states:
            found[tuple(sorted(seen))] += odds * math.prod(
                float(s.masses.sum()) for s in states.values()
            )
            return
        step, last = rounds[index], index == len(rounds) - 1
        held = [i for i in states if items[i].held and user]
        own = dict(zip(held, weights_of([states[i].claim for i in held]), strict=True))
        fates = {}
        for i, state in states.items():
            given = items[i].others[index] + own.get(i, 0.0)
            fates[i] = advance(state, step, given, edges(step, given), last=last)
        for choice in product(*fates.values()):
            chosen = dict(zip(states, choice, strict=True))
            ended = {i: fate for i, fate in chosen.items() if isinstance(fate, str)}
            share = odds
            for i, fate in ended.items():
                share *= fates[i][fate]  # type: ignore[operator]
            rest = {i: fates[i][fate] for i, fate in chosen.items() if i not in ended}
            if share * math.prod(s.masses.sum() for s in rest.values()) < 1e-18:  # type: ignore[union-attr]
                continue
            told = tuple(
                (i, fate, index) if show else (i,)
                for i, fate in ended.items()
                if fate == "released" or (show and fate == "dropped" and not items[i].novel)
            )
            follow(index + 1, share, rest, seen + told)  # type: ignore[arg-type]

    follow(0, 1.0, dict.fromkeys(occurring, START), ())
    return found


def worst(
    items: tuple[Item, ...],
    rounds: tuple[EvidenceRound, ...],
    epsilons: tuple[float, ...],
    *,
    show: bool = False,
    edges: Judge = by_evidence,
) -> list[float]:
    with_user = histories(items, rounds, user=True, show=show, edges=edges)
    without = histories(items, rounds, user=False, show=show, edges=edges)
    return [true_delta(with_user, without, epsilon) for epsilon in epsilons]


def shared(*others: float) -> Item:
    return Item(others, held=True)


def novel(rounds: int) -> Item:
    return Item((0.0,) * rounds, held=True)


def evident(made: Plan) -> tuple[EvidenceRound, ...]:
    return tuple(r for r in made.rounds if isinstance(r, EvidenceRound))


EPSILONS = (0.05, 0.3, 1.0, 2.0, 4.0)
MECHANISMS = {
    1: [Cumulative(rounds=1)],
    2: [
        Cumulative(rounds=2),
        Cumulative(rounds=2, growth=0.5, first_drop=0.5, last_drop=0.0),
        Cumulative(rounds=2, growth=4.0, first_drop=2.0, last_drop=2.0, ramp=0.0),
        Cumulative(rounds=2, growth=1.0, first_drop=-4.0, last_drop=0.0, trust=3.0),
        Cumulative(rounds=2, growth=1.0, first_drop=-1.0, ramp=3.0, trust=0.5),
    ],
    3: [
        Cumulative(rounds=3),
        Cumulative(rounds=3, growth=2.0, first_drop=1.0, last_drop=1.0, ramp=1.0, trust=1.5),
    ],
}


@st.composite
def cases(draw: st.DrawFn, rounds: int, most: int) -> tuple[Plan, tuple[Item, ...]]:
    """Return a plan and up to `most` items of the new user, shared or novel, near the thresholds.

    Sometimes there is an item that others hold and the new user does not.
    """
    made = plan(
        draw(st.sampled_from(MECHANISMS[rounds])),
        rho=draw(st.sampled_from([0.05, 0.3, 1.0, 4.0])),
        delta=draw(st.sampled_from([1e-6, 1e-3, 0.05])),
        max_items=draw(st.integers(1, most)),
    )
    last = evident(made)[-1]
    top = last.threshold + 3 * last.sigma
    count = draw(st.integers(1, made.max_items))
    own = draw(st.integers(0, count))
    weights = st.tuples(*[st.floats(0.5, top)] * rounds) | st.floats(0.5, top).map(
        lambda w: (w,) * rounds
    )
    items = [novel(rounds)] * own + [shared(*draw(weights)) for _ in range(count - own)]
    if count < most and draw(st.booleans()):
        items.append(Item(draw(weights), held=False))
    return made, tuple(items)


def assert_promise(case: tuple[Plan, tuple[Item, ...]]) -> None:
    made, items = case
    for show in (False, True):
        found = worst(items, evident(made), EPSILONS, show=show)
        for epsilon, delta in zip(EPSILONS, found, strict=True):
            assert delta <= made.guarantee.delta(epsilon=epsilon) + ROUNDING


class TestPromise:
    """The true δ(ε) of the release, and even of what became of each shared item and when."""

    @settings(max_examples=40)
    @given(cases(1, 3))
    def test_one_round(self, case: Any) -> None:
        assert_promise(case)

    @settings(max_examples=100)
    @given(cases(2, 2))
    def test_two_rounds_two_items(self, case: Any) -> None:
        assert_promise(case)

    @settings(max_examples=40)
    @given(cases(2, 3))
    def test_two_rounds_three_items(self, case: Any) -> None:
        assert_promise(case)

    @settings(max_examples=20)
    @given(cases(3, 2))
    def test_three_rounds_two_items(self, case: Any) -> None:
        assert_promise(case)

    @pytest.mark.parametrize("max_items", [1, 2, 3])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1.765, 4.96e-5), (3.0, 0.05)])
    def test_epsilon_as_it_was_asked(self, max_items: int, epsilon: float, delta: float) -> None:
        """All mixtures of novel and shared items, over a grid of the others' weight."""
        made = plan(Cumulative(rounds=2), epsilon=epsilon, delta=delta, max_items=max_items)
        last = evident(made)[-1]
        for own in range(max_items + 1):
            grid = np.linspace(1.0, last.threshold + 2 * last.sigma, 12)
            crowds = [(shared(w, w),) for w in grid] if own < max_items else [()]
            for crowd in crowds:
                (found,) = worst((novel(2),) * own + crowd, evident(made), (epsilon,), show=True)
                assert found <= delta + ROUNDING


class TestTightness:
    """The promise is nearly reached, so a small mistake breaks it."""

    NOISY = plan(Cumulative(rounds=2), rho=0.3, delta=1e-9, max_items=1)
    NOVEL = plan(Cumulative(rounds=2), rho=0.3, delta=1e-3, max_items=2)

    def worst_shared(self, rounds: tuple[EvidenceRound, ...], edges: Judge) -> float:
        """Return the true δ(1) over one item that others hold too, in the released set alone."""
        grid = np.linspace(0.5, 14.0, 28)
        return max(worst((shared(w, w),), rounds, (1.0,), edges=edges)[0] for w in grid)

    def test_a_novel_item_spends_the_thresholds_delta(self) -> None:
        made = plan(Cumulative(rounds=2), rho=0.3, delta=1e-3, max_items=1)
        (found,) = worst((novel(2),), evident(made), (30.0,))
        assert 0.95e-3 <= found <= 1e-3

    def test_two_novel_items_spend_it_too(self) -> None:
        (found,) = worst((novel(2),) * 2, evident(self.NOVEL), (30.0,))
        assert 0.9e-3 <= found <= 1e-3

    def test_a_shared_item_spends_the_noises_delta(self) -> None:
        promised = self.NOISY.guarantee.delta(epsilon=1.0)
        found = self.worst_shared(evident(self.NOISY), by_evidence)
        assert 0.7 * promised <= found <= promised

    def test_half_as_much_budget_again_is_caught(self) -> None:
        broken = tuple(replace(r, sigma=r.sigma / math.sqrt(1.5)) for r in evident(self.NOISY))
        found = self.worst_shared(broken, by_evidence)
        assert found > self.NOISY.guarantee.delta(epsilon=1.0)

    def test_a_lower_threshold_is_caught(self) -> None:
        broken = tuple(replace(r, threshold=r.threshold - 0.1) for r in evident(self.NOVEL))
        (found,) = worst((novel(2),) * 2, broken, (30.0,))
        assert found > self.NOVEL.guarantee.delta(epsilon=30.0)

    def test_thresholds_for_one_item_are_caught(self) -> None:
        made = plan(Cumulative(rounds=2), rho=0.05, delta=1e-3, max_items=1)
        (found,) = worst((novel(2),) * 2, evident(made), (30.0,))
        assert found > 1.2 * made.guarantee.delta(epsilon=30.0)

    def test_dropping_by_weights_without_noise_is_caught(self) -> None:
        def by_weight(step: EvidenceRound, given: float) -> tuple[float, ...]:
            return (-60.0 if given >= 8.5 else step.threshold,) * 4

        items = (shared(8.0, 8.0),)
        (found,) = worst(items, evident(self.NOISY), (1.0,), edges=by_weight)
        assert found > self.NOISY.guarantee.delta(epsilon=1.0)

    def test_deviations_without_the_filter_are_caught(self) -> None:
        """Thresholds for noise that counts as its share of the budget, not as the filter has it."""
        mechanism = Cumulative(rounds=2, trust=6.0)
        made = plan(mechanism, rho=0.3, delta=1e-3, max_items=1)
        spent = np.cumsum(mechanism.schedule().fractions)
        ignoring = 1 / np.sqrt(2 * 0.3 * spent)
        counting = mechanism.schedule().deviations(0.3)
        broken = tuple(
            replace(r, threshold=0.2 + (r.threshold - 0.2) * ignoring[i] / counting[i])
            for i, r in enumerate(evident(made))
        )
        assert worst((novel(2),), evident(made), (30.0,))[0] <= 1e-3
        assert worst((novel(2),), broken, (30.0,))[0] > 1.5e-3

    def test_forgetting_what_was_spent_is_caught(self) -> None:
        """Each round with the noise of all rounds together."""
        sigma = 1 / math.sqrt(2 * self.NOISY.guarantee.rho)
        broken = tuple(replace(r, sigma=sigma) for r in evident(self.NOISY))
        found = self.worst_shared(broken, by_evidence)
        assert found > self.NOISY.guarantee.delta(epsilon=1.0)


Weigh = Callable[[list[int]], list[float]]


def rounded_up(claims: list[int]) -> list[float]:
    return [weight + 2.0**-STEP_BITS for weight in weights_of(claims)]


@dataclass(frozen=True)
class Path:
    """One run of a user's items, own ones first, for given noise."""

    mechanism: Cumulative
    rho: float
    own: int
    noise: Floats
    others: Floats

    def violations(
        self, *, weigh: Weigh = weights_of, fall: bool = False, edges_lowered: bool = True
    ) -> set[str]:
        """Return which of the proof's steps fail; with the mechanism as it is, none does."""
        schedule = self.mechanism.schedule()
        edges = claim_edges(self.rho, schedule) + (0 if edges_lowered else 2.0 ** -(STEP_BITS + 1))
        exact = np.stack([schedule.edges(i) for i in range(len(edges))])
        exact *= schedule.deviations(self.rho)[:, None]
        count, found = len(self.others), set()
        claims, alone = [CLAIMS[-1]] * count, [CLAIMS[-1]] * self.own
        evidence, walk = np.zeros(count), np.zeros(self.own)
        for i, c in enumerate(schedule.counts):
            held = [n for n in range(count) if claims[n]]
            weights = dict(zip(held, weigh([claims[n] for n in held]), strict=True))
            found |= self._broken(claims, alone, weights)
            given = np.array([weights.get(n, 0.0) for n in range(count)])
            steps = np.rint(self.noise[i] * 2**STEP_BITS) / 2**STEP_BITS
            evidence += c * (given + self.others * (np.arange(count) >= self.own) + steps)
            walk += c * self.noise[i, : self.own]
            scale = CLAIMS if not fall else (0, *CLAIMS[:0:-1])
            claims = _next(claims, evidence / schedule.counted[i], edges[i], scale)
            alone = _next(alone, walk / schedule.counted[i], exact[i], scale)
        return found

    def _broken(self, claims: list[int], alone: list[int], weights: dict[int, float]) -> set[str]:
        own = range(self.own)
        rest = len(claims) - self.own
        norm = sum(weights[n] ** 2 for n in weights if n >= self.own)
        checks = {
            "a claim is below that of noise alone": any(claims[n] < alone[n] for n in own),
            "an own item weighs too much": any(
                weights.get(n, 0) > 1 / math.sqrt(1 + (sum(alone) - alone[n]) / 16) for n in own
            ),
            "shared items move too far": norm > rest / max(rest + sum(alone) / 16, 1e-300),
        }
        return {name for name, broken in checks.items() if broken}


def _next(claims: list[int], evidence: Floats, edges: Floats, scale: tuple[int, ...]) -> list[int]:
    places = np.searchsorted(edges, evidence, side="right")
    return [scale[p] if claim else 0 for claim, p in zip(claims, places.tolist(), strict=True)]


class TestProof:
    """The inequalities of the proof, run by run, for the noise that is drawn."""

    def violations(self, mechanism: Cumulative, rho: float, **broken: Any) -> set[str]:
        random = np.random.default_rng(4)
        schedule = mechanism.schedule()
        sigmas = 1 / np.sqrt(2 * rho * schedule.fractions)
        found: set[str] = set()
        for _ in range(150):
            own, rest = random.integers(1, 5), random.integers(0, 4)
            noise = random.standard_normal((len(sigmas), own + rest)) * sigmas[:, None]
            others = random.uniform(0, 4 * sigmas[-1], own + rest)
            found |= Path(mechanism, rho, int(own), noise, others).violations(**broken)
        return found

    @pytest.mark.parametrize("rho", [0.1, 10.0, 1e7])
    @pytest.mark.parametrize(
        "mechanism", [m for some in MECHANISMS.values() for m in some], ids=repr
    )
    def test_holds(self, mechanism: Cumulative, rho: float) -> None:
        assert self.violations(mechanism, rho) == set()

    def test_weights_rounded_up_are_caught(self) -> None:
        found = self.violations(Cumulative(rounds=3), 0.1, weigh=rounded_up)
        assert found == {"an own item weighs too much", "shared items move too far"}

    def test_a_ramp_that_falls_is_caught(self) -> None:
        found = self.violations(Cumulative(rounds=3), 1.0, fall=True)
        assert "a claim is below that of noise alone" in found
        assert "shared items move too far" in found

    def test_edges_that_forget_the_rounding_are_caught(self) -> None:
        """Where noise is not much more than a step, it is often half a step too low."""
        mechanism = Cumulative(rounds=3, first_drop=-1.0)
        found = self.violations(mechanism, 1e7, edges_lowered=False)
        assert found == set() or "a claim is below that of noise alone" in found


class TestLattice:
    """Noise is rounded to multiples of 2^-STEP_BITS, which can help an item over its threshold."""

    @pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
    def test_a_novel_item_in_one_round(self, delta: float) -> None:
        steps = 2**STEP_BITS
        shares = []
        for rho in np.geomspace(0.05, 300, 80):
            made = plan(Cumulative(rounds=1), rho=float(rho), delta=delta, max_items=1)
            (step,) = evident(made)
            least = math.ceil((step.threshold - 1) * steps) - 0.5
            shares.append(float(ndtr(-least / steps / step.sigma)) / delta)
        assert 0.97 < max(shares) <= 1


class TestEnumeration:
    @pytest.mark.parametrize("rounds", [1, 2, 3])
    def test_probabilities_add_up(self, rounds: int) -> None:
        made = plan(MECHANISMS[rounds][-1], rho=0.5, delta=0.05, max_items=2)
        items = (novel(rounds), shared(*[3.0] * rounds))
        for user, show in product((False, True), repeat=2):
            found = histories(items, evident(made), user=user, show=show)
            assert sum(found.values()) == pytest.approx(1, abs=1e-10)

    @pytest.mark.fresh
    def test_is_what_the_mechanism_does(self) -> None:
        """One item of two users, 4,000 times: with the chance that was computed."""
        made = plan(Cumulative(rounds=3), rho=0.5, delta=0.05, max_items=1)
        data = pa.table({"u": np.arange(8000), "i": np.repeat(np.arange(4000), 2)})
        computed = histories((Item((2.0,) * 3, held=False),), evident(made), user=False, show=False)
        found = len(run(made.rounds, data, 1))
        assert stats.binomtest(found, 4000, computed[((0,),)]).pvalue > ALPHA


def run(rounds: Any, data: Any, max_items: int) -> list[int]:
    """Run rounds as `select_partitions` does, with a fresh key."""
    key = Key.fresh()
    source = open_source(data, user="u", item="i", nulls="error")
    loaded = MemoryEngine().load(source, Bounds(max_items, once=True), key, Progress(show=False))
    for index, step in enumerate(rounds):
        step.run(loaded, key.noise_of_round(index))
    items: Any = loaded.released()["i"].to_pylist()
    return list(items)


def alone(users: int, items: int) -> Any:
    """Return users who share nothing."""
    return pa.table(
        {"u": np.repeat(np.arange(users), items), "i": np.arange(users * items)},
    )


def exposed(items: list[int], items_per_user: int) -> int:
    """Count the users of whom at least one novel item was released."""
    return len({item // items_per_user for item in items})


class TestNovelItems:
    """How often any novel item of a user is released, as it runs.

    With 4,500 users and δ = 5 % the standard error is 0.3 %: what exceeds δ by 2 % is caught.
    """

    @pytest.mark.fresh
    @pytest.mark.parametrize("rounds", [2, 17])
    @pytest.mark.parametrize(
        ("items", "max_items"), [(1, 1), (1, 20), (5, 20), (20, 20), (60, 20), (100, 100)]
    )
    def test_at_most_delta(self, rounds: int, items: int, max_items: int) -> None:
        users = 4500
        found = select_partitions(
            alone(users, items), user="u", item="i", mechanism=Cumulative(rounds=rounds),
            max_items=max_items, rho=0.3, delta=DELTA,
        ).items["i"].to_pylist()  # fmt: skip
        count = exposed(found, items)
        assert stats.binomtest(count, users, DELTA, alternative="greater").pvalue > ALPHA
        if rounds == 2 and items == max_items <= 20:
            # Here the bound is nearly reached.
            assert stats.binomtest(count, users, 0.6 * DELTA, alternative="less").pvalue > ALPHA

    def broken(self, rounds: Any, items: int, max_items: int) -> float:
        count = exposed(run(rounds, alone(4500, items), max_items), items)
        return float(stats.binomtest(count, 4500, DELTA, alternative="greater").pvalue)

    def test_a_lower_threshold_is_caught(self) -> None:
        made = plan(Cumulative(rounds=2), rho=0.3, delta=DELTA, max_items=20)
        assert self.broken(made.rounds, 20, 20) > ALPHA
        lower = [replace(r, threshold=r.threshold - 0.4) for r in evident(made)]
        assert self.broken(lower, 20, 20) < ALPHA

    def test_thresholds_of_fewer_items_are_caught(self) -> None:
        made = plan(Cumulative(rounds=2), rho=0.3, delta=DELTA, max_items=1)
        more = [replace(r, max_items=100) for r in evident(made)]
        assert self.broken(more, 100, 100) < ALPHA

    def test_less_noise_in_the_books_than_in_truth_is_caught(self) -> None:
        made = plan(Cumulative(rounds=2), rho=0.3, delta=DELTA, max_items=20)
        more = [replace(r, sigma=1.2 * r.sigma) for r in evident(made)]
        assert self.broken(more, 20, 20) < ALPHA
