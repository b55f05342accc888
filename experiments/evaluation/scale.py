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
        largest: Users of the paper's largest data set, as much of it as is tried.
        spark_users: Users of the generated data set on Spark clusters.
        workers: Sizes of the Spark clusters that are timed; none, no times.
        files: Whether a folder of data is looked at, too.
    """

    seeds: tuple[int, ...]
    repeats: int
    generated: int
    growth: tuple[int, ...]
    largest: tuple[int, ...]
    spark_users: int
    workers: tuple[int, ...]
    files: bool


FULL = Scale(
    seeds=(1, 2, 3, 4, 5),
    repeats=3,
    generated=100_000,
    growth=(125_000, 500_000, 2_000_000),
    largest=(80_000, 800_000, 8_000_000, 80_000_000),
    spark_users=50_000,
    workers=(1, 2),
    files=True,
)


def quick(users: int) -> Scale:
    """Return a small run on generated data alone."""
    return Scale(
        seeds=(1, 2),
        repeats=1,
        generated=users,
        growth=(users // 2, users),
        largest=(users // 10, users),
        spark_users=users // 10,
        workers=(),
        files=False,
    )
