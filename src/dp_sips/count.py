"""count_users: how many users hold each item, of a selection or of given keys."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips.counts import Counts
from dp_sips.engines import find_engine
from dp_sips.engines.base import Engine
from dp_sips.engines.encoding import table_blocks
from dp_sips.errors import UsageError
from dp_sips.known import known_blocks, known_items
from dp_sips.ledger import Ledger, now
from dp_sips.mechanisms import Mechanism
from dp_sips.mechanisms.base import Asked, asked_for
from dp_sips.mechanisms.counting import (
    DEFAULT_MAX_ITEMS,
    DEFAULT_SHARE,
    Counting,
    GivenKeys,
    check_share,
    selection_part,
)
from dp_sips.mechanisms.discrete import require_sampler, with_noise
from dp_sips.plan import Plan, planned
from dp_sips.privacy.arrays import Blocks, Integers
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.budget import Budget
from dp_sips.privacy.contributions import Contributions
from dp_sips.progress import Progress
from dp_sips.room import clear_about_memory
from dp_sips.select import booked, public_facts, refuse_turns, run_key, run_rounds
from dp_sips.selection import Selection
from dp_sips.sorting import sorted_items
from dp_sips.sources import Source, open_source
from dp_sips.sources.base import USERS
from dp_sips.text import TextItems
from dp_sips.unwise import warn_of_budget, warn_of_lists
from dp_sips.validation import check_whole, refuse_unknown


@clear_about_memory()
def count_users(
    data: Any,
    *,
    user: str | None = None,
    item: str | Sequence[str] | TextItems | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    budget: Budget | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
    keys: Any = None,
    share: float | None = None,
    max_items: int = DEFAULT_MAX_ITEMS,
    other: bool = False,
    selection_max_items: int | None = None,
    items_per_user: float | None = None,
    public_items: Any = None,
    min_users: int = 1,
    mechanism: str | Mechanism = "auto",
    engine: str | Engine = "auto",
    memory_limit: int | str | None = None,
    spill_folder: str | PathLike[str] | None = None,
    nulls: str = "error",
    types: Mapping[str, Any] | None = None,
    seed: int | None = None,
    insecure_test: bool = False,
    progress: bool | None = None,
    **unknown: Any,
) -> Counts:
    """Release items and about how many users hold each, under one guarantee for both.

    What is not listed here is as in `select_partitions`. The noise is OpenDP's: `pip install
    'dp-sips[counts]'`.

    Args:
        data: As in `select_partitions`.
        user: The column that says whose row it is.
        item: The column, or columns, to publish the values of.
        epsilon: ε of (ε, δ)-differential privacy, of selection and counts together.
        delta: δ, of both together.
        rho: ρ of δ-approximate ρ-zCDP, in place of ε.
        budget: ρ and δ as a `Budget`, in place of numbers.
        ledger: As in `select_partitions`: one entry for both.
        keys: Items to count, which are public: an earlier `Selection` or `Counts`, a table with the
            item columns, a file, or a list. Nothing is selected, and all of the budget is for the
            counts; an earlier release has spent its own. Keys that nobody holds are counted, too.
        share: The counts' part of ε or ρ, one third unless told otherwise; a larger one means less
            noise, and fewer items. The selection runs with the rest, and the counts get all that
            exact composition leaves, which is more than their part of ε.
        max_items: How many of the items a user counts for, at most; others of theirs are left out
            at random. The noise grows as the root of it.
        other: Whether to add a row, with a null item, for the users who hold none of the items.
        selection_max_items: Δ0 of the selection, `max_items` of `select_partitions`; each mechanism
            has its default.
        items_per_user: Roughly how many items a person has, if that is public.
        public_items: As in `select_partitions`: what is selected, and counted, is new. To count
            public items, give them as `keys`.
        min_users: As in `select_partitions`; a noisy count may be below it.
        mechanism: What selects.
        engine: As in `select_partitions`.
        memory_limit: As in `select_partitions`.
        spill_folder: As in `select_partitions`.
        nulls: As in `select_partitions`; `other` needs one that leaves null free.
        types: As in `select_partitions`.
        seed: For tests: makes the release repeatable, and so not private at all.
        insecure_test: Must be True where `seed` is given.
        progress: Whether to show progress bars on stderr; on a terminal unless told otherwise.
        unknown: Refused, with the name that is meant where another library's is given.

    Guarantee: neighbouring data sets differ by one user with all of their rows; items and counts
    together are (ε, δ)-DP, or δ-approximate ρ-zCDP. mechanisms/counting.py has the argument.
    Public: every argument except `data`. Sensitive: `data`, except its column names and types.
    """
    refuse_unknown(unknown, ("keys", "share", "other", "selection_max_items"))
    if isinstance(item, TextItems) and item.levels is not False:
        raise UsageError(
            "counts follow one selection: select with levels first, then count with keys="
        )
    asked = asked_for(epsilon, delta, rho, budget)
    warn_of_budget(asked)
    if keys is None:
        part = DEFAULT_SHARE if share is None else check_share(share)
        limits = {"items_per_user": items_per_user, "min_users": min_users}
        plan = _selection(asked, part, mechanism, selection_max_items, limits)
    else:
        part = 1.0
        _refuse_selecting(
            share=share,
            mechanism=None if mechanism == "auto" else mechanism,
            selection_max_items=selection_max_items,
            items_per_user=items_per_user,
            public_items=public_items,
            min_users=None if min_users == 1 else min_users,
        )
        plan = _no_selection(asked, max_items)
    counting = Counting.within(asked, plan.guarantee, max_items, part)
    key = run_key(seed, insecure_test=insecure_test)
    require_sampler(key)
    shown, time = Progress(show=progress), now()
    memory = {"memory_limit": memory_limit, "spill_folder": spill_folder}
    runner = find_engine(engine, data, **memory)
    refuse_turns(plan, runner)
    source = open_source(runner.read(data), user=user, item=item, nulls=nulls, types=types)
    _check_columns(source, other=other)
    lists = source.has_lists or isinstance(item, TextItems)
    warn_of_lists(max_items, lists=lists)
    warn_of_lists(selection_max_items, lists=lists, name="selection_max_items")
    items = None if keys is None else known_items("keys", keys, source, key)
    known = known_blocks("public_items", public_items, source, key)
    spent = asked.about(counting.guarantee)
    with booked(ledger, replace(plan, asked=asked, guarantee=spent), source, key, "counts"):
        bounds = plan.bounds if items is None else Bounds(max_items=0)
        bounds = replace(bounds, whole=True, without=known)
        with closing(runner.load(source, bounds, key, shown)) as loaded:
            if items is None:
                plan = run_rounds(plan, loaded, key, shown)
                items = sorted_items(loaded.released(), source.item_schema)
            exact = _exact_counts(loaded, table_blocks(items, key), max_items, other=other)

        sigma = counting.deviation(plan.branch or plan.guarantee, items.num_rows)
        users = pa.array(with_noise(exact, sigma, key), pa.int64())
        share = None if keys is not None else part
        counted = _facts(max_items, sigma, share=share, other=other)
        facts = public_facts(source, items, known, time, count=counted)
        whole = replace(plan, asked=asked, guarantee=spent, share=share)
        selection = Selection(source.restore(items), whole, not key.is_test, facts)
        return Counts(source.restore_counts(items, users), sigma, selection)


def _refuse_selecting(**options: Any) -> None:
    """Reject options of a selection where keys are given."""
    for name, option in options.items():
        if option is not None:
            raise UsageError(f"keys are given, and nothing is selected: leave out {name}")


def _selection(
    asked: Asked,
    share: float,
    mechanism: str | Mechanism,
    max_items: int | None,
    limits: dict[str, Any],
) -> Plan:
    if max_items is not None:
        check_whole("selection_max_items", max_items)
    return planned(mechanism, selection_part(asked, share), max_items, **limits)


def _no_selection(asked: Asked, max_items: int) -> Plan:
    design = GivenKeys().design(asked, max_items)
    return Plan(GivenKeys(), asked, design.rounds, design.guarantee, design.bounds)


def _check_columns(source: Source, *, other: bool) -> None:
    """Reject what would be ambiguous in the table of counts."""
    if USERS in source.item_schema.names:
        raise UsageError(f"an item column is called {USERS!r}, as that of the counts: rename it")
    if other and source.nulls == "group":
        raise UsageError(
            'other=True has a row with a null item, and nulls="group" makes null an item: leave '
            "one of them out"
        )


def _exact_counts(loaded: Contributions, keys: Blocks, max_items: int, *, other: bool) -> Integers:
    """Return the counts, that of other users last.

    Sensitive: all of them.
    """
    counts, others = loaded.count(keys, max_items, others=other)
    return np.append(counts, others) if other else counts


def _facts(max_items: int, sigma: float, *, share: float | None, other: bool) -> dict[str, Any]:
    """Return what is public about the counts, for the certificate."""
    return {
        "column": USERS,
        "max_items": max_items,
        "share": share,
        "other": other,
        "noise": "discrete Gaussian",
        "standard_deviation": sigma,
    }
