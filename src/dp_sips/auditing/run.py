"""audit: check the promises of this very build, and say how tight they are."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from multiprocessing import get_context
from typing import Any, Final

from dp_sips.auditing.divergence import Distribution, true_delta
from dp_sips.auditing.enumeration import (
    Coins,
    NoTreeError,
    branches_per_item,
    copies_needed,
    distributions,
    has_cells,
    runs_needed,
)
from dp_sips.auditing.integration import can_integrate, chance
from dp_sips.auditing.looking import LOOKS, look_rows
from dp_sips.auditing.neighbours import Family, Neighbours, families, hypergraphs, users_for
from dp_sips.auditing.rows import EXACT, SAMPLED, Audit, Row, worst
from dp_sips.auditing.sampling import Runner, shown
from dp_sips.auditing.statistics import FALSE_ALARM
from dp_sips.auditing.targets import (
    Target,
    asked_epsilon,
    epsilons,
    find_mechanisms,
    promise,
    targets,
)
from dp_sips.engines import find_engine
from dp_sips.engines.base import Engine
from dp_sips.errors import UsageError
from dp_sips.mechanisms.base import asked_for
from dp_sips.plan import Plan
from dp_sips.plan import plan as make_plan
from dp_sips.privacy.budget import Budget
from dp_sips.progress import Progress
from dp_sips.unwise import on_purpose

_LOUD: Final = 0.05
"""Black boxes are run with this δ, too: what happens once in a million runs never shows."""

_FEW: Final = 3

_MOST_ITEMS: Final = 4
"""Random sets are of this many items, at most."""

_FEWEST: Final = 8
"""Of neighbours whose trees are large, this many are drawn at least."""

_MOST_PROCESSES: Final = 8

_SLOWER: Final = {"ReferenceEngine": 10}
"""How many times slower than the others an engine is."""


@dataclass(frozen=True)
class Effort:
    """How much an audit does.

    Attributes:
        rows: How many rows a run of a black box has.
        drawn: How many random neighbours are enumerated, at each Δ0.
        members: How many neighbours of each family are run by black box.
        thorough: Whether to enumerate for each Δ0 up to 2, and to run black boxes with δ as asked,
            too, where little can show.
        runs: How often the engine runs, at most, to go through a tree of verdicts.
        copies: How many copies of a pair share its branches, at most.
    """

    rows: int
    drawn: int
    members: int
    runs: int
    copies: int
    thorough: bool

    def on(self, engine: Engine) -> "Effort":
        """Return what an engine can do in the same time."""
        slower = max(_SLOWER.get(kind.__name__, 1) for kind in type(engine).__mro__)
        return replace(self, rows=self.rows // slower, drawn=self.drawn // min(slower, 4))


FULL: Final = Effort(rows=400_000, drawn=750, members=4, runs=150, copies=49, thorough=True)
QUICK: Final = Effort(rows=40_000, drawn=60, members=1, runs=80, copies=7, thorough=False)


def audit(
    mechanism: Any = None,
    *,
    engine: str | Engine = "memory",
    epsilon: float = 1.0,
    delta: float = 1e-5,
    budget: Budget | None = None,
    max_items: int | None = None,
    quick: bool = False,
    progress: bool | None = None,
) -> Audit:
    """Check that releases keep their promise, on neighbours that are hard to protect.

    Args:
        mechanism: A name, a mechanism, or a list of them; all mechanisms by default.
        engine: "memory", "reference", "spark", or an engine with its own options.
        epsilon: ε, as you will use it.
        delta: δ, as you will use it. Black boxes are run with δ = 0.05 as well.
        budget: ρ and δ as a `Budget`, in place of ε and δ; of all mechanisms, those that take ρ
            are audited.
        max_items: Δ0; each mechanism has its default.
        quick: Whether to do in a minute what can be done in a minute.
        progress: Whether to show a progress bar on stderr; on a terminal unless told otherwise.

    Returns:
        The largest δ found, by mechanism and family of neighbours, beside the δ promised; exact
        where the release can be enumerated, and a lower bound by black box elsewhere.
        `violations` is empty for a sound build, except with probability `false_alarm`.
    """
    begin, runner = time.monotonic(), _audited(engine)
    effort = (QUICK if quick else FULL).on(runner)
    options = {**_asked(epsilon, delta, budget), "max_items": max_items}
    with on_purpose():  # black boxes need a large δ
        cases = [
            case
            for one in find_mechanisms(mechanism)
            if mechanism is not None or _can_be_planned(one, options)
            for case in _cases(one, runner, effort, options)
        ]
        alpha = FALSE_ALARM / max(1, sum(case.bounds for case in cases))
        results = in_order(cases, alpha, _processes(runner, effort))
        steps = Progress(show=progress).steps("audit", results, len(cases))
        rows = tuple(row for found in steps for row in found)
    return Audit(rows, quick, time.monotonic() - begin)


def _audited(engine: str | Engine) -> Engine:
    """Return the engine; of Spark, the cluster's way: the driver's is the memory engine's."""
    return find_engine(engine, driver_bytes=0) if engine == "spark" else find_engine(engine)


