"""select_partitions: the one loop that every mechanism of the field is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from typing import Any

import pyarrow as pa

from dp_sips.booked import staying_booked
from dp_sips.checkpoint import NOT_SAVED, Checkpoint, Saved, saved_in, what_is_asked
from dp_sips.engines import find_engine
from dp_sips.engines.base import Engine
from dp_sips.engines.block_sets import NO_BLOCKS
from dp_sips.errors import UsageError
from dp_sips.known import known_blocks
from dp_sips.ledger import Ledger, as_ledger, now
from dp_sips.levels import Level, Spending, facts_of, levels_of, source_of, whole_release
from dp_sips.mechanisms import Mechanism
from dp_sips.plan import Plan
from dp_sips.plan import plan as make_plan
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.budget import Budget
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.progress import Progress
from dp_sips.room import clear_about_memory
from dp_sips.selection import Selection
from dp_sips.sorting import sorted_items
from dp_sips.sources import Source, open_source
from dp_sips.text import Shares, TextItems
from dp_sips.unwise import warn_of_lists
from dp_sips.validation import check_whole, refuse_unknown


@clear_about_memory()
def select_partitions(
    data: Any,
    *,
    user: str | None = None,
    item: str | Sequence[str] | TextItems | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    budget: Budget | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
    max_items: int | None = None,
    items_per_user: float | None = None,
    public_items: Any = None,
    min_users: int = 1,
    mechanism: str | Mechanism = "auto",
    engine: str | Engine = "auto",
    memory_limit: int | str | None = None,
    spill_folder: str | PathLike[str] | None = None,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
    hierarchy: Shares = False,
    nulls: str = "error",
    types: Mapping[str, Any] | None = None,
    seed: int | None = None,
    insecure_test: bool = False,
    progress: bool | None = None,
    **unknown: Any,
) -> Selection:
    """Release as many items as possible, without revealing whether any one user is in the data.

    Args:
        data: Paths, globs, folders or addresses (s3://bucket/key) of Parquet, CSV, JSON lines or
            Arrow files; a pandas, Polars, PyArrow, DuckDB or Spark table; any object with
            `__arrow_c_stream__`; a mapping or iterable of (user, items) or (user, item); or a dict
            of columns.
        user: The column that says whose row it is: a user is protected with all of their rows.
        item: The column, or columns, to publish the distinct values of; or the words of a column
            of texts, as `dp_sips.text.words("body")`.
        epsilon: ε of (ε, δ)-differential privacy; give this or `rho`.
        delta: δ, together with either.
        rho: ρ of the paper's δ-approximate ρ-zCDP.
        budget: ρ and δ as a `Budget`, in place of numbers.
        ledger: A file with one budget for many releases, or a `Ledger`: the release is booked
            before its rows are loaded, or refused. A test seed books nothing.
        max_items: Δ0, how many items of a user count; each mechanism has its default.
        items_per_user: Roughly how many items a person has, if that is public: "auto" then needs no
            look at the data. It must not come from the data that is protected.
        public_items: Items that are public already: a list, a table with the item columns, a file,
            or an earlier `Selection` or `Counts`. They use up nothing of what a user can give, and
            the release has the new ones only.
        min_users: How many users must hold an item: nothing that fewer hold is ever released.
        mechanism: "auto" for the recommended one, another name such as "sips", or a mechanism with
            its own parameters.
        engine: "auto", "memory", "spark", "reference", or an engine with its own options.
        memory_limit: For the memory engine, how many bytes of memory to keep to, as "8 GB", and at
            least "200 MB"; unless given, 70 % of what there is. What is beyond goes to disk.
        spill_folder: The folder for that, if not the system's own for temporary files.
        checkpoint: A folder for the state of the run: if it is killed, the same call goes on after
            the last finished round, and gives the release of an undisturbed run. The folder holds
            the secret key until the release is there, and is removed then.
        hierarchy: Where `item` names several columns, the coarsest first: select the values of the
            first, then pairs of a released value and one of the second column, and so on. True
            for equal parts of the budget, or the levels' shares, as (1, 2). `selection.levels` has
            what each level released.
        nulls: "error", "drop" such rows, or "group" null items as an item of their own.
        types: The types of columns by name, as {"zip": "string", "day": "date"}, where they are not
            to be those of the file or table. Without one, CSV is text, and each value of JSON and
            of Python objects is of its own kind.
        seed: For tests: makes the release repeatable, and so not private at all.
        insecure_test: Must be True where `seed` is given.
        progress: Whether to show progress bars on stderr; on a terminal unless told otherwise.
        unknown: Refused, with the name that is meant where another library's is given.

    Guarantee: neighbouring data sets differ by one user with all of their rows; the selection is
    (ε, δ)-DP, or δ-approximate ρ-zCDP. privacy/README.md has the argument.
    Public: every argument except `data`. Sensitive: `data`, except its column names and types.
    """
    refuse_unknown(unknown)
    planned = partial(
        make_plan,
        mechanism,
        max_items=max_items,
        items_per_user=items_per_user,
        min_users=min_users,
    )
    levels = levels_of(item, hierarchy)
    if levels and checkpoint is not None:
        raise UsageError("checkpoint is for one selection, and levels are several: leave it out")
    if levels and public_items is not None:
        raise UsageError("public_items are for one selection, and levels are several: leave it out")
    plan = planned(epsilon=epsilon, delta=delta, rho=rho, budget=budget)
    key = run_key(seed, insecure_test=insecure_test)
    shown, time = Progress(show=progress), now()
    memory = {"memory_limit": memory_limit, "spill_folder": spill_folder}
    runner = find_engine(engine, data, **memory)
    refuse_turns(plan, runner)
    opened = partial(open_source, user=user, nulls=nulls, types=types)
    if levels:
        spending = Spending(plan.asked, levels, lambda part: planned(**asdict(part)))

        def read(level: Level) -> Source:
            return opened(runner.read(data), item=level.item)

        promised, last = replace(plan, guarantee=spending.promised()), read(levels[-1])
        _warn_of_lists(plan, last, item)
        with booked(ledger, promised, last, key, "items, level by level"):
            return _select_levels(levels, spending, read, runner=runner, key=key, shown=shown)
    source = opened(runner.read(data), item=item)
    asked = partial(what_is_asked, plan, source, ledger)
    with saved_in(checkpoint, runner) as saved:
        key = saved.key(key, asked)
        known = known_blocks("public_items", public_items, source, key)
        _warn_of_lists(plan, source, item)
        if not saved.going_on:
            check_booking(ledger, plan, key)  # a release that is refused leaves no run
        saved.begin(key)

        with booked(ledger, plan, source, key, "items"):
            bounds = replace(plan.bounds, without=known)
            with closing(runner.load(source, bounds, key, shown)) as contributions:
                plan = run_rounds(plan, contributions, key, shown, saved=saved)
                released = sorted_items(contributions.released(), source.item_schema)

            facts = public_facts(source, released, known, time)
            return Selection(source.restore(released), plan, not key.is_test, facts)


def _warn_of_lists(plan: Plan, source: Source, item: Any) -> None:
    warn_of_lists(plan.max_items, lists=source.has_lists or isinstance(item, TextItems))


def _select_levels(
    levels: Sequence[Level],
    spending: Spending,
    read: Callable[[Level], Source],
    *,
    runner: Engine,
    key: Key,
    shown: Progress,
) -> Selection:
    """Run a selection for each level, on the rows whose parts the level before released."""
    time = now()
    released: list[pa.Table] = []
    tables: list[Any] = []
    facts: list[dict[str, Any]] = []
    for number, level in enumerate(levels):
        own = key.of_level(number)
        before = released[-1] if released else None
        source = source_of(level, read(level), before, own)
        plan = spending.next_plan()
        with closing(runner.load(source, plan.bounds, own, shown)) as loaded:
            plan = run_rounds(plan, loaded, own, shown, spending.settled)
            released.append(sorted_items(loaded.released(), source.item_schema))
        tables.append(source.restore(released[-1]))
        facts.append(facts_of(level, plan, released[-1].num_rows))

    items = whole_release(released, source)
    public = public_facts(source, items, NO_BLOCKS, time) | {"levels": facts}
    whole = replace(plan, asked=spending.asked, guarantee=spending.guarantee())
    return Selection(source.restore(items), whole, not key.is_test, public, tuple(tables))


def public_facts(
    source: Source,
    released: pa.Table,
    known: Blocks,
    time: str,
    count: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what the certificate says beyond the plan.

    Public: names and types of columns, the released items, how many were known before, the time,
    and what is said of counts.
    """
    return {
        "user_column": source.schema.names[0],
        "item_columns": source.describe(released),
        "nulls": source.nulls,
        "public_items": len(known),
        "number_of_items": released.num_rows,
        "count": count,
        "time": time,
    }


def check_booking(ledger: str | PathLike[str] | Ledger | None, plan: Plan, key: Key) -> None:
    """Refuse a release that `booked` would refuse."""
    given = _ledger_of(ledger, key)
    if given is not None:
        given.check(plan.guarantee)


@contextmanager
def booked(
    ledger: str | PathLike[str] | Ledger | None,
    plan: Plan,
    source: Source,
    key: Key,
    release: str,
) -> Iterator[None]:
    """Book a release on a ledger, if there is one, before any of the data is read in the block."""
    given = _ledger_of(ledger, key)
    if given is None:
        yield
        return
    user, *items = source.schema.names
    what = {"release": release, "user": user, "items": items, "mechanism": plan.mechanism.name}
    # A keyed hash for this alone: it tells runs apart, and says nothing about the key or its noise.
    given.book(plan.guarantee, plan.asked, what, f"{key.word(Purpose.RUN):016x}")
    with staying_booked(given.path):
        yield


def _ledger_of(ledger: str | PathLike[str] | Ledger | None, key: Key) -> Ledger | None:
    """Return where to book a release: nowhere, if it is a test."""
    given = None if ledger is None else as_ledger(ledger)
    return None if key.is_test else given


def run_rounds(
    plan: Plan,
    contributions: Contributions,
    key: Key,
    shown: Progress,
    settled: Callable[[Plan], Plan] = lambda plan: plan,
    *,
    saved: Saved = NOT_SAVED,
) -> Plan:
    """Run a plan on loaded contributions; return the plan that ran, if a look chose it.

    `settled` may change its rounds, once it is known what the look chose. Rounds that were `saved`
    have run before.
    """
    saved.check(contributions)
    plan = settled(plan.after_look(contributions, key.scrambler(Purpose.LOOK)))
    finished = saved.restore(contributions)
    for index, round_ in enumerate(shown.steps("rounds", plan.rounds, len(plan.rounds))):
        if index >= finished:
            round_.run(contributions, key.noise_of_round(index))
            saved.save(index + 1, contributions)
    return plan


def refuse_turns(plan: Plan, runner: Engine) -> None:
    """Reject an engine that cannot take one user after the other, where the plan does."""
    if plan.mechanism.sequential and not runner.takes_turns:
        raise UsageError(
            f"{plan.mechanism.name} goes through the users one after the other, which a cluster "
            "cannot do: choose mechanism='auto' or 'mad2r', or engine='memory'"
        )


def run_key(seed: int | None, *, insecure_test: bool) -> Key:
    """Return a fresh key, or the key of a test seed."""
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
    return Key.for_tests(check_whole("seed", seed, least=0))
