"""An additional user: how far the weights, votes, turns and sums of a look move."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.power.checks.engines import loaded, weights_of
from tests.privacy.test_adaptive import World, move
from tests.privacy.test_matching_exact import matched, neighbours

from dp_sips import MemoryEngine, plan
from dp_sips.engines.reference import ReferenceEngine
from dp_sips.mechanisms import auto
from dp_sips.mechanisms.adaptive import Spread, bias_edges
from dp_sips.mechanisms.claims import CLAIMS, Schedule, claim_chances
from dp_sips.mechanisms.turns import L1, L2, Favourite, Proportional
from dp_sips.privacy import bounding
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.decide import noisy_integer
from dp_sips.privacy.noise import Key, Purpose

_ENGINES: tuple[Any, ...] = (ReferenceEngine(), MemoryEngine(threads=1))
_ROUNDING = 1e-3


def mad_moves() -> None:
    """adaptive.Spread: an additional user moves the weights by an L2 norm of at most 1.

    The worst is a crowd that makes some of the newcomer's items popular, for small and large d_max;
    and there are random crowds, with biases from an earlier round.
    """
    for largest in (2, 3, 4, 8, 40):
        for lowest in (1.0, 0.75):
            edges = () if lowest == 1 else bias_edges(1.0, 3.0, lowest)
            spread = Spread(1.5, largest, lowest, 1.0 if lowest == 1 else 2.0, edges)
            for size, crowd in product({2, largest, 2 * largest}, (1, 20, 400)):
                everybody = list(range(size))
                for shared in {1, size // 2, size}:
                    sets = [[*everybody[:shared], size]] * crowd + [everybody[:shared]] * crowd
                    world = World(sets, np.zeros(size + 1))
                    assert move(spread, world, everybody) <= 1 + _ROUNDING
    random = np.random.default_rng(8)
    for _ in range(150):
        largest, items = int(random.integers(2, 12)), int(random.integers(3, 14))
        spread = Spread(float(random.uniform(1, 8)), largest, 0.5, 2.0, bias_edges(1.0, 3.0, 0.5))
        sizes = random.integers(1, items + 1, 30)
        sets = [random.permutation(items)[:size].tolist() for size in sizes]
        world = World(sets[1:] * 2, random.uniform(0, 10, items))
        assert move(spread, world, sets[0]) <= 1 + _ROUNDING


def mad_items_of_ones_own() -> None:
    """Of t items of a user's own, each weighs at most b_max/√t."""
    for own in (1, 2, 5):
        for crowd in (1, 300):
            shared = [0, 1, 2]
            sets = [shared] * crowd + [[*shared, *range(3, 3 + own)]]
            weights = World(sets, np.zeros(3 + own)).weights(Spread(2.0, 10))
            assert all(0 < weight <= 1 / math.sqrt(own) + 1e-9 for weight in weights[3:])


def one_vote() -> None:
    """matching: an additional user adds one vote to one item, or none, and takes none away."""
    for each in neighbours(500):
        steps = [a - b for a, b in zip(*each.votes(matched), strict=True)]
        assert min(steps) >= 0
        assert sum(steps) <= 1


def loyalty_is_ones_own() -> None:
    """Whether a user is loyal, and the order of all lists, depend on no other user's rows."""
    random = np.random.default_rng(6)
    for engine in _ENGINES:
        for _ in range(25):
            pairs = [
                (f"user {user}", int(item))
                for user in range(20)
                for item in random.permutation(8)[: random.integers(2, 6)]
            ]
            votes = []
            for gone in (None, "user 7"):
                kept = [pair for pair in pairs if pair[0] != gone]
                contributions = loaded(engine, kept, Bounds(6, once=True))
                votes.append(weights_of(contributions, contributions.settle(3, 1, 2, 6)))
                contributions.close()
            items = votes[0].keys() | votes[1].keys()
            steps = [(votes[0].get(i, 0) - votes[1].get(i, 0)) >> 30 for i in items]
            assert sorted(step for step in steps if step) in ([], [1])


def turns_stay() -> None:
    """bounding.turns: without one user, the others take turns in the same order."""
    key = Key.for_tests(12)
    users = np.stack((np.arange(200, dtype=np.uint64), np.full(200, 3, np.uint64)), axis=1)
    order = bounding.turns(key, users)
    assert sorted(order) == list(range(200))
    assert order.tolist() != list(range(200))
    for gone in (0, 50, 199):
        rest = np.delete(np.arange(200), gone)
        assert rest[bounding.turns(key, users[rest])].tolist() == [n for n in order if n != gone]


def payments() -> None:
    """turns.Proportional: a user pays a norm of at most 1, and its map expands no distance."""
    random = np.random.default_rng(2)
    bits = 40
    for power in (L1, L2):
        policy = Proportional(power, 6 << bits, bits)
        for _ in range(200):
            size = int(random.integers(1, 9))
            one, other = (random.integers(0, 6 << bits, (2, size))).tolist()
            paid = policy.payments(one)
            assert sum(p**power for p in paid) <= (1 << bits) ** power
            assert all(0 <= p <= gap for p, gap in zip(paid, one, strict=True))
            left = [g - p for g, p in zip(one, paid, strict=True)]
            left_other = [g - p for g, p in zip(other, policy.payments(other), strict=True)]
            before = _norm(one, other, power)
            assert _norm(left, left_other, power) <= before + 2 * (size + 8)