def _asked(epsilon: float, delta: float, budget: Budget | None) -> dict[str, float]:
    """Return what is asked of each plan."""
    if budget is None:
        return {"epsilon": epsilon, "delta": delta}
    given = (epsilon, delta) != (1.0, 1e-5)
    asked_for(epsilon if given else None, delta if given else None, None, budget)
    return {"rho": budget.rho, "delta": budget.delta}


def _can_be_planned(mechanism: Any, options: dict[str, Any]) -> bool:
    """Whether a mechanism takes ρ, if that was given."""
    if "rho" not in options:
        return True
    try:
        make_plan(mechanism, **options)
    except UsageError:
        return False
    return True


@dataclass(frozen=True)
class Case:
    """A part of an audit.

    Attributes:
        bounds: How many bounds it draws, each of which may fail.
        run: Does it, given the probability with which each may fail.
    """

    bounds: int
    run: Callable[[float], list[Row]]


def _processes(engine: Engine, effort: Effort) -> int:
    """Return how many processes to use: several where that pays, and where one can fork."""
    forks = sys.platform == "linux" and engine.takes_turns and effort.thorough
    return min(os.cpu_count() or 1, _MOST_PROCESSES) if forks else 1


def in_order(cases: Sequence[Case], alpha: float, processes: int) -> Iterator[list[Row]]:
    """Run cases, side by side where there are several processes; yield what they find in order."""
    if processes == 1:
        yield from (case.run(alpha) for case in cases)
        return
    # Forked, not started anew: anybody's mechanisms are in these cases, and need not be sent.
    with get_context("fork").Pool(processes, _inherit, (cases, alpha)) as pool:
        yield from pool.imap(_run_inherited, range(len(cases)))


_inherited: list[Callable[[int], list[Row]]] = []
"""In a forked process: runs a case."""


def _inherit(cases: Sequence[Case], alpha: float) -> None:
    _inherited.append(lambda place: cases[place].run(alpha))


def _run_inherited(place: int) -> list[Row]:
    return _inherited[-1](place)


def _cases(
    mechanism: Any, engine: Engine, effort: Effort, options: dict[str, Any]
) -> Iterator[Case]:
    """Return the parts of a mechanism's audit: as asked, with fewer items, with a larger δ."""
    yield from _look_cases(mechanism, engine, options)
    for target in targets(mechanism, engine, **options):
        yield from _exact_cases(target, engine, effort)
        if effort.thorough or target.plan.asked.delta >= _LOUD:
            yield from _sampled_cases(target, engine, effort)
        for few in _with_fewer(target, engine, (1, 2) if effort.thorough else (2,)):
            yield from _exact_cases(few, engine, effort)
    if options["delta"] >= _LOUD:
        return
    for target in targets(mechanism, engine, **options | {"delta": _LOUD}):
        fewer = list(_with_fewer(target, engine, (_FEW,)))
        for each in (target, *fewer) if effort.thorough else (fewer or [target]):
            yield from _sampled_cases(each, engine, effort)


def _with_fewer(target: Target, engine: Engine, sizes: Sequence[int]) -> Iterator[Target]:
    """Return the same mechanism for fewer items of a user, if that is another plan."""
    for size in sizes:
        if size < target.plan.max_items:
            options = target.options | {"max_items": size}
            for few in targets(target.plan.mechanism, engine, **options):
                if few.plan.max_items == size:
                    yield few


# Exact


def _exact_cases(target: Target, engine: Engine, effort: Effort) -> Iterator[Case]:
    # Verdicts of a cluster are made by its workers, out of reach.
    if engine.takes_turns:
        yield Case(0, partial(_exact, target.plan, engine, effort))


def _exact(plan: Plan, engine: Engine, effort: Effort, alpha: float) -> list[Row]:
    """Enumerate or integrate what can be."""
    del alpha
    if can_integrate(plan.rounds):
        return [_integrated(plan, engine)]
    try:
        return list(_enumerated(plan, engine, effort))
    except NoTreeError:
        return []


