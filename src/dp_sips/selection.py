"""What comes back: the released items, and public facts about how they were released."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Self

from dp_sips import notebook
from dp_sips.plan import Plan
from dp_sips.privacy.guarantee import Guarantee
from dp_sips.rows import count, is_distributed, rows

SHOWN: Final = 10
"""Rows of a table in a notebook."""

_NUMBERS: Final = ("round", "epsilon", "rho", "delta", "sigma", "scale", "threshold")
"""What rounds are compared by; a round has those that its noise has."""


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The result of `select_partitions`: nothing in it says more than the items themselves.

    A selection equals only itself; to compare what was released, compare the items, each kind of
    table in its own way. Its length is the number of released items; iterating over it yields
    them, as tuples where there are several item columns.

    Attributes:
        items: The released items, sorted, in the kind of table that came in.
        plan: The rounds that ran.
        private: False where a test seed was used: such a release has no guarantee.
        levels: Where items were selected level by level, what each level released, the coarsest
            first; `guarantee` is that of all levels, and `plan` has the rounds of the last.
    """

    items: Any
    plan: Plan
    private: bool
    _facts: dict[str, Any] = field(repr=False)
    levels: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def guarantee(self) -> Guarantee:
        """What was spent: rho, threshold_delta; `.epsilon(delta=…)`, `.delta(epsilon=…)`."""
        return self.plan.guarantee

    @property
    def certificate(self) -> dict[str, Any]:
        """Everything public about this release, ready for JSON.

        Its fields are those of certificate.schema.json, the same for every mechanism; what does not
        apply is null. A release in Python has no file: the command line adds `output`, and
        `prefixes`.
        """
        spent, facts = self.guarantee, self._facts
        epsilon, delta = spent.stated()
        whole = {
            "software": "dp-sips",
            "version": version("dp-sips"),
            "time": facts["time"],
            "private": self.private,
            "protected": {
                "user": facts["user_column"],
                "neighbours": "one user, added or removed, with all of their rows",
            },
            "asked": dict.fromkeys(("epsilon", "delta", "rho")) | asdict(self.plan.asked),
            "spent": {
                "epsilon": epsilon,
                "delta": delta,
                "statement": str(spent),
                "zcdp": {
                    "rho": spent.rho,
                    "delta": spent.threshold_delta,
                    "meaning": "a weaker corollary, in exact arithmetic",
                },
                "sampler": asdict(spent.sampler),
            },
            "mechanism": {"name": self.plan.mechanism.name, "parameters": _parameters(self.plan)},
            "chosen_by": self.plan.chosen_by,
            "max_items": self.plan.max_items,
            "min_users": self.plan.min_users,
            "public_items": facts["public_items"],
            "rounds": [_comparable(row) for row in self.plan.table()],
            "nulls": facts["nulls"],
            "items": {"columns": facts["item_columns"], "number": facts["number_of_items"]},
            "count": facts["count"],
            "levels": facts.get("levels"),
            "output": facts.get("output"),
            "prefixes": facts.get("prefixes"),
        }
        return {name: _plain(fact) for name, fact in whole.items()}

    def written(self, file: str, sha256: str, what: str = "output") -> Self:
        """Return this selection, with a certificate that names a file: by default, its items'."""
        return replace(self, _facts=self._facts | {what: {"file": file, "sha256": sha256}})

    def to_json(self) -> str:
        """Return the certificate as JSON."""
        return json.dumps(self.certificate, indent=2, ensure_ascii=False)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page about this release: one HTML file that loads nothing from elsewhere.

        It is for the person who signs off: what was released, who is protected and how, how many
        users an item needed, the items (the first 5,000), limits, and how to verify all of it. An
        existing file is replaced, and stays as it was if anything fails.

        Public: everything on the page.
        """
        from dp_sips.pages.report import report_page, write_report

        page = report_page(self.certificate, self.plan, self.items, items_only=True)
        write_report(Path(path), page)

    def __len__(self) -> int:
        return count(self.items)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return rows(self.items)

    def __repr__(self) -> str:
        return f"<Selection{sized(self.items, 'item')}: {promise(self)}>"

    def _repr_html_(self) -> str:
        words = f"Selection{sized(self.items, 'item')}: {promise(self)}."
        return notebook.paragraph(words) + shown(self.items, self._facts["item_columns"])


def promise(selection: Selection) -> str:
    """Return the guarantee as it was asked for, or that there is none."""
    return str(selection.plan.asked) if selection.private else "NOT PRIVATE, made with a test seed"


def sized(table: Any, noun: str) -> str:
    """Say how many rows a table has, where it takes no cluster to know."""
    if is_distributed(table):
        return ""
    return f" of {count(table):,} {noun}{'s' * (count(table) != 1)}"


def shown(table: Any, names: Any) -> str:
    """Return the first rows of a table as HTML; a Spark table is not run for that."""
    if is_distributed(table):
        return ""
    listed = [row if len(names) > 1 else (row,) for row in islice(rows(table), SHOWN)]
    more = count(table) - len(listed)
    return notebook.table(list(names), listed) + (
        notebook.paragraph(f"… and {more:,} more") if more else ""
    )


def _plain(value: Any) -> Any:
    """Turn each number, as a fraction or one of NumPy's, into what JSON knows."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Return a round with the same fields for every mechanism, and its own ones apart."""
    own = {name: value for name, value in row.items() if name not in _NUMBERS}
    return {name: row.get(name) for name in _NUMBERS} | {"parameters": own}


def _parameters(plan: Plan) -> dict[str, Any]:
    """Return the mechanism's parameters; of a public table, how many entries it has."""
    return {
        parameter.name: len(value) if isinstance(value, Mapping) else value
        for parameter in fields(plan.mechanism)  # type: ignore[arg-type]
        for value in (getattr(plan.mechanism, parameter.name),)
    }
