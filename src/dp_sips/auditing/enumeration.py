"""The exact distribution of a release, for thousands of neighbours at once, on the engine itself.

Given the weights, the verdicts of a round are independent coins, whose chances `probing.py` finds.
The engine runs the plan again and again, each time with other verdicts, until every branch of every
pair's tree has been taken: loading, bounding, weighing, and what happens to items that were found,
are the engine's own. Both neighbours are run with the same secret bits for bounding and turns: the
promise holds for each of them.

Rounds that keep noisy numbers from one to the next have no such tree (`integration.py`).
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np

from dp_sips.auditing.neighbours import Neighbours
from dp_sips.auditing.probing import Dial, chances
from dp_sips.auditing.worlds import Worlds
from dp_sips.engines.base import Engine
from dp_sips.plan import Plan
from dp_sips.privacy.arrays import Blocks, Bools, Floats, Weights
from dp_sips.privacy.contributions import Contributions, Decide
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source

SOMETHING: Final = (-1,)
"""Stands for every release that is not empty."""


class NoTreeError(Exception):
    """The rounds keep noisy numbers: their verdicts are no finite tree."""


class Tree:
    """One pair's tree of verdicts, gone through branch by branch.

    A branch is a list of verdicts, each with its chance. The next branch turns the last no into a
    yes and forgets what came after it. Where the other neighbour is empty, all that matters is
    whether anything is released (`alone`), and one branch is enough.
    """

    def __init__(self, *, alone: bool = False) -> None:
        self.done = False
        self._alone = alone
        self._branch: list[bool] = []
        self._depth = 0
        self._odds = 1.0
        self._released: list[int] = []
        self._found: dict[tuple[int, ...], float] = defaultdict(float)

    def verdict(self, item: int, yes: float, no: float) -> bool:
        """Return this branch's verdict on an item."""
        if self.done:
            return False
        if yes > 0 and no > 0:
            if self._depth == len(self._branch):
                self._branch.append(False)
            taken = self._branch[self._depth]
            self._depth += 1
        else:
            taken = yes > 0
        self._odds *= yes if taken else no
        if taken:
            self._released.append(item)
        return taken

    def end(self) -> None:
        """Note the outcome of this branch, and go on to the next."""
        if self.done:
            return
        self._found[tuple(sorted(self._released))] += self._odds
        if self._alone:
            self._found[SOMETHING] = 1 - self._odds
            self._branch = []
        while self._branch and self._branch[-1]:
            self._branch.pop()
        self.done = not self._branch
        if self._branch:
            self._branch[-1] = True
        self._depth, self._odds, self._released = 0, 1.0, []

    @property
    def distribution(self) -> dict[tuple[int, ...], float]:
        """The probability of each set of items."""
        return self._found


class Coins:
    """The chances of verdicts, by round and weight: worked out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[float, float]] = {}
        self.dial = Dial()

    def of(self, index: int, decide: Decide, blocks: Blocks, weights: Weights) -> Floats:
        """Return the chances of yes and no, for each row, in a round."""
        values, first, places = np.unique(weights, return_index=True, return_inverse=True)
        new = [n for n, w in enumerate(values.tolist()) if (index, w) not in self._known]
        if new:
            odds = chances(decide, self.dial, blocks[first[new]], values[new])
            for w, yes, no in zip(values[new].tolist(), *map(np.ndarray.tolist, odds), strict=True):
                self._known[index, w] = (yes, no)
        found = np.array([self._known[index, w] for w in values.tolist()]).reshape(-1, 2)
        return found[places]


class Scripted:
    """An engine's contributions, whose verdicts are those of a branch of each tree."""

    def __init__(
        self, inner: Contributions, trees: Sequence[Tree], width: int, coins: Coins
    ) -> None:
        self._inner = inner
        self._trees = trees
        self._width = width
        self._coins = coins
        self.round = 0

    def decide(self, weights: Any, decide: Decide) -> Any:
        """Return the verdicts of this branch."""

        def scripted(blocks: Blocks, sums: Weights) -> Bools:
            odds = self._coins.of(self.round, decide, blocks, sums)
            pairs, items = np.divmod(blocks[:, 0].astype(np.int64), self._width)
            rows = zip(pairs.tolist(), items.tolist(), odds.tolist(), strict=True)
            trees = self._trees
            return np.array(
                [trees[pair].verdict(item, *both) for pair, item, both in rows], dtype=np.bool_
            )

        return self._inner.decide(weights, scripted)

    def decide_on_evidence(self, weights: Any, decide: Any) -> Any:
        """Refuse: evidence is a real number."""
        del weights, decide
        raise NoTreeError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def distributions(
    plan: Plan, engine: Engine, pairs: Sequence[Neighbours], *, extra: bool, seed: int, coins: Coins
) -> list[dict[tuple[int, ...], float]]:
    """Return the distribution of the release for each pair, with or without the extra user."""
    worlds = Worlds.of(pairs)
    table = worlds.table(extra=extra)
    trees = [Tree(alone=not pair.others) for pair in pairs]
    while not all(tree.done for tree in trees):
        source = open_source(table, user="u", item="i", nulls="error")
        loaded = engine.load(source, plan.bounds, Key.for_tests(seed), Progress(show=False))
        with closing(loaded):
            scripted = Scripted(loaded, trees, worlds.width, coins)
            for index, step in enumerate(plan.rounds):
                scripted.round = index
                step.run(scripted, coins.dial)
        for tree in trees:
            tree.end()
    return [tree.distribution for tree in trees]
