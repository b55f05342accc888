"""The exact distribution of a release, for thousands of neighbours at once, on the engine itself.

Given the weights, the verdicts of a round are independent coins, whose chances `probing.py` finds.
The engine runs the plan again and again, each time with other verdicts, until every branch of every
pair's tree has been taken: loading, bounding, weighing, and what happens to items that were found,
are the engine's own. Nothing depends on the verdicts of the last round, so they need no branches:
the odds of each release are products. Both neighbours are run with the same secret bits for
bounding and turns: the promise holds for each of them.

Where a round keeps a noisy number for the next (MAD2R), all that goes on is in which of a few cells
it lies: dropped, one of the next round's steps of bias, or released. A verdict is then a die, whose
faces are the cells. Rounds that add up noisy numbers have no such tree (`integration.py`).

Seven faces are many for one run after the other. Where no set is above Δ0, nothing but noise is
left to chance, and copies of a pair with users and items of their own are as good as the pair: each
takes the branches on which all items but two lie in certain cells (`fixed_cells`).

**Error.** Every branch is taken, so nothing is off except by rounding. A chance is off by a part of
2⁻⁵¹ at the most, that of a cell by `adaptive.cells` times as much, as it is a difference of tails
(under 260 for cells of 0.01σ and more; 11 for MAD2R's defaults). So the odds of a branch of four
items are off by a part of 5·10⁻¹³, and as they are positive, so are their sums (`fsum`). An outcome
adds to δ(ε) where p > e^ε·p': δ is off by at most 10⁻¹², for which `Row.violated` leaves room.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from dp_sips.auditing.neighbours import Neighbours
from dp_sips.auditing.probing import Dial, cell_chances, chances
from dp_sips.auditing.worlds import Worlds
from dp_sips.engines.base import Engine
from dp_sips.plan import Plan
from dp_sips.privacy.arrays import Blocks, Bools, Claims, Floats, Integers, Weights
from dp_sips.privacy.contributions import Contributions, Decide, DecideOnEvidence, Evidence
from dp_sips.privacy.noise import Key
from dp_sips.privacy.weights import WHOLE_CLAIM
from dp_sips.progress import Progress
from dp_sips.sources import open_source

SOMETHING: Final = (-1,)
"""Stands for every release that is not empty."""

Found = defaultdict[tuple[int, ...], list[float]]
"""The odds of the branches that lead to each release."""

_BY_RUNS: Final = 2
"""Of this many items, all cells are gone through run by run."""


class NoTreeError(Exception):
    """The rounds keep noisy numbers: their verdicts are no finite tree."""


class Tree:
    """One pair's tree of verdicts, gone through branch by branch.

    A branch is a list of verdicts, each with its chance. The next branch has the next face of its
    last verdict that has one, and forgets what came after it. Verdicts of the last round are coins,
    without branches. Where the other neighbour is empty, all that matters is whether anything is
    released (`alone`): only branches without a release are taken.

    Copies of a pair share what they have found; each has items whose cells are `fixed`. An item
    that does not come up is in cell 0, so that one of the copies has it.
    """

    def __init__(
        self,
        *,
        alone: bool = False,
        fixed: Mapping[int, int] | None = None,
        found: Found | None = None,
    ) -> None:
        self.done = False
        self._alone = alone
        self._fixed = fixed or {}
        self._unseen = dict(self._fixed)
        self._branch: list[tuple[int, int]] = []
        self._depth = 0
        self._odds = 1.0
        self._released: list[int] = []
        self._coins: list[tuple[int, float, float]] = []
        self._found: Found = defaultdict(list) if found is None else found

    def verdict(self, item: int, yes: float, no: float) -> bool:
        """Return this branch's verdict on an item."""
        return self.cell(item, (no, yes)) == 1

    def cell(self, item: int, odds: Sequence[float]) -> int:
        """Return in which cell an item lies on this branch; in the last, it is released."""
        if self.done:
            return 0
        if item in self._fixed:
            return self._fixed_cell(item, odds)
        possible = [n for n, chance in enumerate(odds) if chance > 0]
        if self._alone and len(possible) > 1 and possible[-1] == len(odds) - 1:
            possible.pop()
        return self._take(item, possible[self._face(len(possible))], odds)

    def _fixed_cell(self, item: int, odds: Sequence[float]) -> int:
        """Return the cell that is fixed; without a chance, there is nothing to go through."""
        self._unseen.pop(item, None)
        self.done = odds[self._fixed[item]] <= 0
        return 0 if self.done else self._take(item, self._fixed[item], odds)

    def _take(self, item: int, cell: int, odds: Sequence[float]) -> int:
        self._odds *= odds[cell]
        if cell == len(odds) - 1:
            self._released.append(item)
        return cell

    def _face(self, faces: int) -> int:
        """Return which of the faces this branch has here."""
        if faces == 1:
            return 0
        if self._depth == len(self._branch):
            self._branch.append((0, faces))
        self._depth += 1
        return self._branch[self._depth - 1][0]

    def coin(self, item: int, yes: float, no: float) -> None:
        """Note the chances of a verdict on which nothing else depends."""
        if not self.done and yes > 0:
            self._coins.append((item, yes, no))

    def end(self) -> None:
        """Note the outcomes of this branch, and go on to the next."""
        if self.done:
            return
        for released, odds in self._outcomes() if not any(self._unseen.values()) else ():
            self._found[tuple(sorted((*self._released, *released)))].append(odds)
        while self._branch and self._branch[-1][0] == self._branch[-1][1] - 1:
            self._branch.pop()
        self.done = not self._branch
        if self._branch:
            face, faces = self._branch[-1]
            self._branch[-1] = (face + 1, faces)
        self._depth, self._odds, self._released, self._coins = 0, 1.0, [], []
        self._unseen = dict(self._fixed)

    def _outcomes(self) -> list[tuple[tuple[int, ...], float]]:
        """Return what the coins release on this branch, and its odds."""
        if self._alone:
            return [((), math.prod((no for _, _, no in self._coins), start=self._odds))]
        found: list[tuple[tuple[int, ...], float]] = [((), self._odds)]
        for item, yes, no in self._coins:
            found = [
                outcome
                for released, odds in found
                for outcome in ((released, odds * no), ((*released, item), odds * yes))
            ]
        return found

    @property
    def distribution(self) -> dict[tuple[int, ...], float]:
        """The probability of each set of items."""
        found = {released: math.fsum(odds) for released, odds in self._found.items()}
        if self._alone:
            nothing = found.get((), 0.0)
            return {(): nothing, SOMETHING: 1 - nothing}
        return found


