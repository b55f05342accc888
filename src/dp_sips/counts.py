"""What comes back from `count_users`: items with noisy counts, and one certificate for both."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dp_sips import notebook
from dp_sips.plan import Plan
from dp_sips.privacy.guarantee import Guarantee
from dp_sips.rows import count, rows
from dp_sips.selection import Selection, promise, shown, sized


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """The result of `count_users`: nothing in it says more than the items and their counts.

    Its length is the number of rows of `table`; iterating over it yields them as tuples.

    Attributes:
        table: The items, sorted, in the kind of table that came in, with a column `users`: about
            how many users hold each, in whole numbers, which may be negative. The last row, with a
            null item, counts the users who hold none of them, if `other=True` asked for it.
        standard_deviation: That of the noise on each count.
        selection: The items alone. Its guarantee and its certificate are those of the counts, too.
    """

    table: Any
    standard_deviation: float
    selection: Selection

    @property
    def guarantee(self) -> Guarantee:
        """What selection and counts spent together."""
        return self.selection.guarantee

    @property
    def plan(self) -> Plan:
        """The rounds that selected the items."""
        return self.selection.plan

    @property
    def private(self) -> bool:
        """False where a test seed was used: such counts have no guarantee."""
        return self.selection.private

    @property
    def certificate(self) -> dict[str, Any]:
        """Everything public about this release, ready for JSON."""
        return self.selection.certificate

    def to_json(self) -> str:
        """Return the certificate as JSON."""
        return self.selection.to_json()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page about this release, as `Selection.report` does, with the counts."""
        from dp_sips.pages.report import report_page, write_report

        write_report(Path(path), report_page(self.certificate, self.plan, self.table))

    def __len__(self) -> int:
        return count(self.table)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return rows(self.table)

    def __repr__(self) -> str:
        return f"<Counts{sized(self.table, 'row')}, {self._noise}: {promise(self.selection)}>"

    def _repr_html_(self) -> str:
        words = f"Counts{sized(self.table, 'row')}, {self._noise}: {promise(self.selection)}."
        names = (*self.certificate["items"]["columns"], "users")
        return notebook.paragraph(words) + shown(self.table, names)

    @property
    def _noise(self) -> str:
        return f"± {self.standard_deviation:.1f}"
