"""What became of each search of the demo: possible only because nobody real is in its data."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa


@dataclass(frozen=True)
class Outcome:
    """A data set of searches, and those that were released."""

    data: pa.Table
    released: frozenset[str]

    @cached_property
    def people(self) -> dict[str, int]:
        """How many people made each search, the most popular first."""
        pairs = self.data.group_by(["person", "search"]).aggregate([])
        counts = pairs.group_by("search").aggregate([([], "count_all")])
        rows = zip(counts["search"].to_pylist(), counts["count_all"].to_pylist(), strict=True)
        return dict(sorted(rows, key=lambda row: (-row[1], row[0])))

    @property
    def telling(self) -> list[str]:
        """The searches that one person alone made."""
        return [search for search, people in self.people.items() if people == 1]

    @property
    def found(self) -> list[str]:
        """The released searches, the most popular first."""
        return [search for search in self.people if search in self.released]

    @property
    def held_back(self) -> list[str]:
        """The others."""
        return [search for search in self.people if search not in self.released]
