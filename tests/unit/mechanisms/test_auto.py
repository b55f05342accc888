"""auto: what the look may see of one user, what it chooses, and what it says about that."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dp_sips import Cumulative, Matching, MemoryEngine, UsageError, plan, select_partitions
from dp_sips.mechanisms.auto import (
    _LEAN,
    _MIDDLE,
    _PROXY_ITEMS,
    _SHARES,
    _WORTH,
    _WORTH_UNIT,
    _YIELD_UNIT,
    SizeLook,
    _ExpectedYield,
    _lengths,
    _ones,
    _Proxy,
)
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.progress import Progress
from dp_sips.sources import open_source

ALPHA = 1e-8
ASKED = {"epsilon": 8.0, "delta": 0.01}
"""Few users are enough for a release, so that small data moves the look."""


def look_of(**asked: float) -> SizeLook:
    look = plan("auto", **asked).look  # type: ignore[arg-type]
    assert isinstance(look, SizeLook)
    return look


def measured(look: SizeLook, sets: list[set[int]], seed: int) -> tuple[int, int, int, int]:
    """Return n, S, Y and P, in their units."""
    pairs = [(user, item) for user, items in enumerate(sets) for item in items]
    table = pa.table({"u": [user for user, _ in pairs], "i": [item for _, item in pairs]})
    source = open_source(table, user="u", item="i")
    bounds = look.long.design.bounds
    loaded = MemoryEngine(threads=1).load(source, bounds, Key.for_tests(seed), Progress(show=False))
    found = loaded.measure_users(_ones), loaded.measure_users(_lengths), *look._yields(loaded)
    loaded.close()
    return found


class TestSensitivity:
    LOOK = look_of(**ASKED)

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.sets(st.integers(0, 12), min_size=1, max_size=12), min_size=3, max_size=40),
        st.integers(0, 2**20),
    )
    def test_of_random_neighbours(self, sets: list[set[int]], seed: int) -> None:
        """The last user is the additional one: the others keep their numbers."""
        less, more = (measured(self.LOOK, part, seed) for part in (sets[:-1], sets))
        users, lengths, yields, proxy = (b - a for a, b in zip(less, more, strict=True))
        assert users == 1
        assert abs(lengths) <= _MIDDLE
        assert 0 <= yields <= _ExpectedYield(self.LOOK.short.design.rounds[0]).sensitivity
        assert 0 <= proxy <= self.LOOK._proxy.sensitivity

    def test_the_bounds_are_reached_or_nearly_so(self) -> None:
        """A bound that nothing comes near would only add noise, or hide a mistake."""
        proxy, unit = _Proxy(4.0), 1 << 30
        low, each = round(0.15 * 4.0 * unit), unit // 8  # 64 items of a user, 1/√64 each
        before = np.full(_PROXY_ITEMS, low, dtype=np.uint64)
        moved = int((proxy(before + np.uint64(each)) - proxy(before)).sum())
        assert 0.95 * proxy.sensitivity <= moved + _PROXY_ITEMS <= proxy.sensitivity + _PROXY_ITEMS
        step = _ExpectedYield(self.LOOK.short.design.rounds[0]).sensitivity
        assert step <= _YIELD_UNIT
        assert _lengths(np.array([1, 4, 128, 10**9])).tolist() == [-_MIDDLE, -24, _MIDDLE, _MIDDLE]


class Numbers:
    """Contributions that are nothing but the four sums that a look asks for."""

    def __init__(self, users: int, lengths: int, yields: int, proxy: int) -> None:
        self._users = {_ones: users, _lengths: lengths}
        self._items = {"settle": yields, "weigh": proxy}

    def measure_users(self, measure: Any) -> int:
        return self._users[measure]

    def measure_items(self, weights: str, measure: Any) -> int:
        del measure
        return self._items[weights]

    def settle(self, *_: int) -> str:
        return "settle"

    def weigh(self, *_: int, min_users: int = 1) -> str:
        assert min_users == 1
        return "weigh"


def taken(look: SizeLook, numbers: tuple[int, int, int, int], looks: int) -> int:
    """Return how many of the looks choose matching."""
    seen: Any = Numbers(*numbers)
    return sum(
        look.choose(seen, Key.fresh().scrambler(Purpose.LOOK)).mechanism == Matching()
        for _ in range(looks)
    )


class TestPrivacy:
    """The choice is ε_look-DP on the worst neighbours, and a variant with less noise is caught.

    ε = 28, the largest, makes the look's ε 0.28. With four million users, n and S are known
    well, and D is where it decides with even odds. An interval misses with probability 1e-8.
    """

    LOOK = look_of(epsilon=28.0, delta=1e-6)
    USERS = 4_000_000

    def odds(self, assumed: int, looks: int) -> tuple[float, float]:
        """Return a lower bound on P[matching], and an upper one with an additional user.

        That user raises P by all that one user can; the noise is made for `assumed`.
        """
        length, proxy = 3.5, 600 * _YIELD_UNIT
        worth = round(_WORTH_UNIT * math.exp(_WORTH[0] + _WORTH[1] * length))
        lean = round(_LEAN * worth * assumed / (self.LOOK.epsilon * _SHARES[2]))
        yields = (worth * proxy + lean) // _WORTH_UNIT
        step = -(-8 * (1 << 30) * _YIELD_UNIT // self.LOOK._proxy._width) + _PROXY_ITEMS
        less, more = (
            taken(self.LOOK, (self.USERS, 0, yields, moved), looks)
            for moved in (proxy, proxy + step)
        )
        low = stats.binomtest(less, looks).proportion_ci(1 - 2 * ALPHA).low
        return float(low), float(stats.binomtest(more, looks).proportion_ci(1 - 2 * ALPHA).high)

    def test_holds(self) -> None:
        low, high = self.odds(self.LOOK._proxy.sensitivity, 6000)
        assert 0.4 < low <= math.exp(self.LOOK.epsilon) * high

    def test_a_quarter_of_the_noise_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assumed = self.LOOK._proxy.sensitivity // 4
        monkeypatch.setattr(_Proxy, "sensitivity", assumed)
        monkeypatch.setattr(_ExpectedYield, "sensitivity", 1)
        low, high = self.odds(assumed, 3000)
        assert low > math.exp(self.LOOK.epsilon) * high


def people(items: int, users: int = 4000) -> Any:
    """Return users with a given number of items each, some of which are popular."""
    random = np.random.default_rng(4)
    user = np.repeat(np.arange(users), items)
    return pa.table({"u": user, "i": random.zipf(1.3, len(user)) % 3000})


class TestChoice:
    @pytest.mark.parametrize(
        ("items", "name"), [(1, "matching"), (2, "matching"), (80, "cumulative")]
    )
    def test_follows_the_length_of_lists(self, items: int, name: str) -> None:
        chosen = select_partitions(people(items, 40_000), user="u", item="i", epsilon=2, delta=1e-6)
        assert chosen.plan.mechanism.name == name
        assert chosen.certificate["mechanism"]["name"] == name
        assert chosen.certificate["chosen_by"]["name"] == "auto"
        assert chosen.certificate["chosen_by"]["epsilon"] == pytest.approx(0.009, rel=0.01)

    @pytest.mark.parametrize(("hint", "kind"), [(1, Matching), (8, Matching), (9, Cumulative)])
    def test_a_hint_needs_no_look(self, hint: float, kind: type) -> None:
        made = plan(epsilon=1, delta=1e-6, items_per_user=hint)
        assert isinstance(made.mechanism, kind)
        assert made.look is None

    def test_a_hint_is_for_auto(self) -> None:
        with pytest.raises(UsageError, match="items_per_user is a hint for mechanism='auto'"):
            plan("sips", epsilon=1, delta=1e-6, items_per_user=3)
        with pytest.raises(UsageError, match="items_per_user must be positive"):
            plan(epsilon=1, delta=1e-6, items_per_user=0)

    @pytest.mark.parametrize(("most", "name"), [(1, "single"), (5, "matching"), (30, "sips-rule")])
    def test_few_max_items_need_no_look(self, most: int, name: str) -> None:
        made = plan(epsilon=1, delta=1e-6, max_items=most)
        assert made.mechanism.name == name
        assert made.look is None

    def test_rho_needs_no_look(self) -> None:
        assert plan(rho=0.1, delta=1e-6).mechanism.name == "cumulative"


class TestGuarantee:
    @pytest.mark.parametrize(("epsilon", "delta"), [(1.765, 4.96e-5), (0.1, 1e-6), (4, 1e-8)])
    @pytest.mark.parametrize("items", [1, 80])
    def test_is_what_was_asked(self, epsilon: float, delta: float, items: int) -> None:
        spent = select_partitions(
            people(items, 500), user="u", item="i", epsilon=epsilon, delta=delta
        ).guarantee
        assert spent.delta(epsilon=epsilon) <= delta
        assert spent.epsilon(delta=delta) <= epsilon * (1 + 1e-12)
        assert spent.delta(epsilon=0.005 * epsilon) == 1.0
        assert str(spent).startswith(f"({epsilon:g}, ")

    @pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.7, 0.99])
    def test_is_the_worst_of_all_paths(self, epsilon: float) -> None:
        """A run that chose evidence might have chosen matching, whose curve is the worse one."""
        made = plan(epsilon=1.0, delta=1e-5)
        look = made.look
        assert isinstance(look, SizeLook)
        for branch in (look.short, look.long, look.early_short, look.early_long):
            rest = epsilon - look.spent(branch)
            alone = branch.design.guarantee.delta(epsilon=rest) if rest > 0 else 1.0
            assert made.guarantee.delta(epsilon=epsilon) >= alone * (1 - 1e-9)
            assert made.guarantee.rho >= branch.design.guarantee.rho
        for items in (1, 80):
            chosen = select_partitions(
                people(items, 500), user="u", item="i", epsilon=1, delta=1e-5
            )
            assert chosen.guarantee == made.guarantee

    def test_an_epsilon_above_the_samplers_largest(self) -> None:
        made = plan(epsilon=1000.0, delta=1e-5)
        assert made.guarantee.delta(epsilon=28.0) <= 1e-5

    def test_the_look_costs_one_per_cent(self) -> None:
        look = look_of(epsilon=1.0, delta=1e-6)
        assert look.epsilon + look.sampler.loss <= 0.01
        assert look.epsilon > 0.0099

    def test_a_plan_shows_both_branches(self) -> None:
        made = plan(epsilon=1.0, delta=1e-6)
        assert [row["if_chosen"] for row in made.table()] == ["matching", "cumulative"]
        words = made.explain()
        assert "1% of epsilon" in words
        assert made.guarantee.delta(epsilon=1.0) <= 1e-6
        for branch in made.rounds:
            alone = branch.mechanism.chances(branch.design.rounds, np.array([30.0]), 5)
            assert made.release_probability(30, 5) <= alone[0]
