"""The whole mechanism as it runs, with fresh keys: how often does it release what it must not?

A user with novel items is, to the mechanism, alone: nobody shares its items. So one run with many
such users is as many independent experiments. Every check is an exact binomial test with a
false-alarm rate of `ALPHA`; there are fewer than thirty.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dp_sips import MemoryEngine, Plan, Sips, WeightedGaussian, plan, select_partitions
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.decide import decide
from dp_sips.privacy.noise import Key, Scrambler
from dp_sips.progress import Progress
from dp_sips.sources import open_source

pytestmark = pytest.mark.fresh

ALPHA = 1e-8
DELTA = 0.05
USERS = 1500

Noise = Callable[[Key, int], Scrambler]


def novel(users: int, items: int) -> Any:
    """Return users who share nothing: user u holds the items u·items, u·items + 1, …"""
    return pa.table(
        {
            "u": pa.array(np.repeat(np.arange(users), items)),
            "i": pa.array(np.arange(users * items)),
        }
    )


def run(rounds: Plan, max_items: int, data: Any, noise: Noise = Key.noise_of_round) -> list[int]:
    """Run a plan as `select_partitions` does, but with another max_items or noise: to break it."""
    key = Key.fresh()
    source = open_source(data, user="u", item="i", nulls="error")
    loaded = MemoryEngine().load(source, Bounds(max_items), key, Progress(show=False))
    for index, step in enumerate(rounds.rounds):
        verdict = partial(
            decide, sigma=step.sigma, threshold=step.threshold, scrambler=noise(key, index)
        )
        loaded.remove(loaded.decide(loaded.weigh(max_items), verdict))
    items: Any = loaded.released()["i"].to_pylist()
    return list(items)


def exposed(items: list[int], items_per_user: int) -> int:
    """Count the users of whom at least one novel item was released."""
    return len({item // items_per_user for item in items})


class TestNovelItems:
    """The chance that any novel item of a user is released, in any round, is at most δ.

    With 4,500 users and δ = 5 % the standard error is 0.3 %: what exceeds δ by 2 % is caught.
    """

    @pytest.mark.parametrize("mechanism", [WeightedGaussian(), Sips(3), Sips(2, 1.0)])
    @pytest.mark.parametrize(
        ("items", "max_items"), [(1, 1), (1, 20), (5, 20), (20, 20), (60, 20), (100, 100)]
    )
    def test_at_most_delta(self, mechanism: Any, items: int, max_items: int) -> None:
        data = novel(USERS, items)
        found = sum(
            exposed(
                select_partitions(
                    data, user="u", item="i", mechanism=mechanism, max_items=max_items,
                    rho=0.5, delta=DELTA,
                ).items["i"].to_pylist(),
                items,
            )
            for _ in range(3)
        )  # fmt: skip
        test = partial(stats.binomtest, found, 3 * USERS)
        assert test(DELTA, alternative="greater").pvalue > ALPHA
        if isinstance(mechanism, WeightedGaussian) and items == max_items:
            # Here the bound is reached: the threshold is the one for this very k.
            assert test(DELTA).pvalue > ALPHA

    def test_a_threshold_for_one_item_is_caught(self) -> None:
        broken = plan("weighted-gaussian", rho=0.5, delta=DELTA, max_items=1)
        found = exposed(run(broken, 100, novel(USERS, 100)), 100)
        assert stats.binomtest(found, USERS, DELTA, alternative="greater").pvalue < ALPHA

    def test_bounding_that_is_left_out_is_caught(self) -> None:
        made = plan("weighted-gaussian", rho=0.5, delta=DELTA, max_items=1)
        assert exposed(run(made, 1, novel(USERS, 50)), 50) < USERS / 5
        found = exposed(run(made, 50, novel(USERS, 50)), 50)
        assert stats.binomtest(found, USERS, DELTA, alternative="greater").pvalue < ALPHA

    def test_rounds_that_spend_the_whole_budget_each_are_caught(self) -> None:
        made = plan("weighted-gaussian", rho=0.5, delta=DELTA, max_items=1)
        broken = replace(made, rounds=made.rounds * 3)
        found = exposed(run(broken, 1, novel(USERS, 1)), 1)
        assert stats.binomtest(found, USERS, DELTA, alternative="greater").pvalue < ALPHA


class TestNoiseIsFresh:
    """An item that several users hold is released as often as independent rounds say.

    One noise for all rounds would let each round decide as the first did; it is caught, and so is
    noise of 0.8 times the size.
    """

    MADE = plan(Sips(rounds=4, ratio=1.0), rho=2.0, delta=1e-6, max_items=1)

    def chance(self, noise: Noise) -> tuple[int, float]:
        """Return how many of USERS items were released, and the chance that each should have."""
        holders = self.MADE.users_needed(0.3)
        data = pa.table(
            {
                "u": pa.array(np.arange(holders * USERS)),
                "i": pa.array(np.repeat(np.arange(USERS), holders)),
            }
        )
        return len(run(self.MADE, 1, data, noise)), self.MADE.release_probability(holders)

    def test_in_every_round(self) -> None:
        found, chance = self.chance(Key.noise_of_round)
        assert stats.binomtest(found, USERS, chance).pvalue > ALPHA

    def test_one_noise_for_all_rounds_is_caught(self) -> None:
        found, chance = self.chance(lambda key, _: key.noise_of_round(0))
        assert stats.binomtest(found, USERS, chance).pvalue < ALPHA

    def test_one_noise_for_all_items_is_caught(self) -> None:
        class Constant(Scrambler):
            def __call__(self, blocks: Any) -> Any:
                return super().__call__(np.zeros_like(blocks))

        found, chance = self.chance(lambda key, i: Constant(key._derive(str(i))))
        assert stats.binomtest(found, USERS, chance).pvalue < ALPHA


class TestReleasesDoNotDependOnOtherUsers:
    def test_a_users_rows_change_only_the_odds_of_its_own_items(self) -> None:
        """With the same key, a user added changes no verdict on items that it does not hold."""
        random = np.random.default_rng(1)
        users, items = random.integers(0, 400, 4000), random.zipf(1.5, 4000) % 300
        data = pa.table({"u": pa.array(users), "i": pa.array(items)})
        new = pa.table({"u": pa.array([10**6] * 7), "i": pa.array([*range(1000, 1007)])})
        for seed in range(10):
            options: dict[str, Any] = {
                "user": "u", "item": "i", "rho": 0.5, "delta": 1e-9, "max_items": 3, "seed": seed,
                "insecure_test": True,
            }  # fmt: skip
            before = select_partitions(data, **options).items["i"].to_pylist()
            after = select_partitions(pa.concat_tables([data, new]), **options).items["i"]
            assert [item for item in after.to_pylist() if item < 1000] == before
