"""Black box: the engine runs as anyone runs it, on thousands of pairs of neighbours at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dp_sips.auditing.neighbours import Neighbours
from dp_sips.auditing.statistics import Counts, best_event, lower_bound
from dp_sips.auditing.targets import Target
from dp_sips.auditing.worlds import OUTCOMES, Worlds, only_with
from dp_sips.engines.base import Engine
from dp_sips.privacy.arrays import Integers
from dp_sips.select import select_partitions


@dataclass(frozen=True)
class Runner:
    """Runs a mechanism on both neighbours, with fresh keys.

    Attributes:
        target: What to audit.
        engine: What it runs on.
        rows: How many rows a run may have.
    """

    target: Target
    engine: Engine
    rows: int

    def counts(self, pair: Neighbours) -> tuple[Counts, Counts]:
        """Run once on each neighbour; count the outcomes with and without the user."""
        worlds = Worlds.of([pair] * max(1, self.rows // max(pair.rows, 1)))
        nothing = np.zeros(OUTCOMES, dtype=np.bool_)
        return (
            Counts(*self._hits(worlds, extra=True), nothing),
            Counts(*self._hits(worlds, extra=False), only_with(pair)),
        )

    def _hits(self, worlds: Worlds, *, extra: bool) -> tuple[Integers, int]:
        """Return how often each outcome occurred, and how many released items nobody has."""
        table = worlds.table(extra=extra)
        release = select_partitions(
            table,
            user="u",
            item="i",
            mechanism=self.target.prepared,
            engine=self.engine,
            progress=False,
            **self.target.options,
        )
        items = release.items["i"].to_numpy()
        held = np.isin(items, table["i"].to_numpy())
        outcomes = worlds.outcomes(items[held])
        return np.bincount(outcomes, minlength=OUTCOMES), int((~held).sum())


@dataclass(frozen=True)
class Shown:
    """What a test has shown.

    Attributes:
        epsilon: At this ε …
        delta: … δ is at least this, unless the bounds failed.
        trials: From this many trials on each neighbour.
    """

    epsilon: float
    delta: float
    trials: int


def shown(runner: Runner, pair: Neighbours, epsilons: Sequence[float], alpha: float) -> list[Shown]:
    """Choose events on one half of the trials, and test them on the other, at each ε.

    `alpha` is for one bound: both bounds, both directions and all ε add up.
    """
    chosen, tested = runner.counts(pair), runner.counts(pair)
    # An item that nobody has can be in no release.
    foreign = any(counts.foreign for counts in (*chosen, *tested))
    found = []
    for epsilon in epsilons:
        bounds = [
            lower_bound(tested[a], tested[b], event, epsilon, alpha)
            for a, b in ((0, 1), (1, 0))
            for event in [best_event(chosen[a], chosen[b], epsilon, alpha)]
        ]
        found.append(Shown(epsilon, 1.0 if foreign else max(bounds), tested[0].trials))
    return found