def _enumerated(plan: Plan, engine: Engine, effort: Effort) -> Iterator[Row]:
    every = (*families(plan), Family("random sets", tuple(_drawn(plan, effort))))
    few = {
        family.name: [
            pair
            for pair in family.members
            if runs_needed(plan, pair) <= effort.runs and copies_needed(plan, pair) <= effort.copies
        ]
        for family in every
    }
    # All families in one data set: as many runs as the largest tree has branches.
    pairs, coins = [pair for members in few.values() for pair in members], Coins()
    sides = [
        iter(distributions(plan, engine, pairs, extra=extra, seed=len(pairs), coins=coins))
        for extra in (True, False)
    ]
    for name, members in few.items():
        one, other = (list(islice(side, len(members))) for side in sides)
        if members:
            yield _enumerated_family(plan, engine, name, (one, other))


def _drawn(plan: Plan, effort: Effort) -> Iterator[Neighbours]:
    """Draw random sets; where cells make large trees, those of more items from sets up to Δ0."""
    branches = max(2, branches_per_item(plan))
    most = max(1, int(math.log(effort.runs) / math.log(branches)))
    count = effort.drawn // max(1, branches // 2)
    yield from hypergraphs(plan, count, min(most, _MOST_ITEMS), seed=plan.max_items)
    if not has_cells(plan) or plan.max_items == 1:
        return
    for items in range(most + 1, _MOST_ITEMS + 1):
        copies = branches ** (items - most)
        if copies <= effort.copies:
            count = max(_FEWEST, effort.drawn // (2 * copies))
            yield from hypergraphs(plan, count, items, plan.max_items, bounded=True)


def _enumerated_family(
    plan: Plan,
    engine: Engine,
    name: str,
    sides: tuple[Sequence[Distribution], Sequence[Distribution]],
) -> Row:
    found = [
        (epsilon, max(map(partial(true_delta, epsilon=epsilon), *sides)))
        for epsilon in epsilons(plan)
    ]
    return _row(plan, engine, (EXACT, name), found, len(sides[0]))


def _integrated(plan: Plan, engine: Engine) -> Row:
    """Compare all numbers of holders with the next, for an item that is all that they have."""
    most = users_for(plan, 0.95) + 2
    chances = [chance(plan.rounds, holders) for holders in range(most + 1)]
    coins: list[Distribution] = [{True: p, False: 1 - p} for p in chances]
    found = [
        (e, max(true_delta(one, other, e) for one, other in pairwise(coins)))
        for e in epsilons(plan)
    ]
    return _row(plan, engine, (EXACT, "one item, integrated"), found, most)


def _look_cases(mechanism: Any, engine: Engine, options: dict[str, Any]) -> Iterator[Case]:
    plan = make_plan(mechanism, **options)
    if plan.look is not None and engine.takes_turns:
        yield Case(0, partial(_looked, plan, engine))


def _looked(plan: Plan, engine: Engine, alpha: float) -> list[Row]:
    del alpha
    return [
        Row(
            mechanism=plan.mechanism.name,
            engine=_name(engine),
            method=EXACT,
            family=name,
            epsilon=asked_epsilon(plan),
            delta=plan.asked.delta,
            max_items=plan.max_items,
            at=0.0,
            found=found,
            promised=promised,
            trials=len(LOOKS),
        )
        for name, found, promised in look_rows(plan, engine)
    ]


# Black box


def _sampled_cases(target: Target, engine: Engine, effort: Effort) -> Iterator[Case]:
    plan, runner = target.plan, Runner(target, engine, effort.rows)
    for family in families(plan):
        some = Family(family.name, family.members[: effort.members])
        bounds = 4 * len(some.members) * len(epsilons(plan))
        yield Case(bounds, partial(_sampled, plan, runner, some))


def _sampled(plan: Plan, runner: Runner, family: Family, alpha: float) -> list[Row]:
    rows = []
    for pair in family.members:
        tests = shown(runner, pair, epsilons(plan), alpha)
        found = [(test.epsilon, test.delta) for test in tests]
        names = (SAMPLED, family.name)
        rows.append(_row(plan, runner.engine, names, found, tests[0].trials))
    return [worst(rows)]


def _row(
    plan: Plan,
    engine: Engine,
    names: tuple[str, str],
    found: Sequence[tuple[float, float]],
    trials: int,
) -> Row:
    """Return the row of the ε at which what was found is largest, relative to the promise."""
    return worst(
        [
            Row(
                mechanism=plan.mechanism.name,
                engine=_name(engine),
                method=names[0],
                family=names[1],
                epsilon=asked_epsilon(plan),
                delta=plan.asked.delta,
                max_items=plan.max_items,
                at=epsilon,
                found=delta,
                promised=promise(plan, epsilon),
                trials=trials,
            )
            for epsilon, delta in found
        ]
    )


def _name(engine: Engine) -> str:
    return type(engine).__name__.removesuffix("Engine").lower()