def _norm(one: list[int], other: list[int], power: int) -> float:
    total = sum(abs(a - b) ** power for a, b in zip(one, other, strict=True))
    return float(math.sqrt(total) if power == L2 else total)


def payments_in_turns() -> None:
    """pay_shares, pay_favourites: an additional user moves what all pay by a norm of at most 1."""
    random = np.random.default_rng(7)
    policies: tuple[Any, ...] = (
        Proportional(L1, 5 << 39, 40),
        Proportional(L2, 5 << 39, 40),
        Favourite(3),
    )
    for engine in _ENGINES:
        for policy in policies:
            for _ in range(20):
                pairs = [
                    (f"user {u}", int(i))
                    for u, i in zip(
                        random.integers(0, 12, 50), random.integers(0, 6, 50), strict=True
                    )
                ]
                more, less = (_paid(engine, policy, pairs, gone) for gone in (None, "user 3"))
                steps = [more.get(i, 0) - less.get(i, 0) for i in more.keys() | less.keys()]
                if isinstance(policy, Favourite):
                    assert sorted(step for step in steps if step) in ([], [1])
                else:
                    most = (1 << 40) + 1000
                    assert sum(abs(s) ** policy.power for s in steps) <= most**policy.power


def _paid(engine: Any, policy: Any, pairs: Any, gone: str | None) -> dict[int, int]:
    kept = [pair for pair in pairs if pair[0] != gone]
    contributions = loaded(engine, kept, Bounds(4, repeats=True))
    pay = (
        contributions.pay_favourites if isinstance(policy, Favourite) else contributions.pay_shares
    )
    found = weights_of(contributions, pay(policy, 4))
    contributions.close()
    return found


class _Sums:
    """Contributions that are nothing but the sums that a look asks for."""

    def __init__(self, users: int, length: float) -> None:
        self._sums = {auto._ones: users, auto._lengths: round(16 * users * (length - 3.5))}

    def measure_users(self, measure: Any) -> int:
        return self._sums[measure]

    def measure_items(self, weights: Any, measure: Any) -> int:
        del weights, measure
        return 500_000

    def settle(self, *_: int) -> None:
        pass

    def weigh(self, *_: int, **more: int) -> None:
        pass


def look_spends_its_part() -> None:
    """auto: each number of the look has Laplace noise of its sensitivity over its part of ε.

    Sensitivities are worked out here: 1 for the number of users, 16·3.5 for lengths, and for the
    comparison the larger of a step of the coin's table and of √64 times the slope of the ramp.
    """
    made = plan("auto", epsilon=4.0, delta=1e-5)
    look: Any = made.look
    asked: list[tuple[int, float, int]] = []

    def note(value: int, *, scale: float, scrambler: Any, place: int) -> int:
        found = noisy_integer(value, scale=scale, scrambler=scrambler, place=place)
        asked.append((place, scale, found - value))
        return found

    seen: Any = _Sums(10**7, 3.5)
    with patch.object(auto, "noisy_integer", note):
        for seed in range(20):
            look.choose(seen, Key.for_tests(seed).scrambler(Purpose.LOOK))
    scales = {place: scale for place, scale, _ in asked}
    assert sorted(scales) == [0, 1, 2]
    spent = 1 / scales[0] + 16 * 3.5 / scales[1] + _step(look) / scales[2]
    assert 0.98 * look.epsilon <= spent <= look.epsilon * (1 + 1e-9)
    for place in range(3):
        moved = [abs(noise) / scale for at, scale, noise in asked if at == place]
        assert 0.2 < sum(moved) / len(moved) < 3  # the mean of |Laplace| is 1


def _step(look: Any) -> float:
    """By how much one user moves what the last number compares, in its units."""
    chances = look.short.design.rounds[0].coin.chances(np.arange(400.0))
    coin = max(np.diff(np.floor(1024 * chances)))
    ramp = 8 * 1024 / (2.85 * look.long.design.rounds[-1].threshold) + 64
    worth = round(256 * math.exp(0.29 + 0.164 * 3.5))
    return float(max(256 * coin, worth * ramp))


def claims_of_noise() -> None:
    """claims.claim_chances: noise alone keeps at least the claims that the accounting counts on.

    50,000 simulated items with a fixed seed; 0.02 is more than eight deviations of a frequency.
    """
    schedule = Schedule((0.2, 0.3, 0.5), 1.1, (-0.5, 0.3, 1.0), 1.5, 0.2, 8.0)
    bounds = claim_chances(schedule)
    random, rho = np.random.default_rng(3), 0.7
    evidence, alive = np.zeros(50_000), np.ones(50_000, dtype=bool)
    for index in range(2):
        sigma = 1 / math.sqrt(2 * rho * schedule.fractions[index])
        evidence += schedule.counts[index] * random.normal(0, sigma, 50_000)
        average = evidence / schedule.counted[index]
        edges = schedule.edges(index) * schedule.deviations(rho)[index]
        claims = np.searchsorted(edges, average, side="right") * alive
        alive &= claims > 0
        for least in range(1, len(CLAIMS)):
            counted_on = float(bounds[index + 1][least:].sum())
            seen = float((claims >= least).mean())
            assert counted_on - 0.02 <= seen <= counted_on + 0.03


EVERY: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        mad_moves,
        mad_items_of_ones_own,
        one_vote,
        loyalty_is_ones_own,
        turns_stay,
        payments,
        payments_in_turns,
        look_spends_its_part,
        claims_of_noise,
    )
}
