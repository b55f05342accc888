"""How much is measured: the full evaluation, or a quick one on generated data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """The size of a run.

    Attributes:
        seeds: One run for each, wherever items are counted.
        repeats: Runs of which the median time is taken.
        generated: Users of the generated data set.
        growth: Users of the generated data sets that are timed.
        workers: Sizes of the Spark clusters that are timed; none, no cluster.
        files: Whether a folder of data is looked at, too.
    """

    seeds: tuple[int, ...]
    repeats: int
    generated: int
    growth: tuple[int, ...]
    workers: tuple[int, ...]
    files: bool


FULL = Scale(
    seeds=(1, 2, 3, 4, 5),
    repeats=3,
    generated=100_000,
    growth=(125_000, 500_000, 2_000_000),
    workers=(1, 2),
    files=True,
)


def quick(users: int) -> Scale:
    """Return a small run on generated data alone."""
    return Scale((1, 2), 1, users, (users // 2, users), (), files=False)
