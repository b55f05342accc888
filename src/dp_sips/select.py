"""select_partitions: the one loop that every mechanism of the field is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from dp_sips.engines import find_engine
from dp_sips.engines.base import Contributions, Engine
from dp_sips.engines.liking import public_liking
from dp_sips.errors import UsageError
from dp_sips.mechanisms import Mechanism
from dp_sips.parameters import refuse_unknown
from dp_sips.plan import Plan
from dp_sips.plan import plan as make_plan
from dp_sips.privacy.decide import noise_for_round
from dp_sips.privacy.noise import Key
from dp_sips.privacy.policy import Liking
from dp_sips.progress import Progress
from dp_sips.room import clear_about_memory
from dp_sips.running import run_round
from dp_sips.selection import Selection
from dp_sips.sorting import sorted_items
from dp_sips.sources import Source, open_source
from dp_sips.text import Words


@clear_about_memory()
def select_partitions(
    data: Any,
    *,
    user: str | None = None,
    item: str | Sequence[str] | Words | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    max_items: int | None = None,
    mechanism: str | Mechanism = "auto",
    engine: str | Engine = "auto",
    nulls: str = "error",
    text: bool = False,
    seed: int | None = None,
    insecure_test: bool = False,
    progress: bool | None = None,
    **unknown: Any,
) -> Selection:
    """Release as many items as possible, so that no one user's presence shows.

    Args:
        data: Paths, globs or folders of Parquet, CSV, JSON lines or Arrow files; a pandas, Polars,
            PyArrow, DuckDB or Spark table; any object with `__arrow_c_stream__`; or a mapping or
            iterable of (user, items).
        user: The column that says whose row it is: one user is protected with all of its rows.
        item: The column, or columns, to publish the distinct values of; or the words of a column
            of texts, as `dp_sips.text.words("body")`.
        epsilon: ε of (ε, δ)-differential privacy; give this or `rho`.
        delta: δ, together with either.
        rho: ρ of the paper's δ-approximate ρ-zCDP.
        max_items: Δ0, how many items of a user count; each mechanism has its default.
        mechanism: "auto" for the recommended one, another name such as "sips", or a mechanism with
            its own parameters.
        engine: "auto", "memory", "spark", "reference", or an engine with its own options.
        nulls: "error", "drop" such rows, or "group" null items as an item of their own.
        text: Read the columns of CSV files as text.
        seed: For tests: makes the release repeatable, and so not private at all.
        insecure_test: Must be True where `seed` is given.
        progress: Whether to show progress bars on stderr; on a terminal unless told otherwise.
        unknown: Refused, with the name that is meant where another library's is given.

    Guarantee: neighbouring data sets differ by one user with all of its rows; the selection is
    (ε, δ)-DP, or δ-approximate ρ-zCDP. privacy/README.md has the argument.
    Public: every argument but `data`. Sensitive: `data`, but for its column names and types.
    """
    refuse_unknown(unknown)
    plan = make_plan(mechanism, epsilon=epsilon, delta=delta, rho=rho, max_items=max_items)
    key = _key(seed, insecure_test=insecure_test)
    shown = Progress(show=progress)
    runner = find_engine(engine, data)
    _refuse_turns(plan, runner)
    read = getattr(runner, "read", None)
    data = read(data, text=text) if read else data
    source = open_source(data, user=user, item=item, nulls=nulls, text=text)

    liking = _liking(plan, source, key)
    contributions = runner.load(
        source, plan.max_items, key, shown, cut=plan.cut, counts=plan.counts
    )
    with _freed(contributions):
        for index, step in enumerate(shown.steps("rounds", plan.rounds, len(plan.rounds))):
            run_round(contributions, step, noise_for_round(key, index), liking)
        released = sorted_items(contributions.released(), source.item_schema)

    facts = {"nulls": nulls, "items": _describe(released)}
    return Selection(source.restore(released), plan, not key.is_test, facts)


def _refuse_turns(plan: Plan, runner: Engine) -> None:
    """Refuse an engine that cannot take one user after the other, where the plan does."""
    if plan.mechanism.sequential and not runner.takes_turns:
        raise UsageError(
            f"{plan.mechanism.name} goes through the users one after the other, which a cluster "
            "cannot do: choose mechanism='auto' or 'mad2r', or engine='memory'"
        )


def _liking(plan: Plan, source: Source, key: Key) -> Liking | None:
    """Return what public knowledge says about items, where the mechanism has any."""
    histogram = getattr(plan.mechanism, "histogram", None)
    return None if histogram is None else public_liking(histogram, source.item_schema, key)


@contextmanager
def _freed(contributions: Contributions) -> Iterator[None]:
    """Let an engine that holds anything outside of this process free it, come what may."""
    try:
        yield
    finally:
        getattr(contributions, "close", lambda: None)()


def _key(seed: int | None, *, insecure_test: bool) -> Key:
    if seed is None:
        if insecure_test:
            raise UsageError(
                "insecure_test=True makes sense only with a seed: give one, or neither"
            )
        return Key.fresh()
    if not insecure_test:
        raise UsageError(
            f"a seed ({seed!r}) makes the release repeatable, and so not private: leave it out, "
            "or say insecure_test=True if that is what you want"
        )
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed must be a whole number, got {seed!r}")
    return Key.for_tests(seed)


def _describe(released: pa.Table) -> dict[str, str]:
    return {field.name: str(field.type) for field in released.schema}
