"""Levels: words before pairs of words, countries before cities, each on what came out before it.

`mechanisms/levels.py` has the argument, and says what all levels spend together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from dp_sips.engines.within import ReleasedParts, ReleasedPrefixes
from dp_sips.errors import InputError, UsageError
from dp_sips.mechanisms.base import Asked
from dp_sips.mechanisms.levels import (
    check_shares,
    parts_of,
    promised_by,
    whole_of,
    with_the_rest,
)
from dp_sips.plan import Plan
from dp_sips.privacy.guarantee import Guarantee
from dp_sips.privacy.noise import Key
from dp_sips.sorting import sorted_items
from dp_sips.sources import Source
from dp_sips.sources.base import Keep
from dp_sips.text import Shares, TextItems

Within = Callable[[pa.Table | None, Key], Keep | None]
"""From what the level before released to the rule for rows."""


@dataclass(frozen=True)
class Level:
    """One release of several.

    Attributes:
        item: What to open: a column, columns, or texts.
        name: What the certificate calls it.
        share: Its part of the budget.
        within: Which rows count.
    """

    item: str | Sequence[str] | TextItems | None
    name: dict[str, Any]
    share: float
    within: Within


def levels_of(item: Any, hierarchy: Shares) -> tuple[Level, ...]:
    """Return the levels that were asked for; none, where all items are selected at once."""
    if isinstance(item, TextItems):
        if hierarchy is not False:
            raise UsageError("hierarchy is for several columns: n-grams have levels=True instead")
        return _of_texts(item) if item.levels is not False else ()
    return _of_columns(item, hierarchy) if hierarchy is not False else ()


def _of_columns(item: Any, hierarchy: Shares) -> tuple[Level, ...]:
    names = [item] if isinstance(item, str) else list(item or ())
    if len(names) < 2:  # noqa: PLR2004 (one column has no prefix)
        raise UsageError(
            f'hierarchy needs several columns, the coarsest first, as item=["country", "city"]: '
            f"got {item!r}"
        )
    return tuple(
        Level(names[:length], {"columns": names[:length]}, share, _prefixes)
        for length, share in enumerate(_shares(hierarchy, len(names)), start=1)
    )


def _of_texts(item: TextItems) -> tuple[Level, ...]:
    return tuple(
        Level(
            item.column if item.tokenized else TextItems(item.column, length, item.processes),
            {"words": length},
            share,
            _Parts(length),
        )
        for length, share in enumerate(_shares(item.levels, item.longest), start=1)
    )


def _shares(given: Shares, levels: int) -> tuple[float, ...]:
    """Return each level's part of the budget: equal ones, unless told otherwise."""
    if given is True:
        return check_shares([1.0] * levels)
    if given is False or not isinstance(given, (list, tuple)) or len(given) != levels:
        raise UsageError(
            f"there are {levels} levels: give True, or a share for each, got {given!r}"
        )
    return check_shares(given)


def _prefixes(released: pa.Table | None, key: Key) -> Keep | None:
    return None if released is None else ReleasedPrefixes.of(released, key)


@dataclass(frozen=True)
class _Parts:
    """The rule for sequences of a number of words."""

    length: int

    def __call__(self, released: pa.Table | None, key: Key) -> Keep:
        del key
        if released is None:
            return ReleasedParts(self.length, None)
        return ReleasedParts(self.length, _plain(released.column(0).combine_chunks()).drop_null())


def source_of(level: Level, source: Source, released: pa.Table | None, key: Key) -> Source:
    """Return the source of a level's rows."""
    if source.feed.once:
        raise UsageError(
            f"levels read the data once each, and {source.feed.label} can be read only once: pass "
            "a file, or a table in memory"
        )
    kind = source.item_schema.field(0).type
    if "words" in level.name and not _is_text(getattr(kind, "value_type", kind)):
        raise InputError(
            f"column {source.item_schema.names[0]!r} of {source.feed.label} is not typed as text, "
            'and n-grams are: name another, or declare it, as types={"body": "string"}'
        )
    return replace(source, keep=level.within(released, key))


def whole_release(released: Sequence[pa.Table], source: Source) -> pa.Table:
    """Return the n-grams of all levels; of several columns, those of the last level."""
    last = released[-1]
    if last.schema != released[0].schema:
        return last
    return sorted_items(pa.concat_tables(map(_decoded, released)), source.item_schema)


def _decoded(table: pa.Table) -> pa.Table:
    """Return a table with its values in place of dictionaries' codes."""
    columns = [pa.chunked_array([_plain(column.combine_chunks())]) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


class Spending:
    """What levels spend, one after the other: the next one's plan, and the whole guarantee.

    Guarantee: all levels together stay within what was asked, on every path that looks may take.
    """

    def __init__(
        self, asked: Asked, levels: Sequence[Level], plan: Callable[[Asked], Plan]
    ) -> None:
        self.asked = asked
        self._parts = parts_of(asked, [level.share for level in levels])
        self._plan = plan
        self._spent: list[Guarantee] = []
        self._looked = False

    def next_plan(self) -> Plan:
        """Return the plan for the next level's part of the budget."""
        return self._plan(self._parts[len(self._spent)])

    def settled(self, plan: Plan) -> Plan:
        """Note what a level spends, once its mechanism is known; the last one spends the rest.

        After a look there is no rest: see `mechanisms/levels.py`.
        """
        self._looked |= plan.branch is not None
        if len(self._spent) + 1 == len(self._parts) and not self._looked:
            design = with_the_rest(
                self.asked, self._spent, self._parts[-1], plan.mechanism, plan.max_items
            )
            if design is not None:
                plan = replace(
                    plan, rounds=design.rounds, guarantee=design.guarantee, bounds=design.bounds
                )
        self._spent.append(plan.guarantee)
        return plan

    def promised(self) -> Guarantee:
        """Return what all levels will have spent together at most, before any of them has run."""
        return promised_by(self.asked, [self._plan(part).guarantee for part in self._parts])

    def guarantee(self) -> Guarantee:
        """Return what all levels spent together."""
        return whole_of(self.asked, self._spent, looked=self._looked)


def facts_of(level: Level, plan: Plan, number: int) -> dict[str, Any]:
    """Return what is public about a level that released `number` items, for the certificate."""
    epsilon, delta = plan.guarantee.stated()
    return {
        **level.name,
        "number": number,
        "spent": {"epsilon": epsilon, "delta": delta},
        "mechanism": plan.mechanism.name,
        **({"chosen_by": plan.chosen_by} if plan.chosen_by else {}),
        "max_items": plan.max_items,
        "rounds": plan.table(),
    }
