"""MAD2R's two rounds on three and four items: the exact release, at random parameters.

That the same comparison rejects broken rounds is in tests/power (`releases.py`).
"""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr
from tests.power.checks.releases import nearest
from tests.privacy.test_adaptive import World

from dp_sips import Mad2R, MemoryEngine, Plan, plan
from dp_sips.auditing import enumeration
from dp_sips.auditing.enumeration import Coins, distributions
from dp_sips.auditing.neighbours import Neighbours, families, hypergraphs

CROWD = Neighbours(((0, 1),) * 22 + ((1, 2),) * 9 + ((0,),) * 12 + ((0, 1, 2),) * 7, (0, 2))


def by_formula(made: Plan, sets: list[list[int]], items: int) -> dict[tuple[int, ...], float]:
    """Return the odds of each release: for all cells of the first round, coins of the second."""
    first, second = made.rounds
    levels = [-np.inf, first.drop, *second.spread.edges, first.threshold, np.inf]
    assert levels == sorted(levels)
    weights = World(sets, np.zeros(items)).weights(first.spread)
    odds = np.diff(ndtr((np.array(levels)[:, None] - weights) / first.sigma), axis=0)
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for cells in product(range(len(odds)), repeat=items):
        kept = [n for n, cell in enumerate(cells) if 0 < cell < len(odds) - 1]
        left = [[item for item in one if item in kept] for one in sets]
        evidence = np.array([levels[cell] for cell in cells])
        again = World(left, evidence).weights(second.spread)
        yes = ndtr((again - second.threshold) / second.sigma) * (again > 0)
        reached = np.prod([odds[cell, n] for n, cell in enumerate(cells)])
        early = [n for n, cell in enumerate(cells) if cell == len(odds) - 1]
        for verdicts in product((False, True), repeat=len(kept)):
            coins = [yes[n] if out else 1 - yes[n] for n, out in zip(kept, verdicts, strict=True)]
            late = [n for n, out in zip(kept, verdicts, strict=True) if out]
            found[tuple(sorted((*early, *late)))] += reached * np.prod(coins)
    return found


@pytest.mark.parametrize("extra", [True, False])
def test_three_items_are_what_the_formula_says(*, extra: bool) -> None:
    made = plan("mad2r", epsilon=1.0, delta=1e-5, max_items=3)
    sets = [list(one) for one in (*CROWD.others, *([CROWD.extra] if extra else []))]
    engine = MemoryEngine(threads=1)
    (found,) = distributions(made, engine, [CROWD], extra=extra, seed=1, coins=Coins())
    assert len(found) == 8
    assert found == pytest.approx(by_formula(made, sets, 3), rel=1e-9, abs=1e-15)
    assert sum(found.values()) == pytest.approx(1, rel=1e-12)


def test_copies_are_as_good_as_the_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, to the last bit, whether copies share the branches or the pair has all of them.

    Without the additional user, an item does not come up; and of a user's own items, all that
    matters is whether anything is released.
    """
    made = plan(Mad2R(lowest=1.0), epsilon=2.0, delta=1e-5, max_items=3)
    pairs = [CROWD, Neighbours(((1, 2),) * 9, (0, 1)), Neighbours((), (0, 1, 2))]

    def both_sides() -> list[list[dict[tuple[int, ...], float]]]:
        engine, coins = MemoryEngine(threads=1), Coins()
        return [
            distributions(made, engine, pairs, extra=extra, seed=1, coins=coins)
            for extra in (True, False)
        ]

    shared = both_sides()
    monkeypatch.setattr(enumeration, "_items_fixed", lambda *_: 0)
    assert shared == both_sides()


@pytest.mark.parametrize("seed", range(6))
def test_promises_hold_at_random_parameters(seed: int) -> None:
    """Sets of three and four items up to Δ0, and of two items above it; d_max at its least, too."""
    random = np.random.default_rng(seed)
    mechanism = Mad2R(
        buffer=float(random.uniform(0, 3)),
        largest=int(random.choice([2, 3, 50])),
        share=float(random.uniform(0.02, 0.98)),
        lowest=float(random.choice([0.3, 0.5, 0.8, 1.0])),
        highest=float(random.choice([1.0, 1.5, 4.0])),
        lower=float(random.uniform(-1, 3)),
        upper=float(random.uniform(-1, 6)),
    )
    epsilon, max_items = float(random.choice([1.0, 2.0, 4.0])), int(random.integers(1, 4))
    made = plan(mechanism, epsilon=epsilon, delta=1e-5, max_items=max_items)
    pairs = [
        *hypergraphs(made, 10, 2, seed),
        *hypergraphs(made, 6, 3, seed, bounded=True),
        *hypergraphs(made, 1, 4, seed, bounded=True),
    ]
    assert 0 < nearest(made, pairs) <= 1 + 1e-9


def test_black_boxes_have_three_items_and_more() -> None:
    """In the audit of MAD2R, hypergraphs and users who move on are not of two items alone."""
    made = plan("mad2r", epsilon=1.0, delta=0.05, max_items=3)
    most = {f.name: max(pair.items for pair in f.members) for f in families(made)}
    assert most["hypergraph"] >= 3
    assert most["displaced"] >= 3
    assert most["own and shared"] == most["several shared"] == 3
    assert most["own items, above Δ0"] > 3