@dataclass(frozen=True)
class Cells:
    """What a round that keeps noisy numbers tells the next: a few cells.

    Attributes:
        decide: What the round decides by.
        edges: Where the next round's steps of bias begin.
    """

    decide: DecideOnEvidence
    edges: tuple[float, ...]

    @property
    def count(self) -> int:
        """How many there are: dropped, the steps, and released."""
        return len(self.edges) + 3

    def __call__(self, blocks: Blocks, weights: Weights) -> Integers:
        """Return the cell of each item."""
        noisy, released, claims = self.decide(blocks, weights, np.zeros(len(weights)))
        steps = 1 + np.searchsorted(np.array(self.edges), noisy, side="right")
        return np.where(released, self.count - 1, np.where(claims > 0, steps, 0))

    def inside(self, cells: Integers) -> tuple[Evidence, Bools, Claims]:
        """Return what `decide` would for a noisy number in these cells."""
        lowest = np.array([-np.inf, -np.inf, *self.edges, np.inf])
        claims = np.where(cells > 0, WHOLE_CLAIM, 0).astype(np.uint8)
        return lowest[cells], cells == self.count - 1, claims


class Coins:
    """The chances of verdicts, by round and weight: worked out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[float]] = {}
        self.dial = Dial()

    def of(self, index: int, decide: Decide, blocks: Blocks, weights: Weights) -> Floats:
        """Return the chances of no and yes, for each row, in a round."""
        return self._of(index, blocks, weights, lambda *at: chances(decide, self.dial, *at)[::-1])

    def of_cells(self, index: int, cells: Cells, blocks: Blocks, weights: Weights) -> Floats:
        """Return the chances of all cells, for each row, in a round."""
        return self._of(
            index, blocks, weights, lambda *at: cell_chances(cells, cells.count, self.dial, *at)
        )

    def _of(
        self,
        index: int,
        blocks: Blocks,
        weights: Weights,
        find: Callable[[Blocks, Weights], Sequence[Floats]],
    ) -> Floats:
        values, first, places = np.unique(weights, return_index=True, return_inverse=True)
        new = [n for n, w in enumerate(values.tolist()) if (index, w) not in self._known]
        if new:
            odds = np.stack(find(blocks[first[new]], values[new]), axis=1)
            for w, row in zip(values[new].tolist(), odds.tolist(), strict=True):
                self._known[index, w] = row
        return np.array([self._known[index, w] for w in values.tolist()])[places]


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
        self.following: Any = None

    def decide(self, weights: Any, decide: Decide) -> Any:
        """Return the verdicts of this branch; in the last round, note their chances."""

        def scripted(blocks: Blocks, sums: Weights) -> Bools:
            odds = self._coins.of(self.round, decide, blocks, sums)
            if self.following is None:
                self._toss(blocks, odds)
                return np.zeros(len(sums), dtype=np.bool_)
            return np.equal(self._cells(blocks, odds), 1, dtype=np.bool_)

        return self._inner.decide(weights, scripted)

    def decide_on_evidence(self, weights: Any, decide: DecideOnEvidence) -> Any:
        """Return the cells of this branch; refuse where evidence goes on as a real number."""
        if not hasattr(self.following, "spread"):
            raise NoTreeError
        cells = Cells(decide, self.following.spread.edges)

        def scripted(
            blocks: Blocks, sums: Weights, evidence: Evidence
        ) -> tuple[Evidence, Bools, Claims]:
            del evidence
            odds = self._coins.of_cells(self.round, cells, blocks, sums)
            return cells.inside(self._cells(blocks, odds))

        return self._inner.decide_on_evidence(weights, scripted)

    def _cells(self, blocks: Blocks, odds: Floats) -> Integers:
        """Return the cell of each item on its pair's branch."""
        found = np.zeros(len(blocks), dtype=np.int64)
        for row, tree, item, faces in self._rows(blocks, odds):
            found[row] = tree.cell(item, faces)
        return found

    def _toss(self, blocks: Blocks, odds: Floats) -> None:
        """Note the chances of no and yes of each item in its pair's tree."""
        for _, tree, item, (no, yes) in self._rows(blocks, odds):
            tree.coin(item, yes, no)

    def _rows(self, blocks: Blocks, odds: Floats) -> Iterator[tuple[int, Tree, int, list[float]]]:
        """Return the row, the tree, the number and the odds of each item.

        An engine's tables may have places without an item, which come as number 0.
        """
        numbers = blocks[:, 0].astype(np.int64)
        rows = np.flatnonzero(numbers)
        pairs, items = np.divmod(numbers[rows], self._width)
        trees = map(self._trees.__getitem__, (pairs - 1).tolist())
        return zip(rows.tolist(), trees, items.tolist(), odds[rows].tolist(), strict=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def branches_per_item(plan: Plan) -> int:
    """Return how many branches the verdicts on one item have, before the last round."""
    if not has_cells(plan):
        return len(plan.rounds)
    return len(plan.rounds[-1].spread.edges) + 3


def runs_needed(plan: Plan, pair: Neighbours) -> int:
    """Return how often the engine has to run, at most, to go through a pair's tree."""
    if not pair.others and not has_cells(plan):
        return 1  # there is one way to release nothing
    return int(branches_per_item(plan) ** (pair.items - _items_fixed(plan, pair)))


def copies_needed(plan: Plan, pair: Neighbours) -> int:
    """Return how many copies of a pair share its branches."""
    return int(branches_per_item(plan) ** _items_fixed(plan, pair))


def fixed_cells(plan: Plan, pair: Neighbours) -> list[dict[int, int]]:
    """Return for each copy of a pair which items lie in which cells."""
    fixed = range(_items_fixed(plan, pair))
    every = product(range(branches_per_item(plan)), repeat=len(fixed))
    return [dict(zip(fixed, cells, strict=True)) for cells in every]


def _items_fixed(plan: Plan, pair: Neighbours) -> int:
    """Return of how many items the cells are fixed: none where bounding tells copies apart."""
    sets = map(set, (*pair.others, pair.extra))
    if not has_cells(plan) or max(map(len, sets)) > plan.max_items:
        return 0
    return max(0, pair.items - _BY_RUNS)


def has_cells(plan: Plan) -> bool:
    """Whether the second of two rounds is told cells of the first's noisy weights."""
    return len(plan.rounds) > 1 and hasattr(plan.rounds[-1], "spread")


def distributions(
    plan: Plan, engine: Engine, pairs: Sequence[Neighbours], *, extra: bool, seed: int, coins: Coins
) -> list[dict[tuple[int, ...], float]]:
    """Return the distribution of the release for each pair, with or without the extra user."""
    copies = [(n, cells) for n, pair in enumerate(pairs) for cells in fixed_cells(plan, pair)]
    worlds = Worlds.of([pairs[n] for n, _ in copies], first=1)
    table = worlds.table(extra=extra)
    found: list[Found] = [defaultdict(list) for _ in pairs]
    trees = [Tree(alone=not pairs[n].others, fixed=cells, found=found[n]) for n, cells in copies]
    while not all(tree.done for tree in trees):
        source = open_source(table, user="u", item="i", nulls="error")
        loaded = engine.load(source, plan.bounds, Key.for_tests(seed), Progress(show=False))
        with closing(loaded):
            scripted = Scripted(loaded, trees, worlds.width, coins)
            for index, step in enumerate(plan.rounds):
                scripted.round = index
                scripted.following = dict(enumerate(plan.rounds)).get(index + 1)
                step.run(scripted, coins.dial)
        for tree in trees:
            tree.end()
    of_pairs = {n: tree for (n, _), tree in zip(copies, trees, strict=True)}
    return [tree.distribution for tree in of_pairs.values()]
