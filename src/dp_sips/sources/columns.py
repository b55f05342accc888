"""Which columns of a table are the user and the item."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import pyarrow as pa

from dp_sips.errors import InputError, UsageError, did_you_mean
from dp_sips.sources.declared import declared_types


@dataclass(frozen=True)
class Columns:
    """The names that the caller gave, `None` and `()` where nothing was given, and their types.

    `texts` says that the item column holds texts to take apart.
    """

    user: str | None
    items: tuple[str, ...]
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    texts: bool = False

    @classmethod
    def named(
        cls,
        user: str | None,
        item: str | Sequence[str] | None,
        types: Mapping[str, Any] | None = None,
        *,
        texts: bool = False,
        rename: str = "",
    ) -> "Columns":
        """Check the names as far as that is possible without a table.

        `rename` says how columns get names that are text, where they may have others.
        """
        if item is not None and not isinstance(item, Iterable):
            raise UsageError(
                f"item must name a column, or several in a list, got {item!r}"
                f"{_as_text(item, rename)}"
            )
        items = (item,) if isinstance(item, str) else tuple(item or ())
        for name in (*items, *([] if user is None else [user])):
            if not isinstance(name, str):
                raise UsageError(f"column names are text, got {name!r}{_as_text(name, rename)}")
        for name, count in Counter(items).items():
            if count > 1:
                raise UsageError(f"item names the column {name!r} twice: name each column once")
        if user in items:
            raise UsageError(f"user and item are the same column, {user!r}: name two columns")
        return cls(user, items, cls._typed(user, items, declared_types(types)), texts)

    @staticmethod
    def _typed(
        user: str | None, items: tuple[str, ...], types: dict[str, pa.DataType]
    ) -> dict[str, pa.DataType]:
        """Reject types of columns that are not read."""
        read = (user or "user", *(items or ("item",)))
        for name in types:
            if name not in read:
                raise UsageError(
                    f"types names {name!r}, which is neither the user nor an item: "
                    f"{did_you_mean(name, read)}"
                )
        return types

    @property
    def given(self) -> bool:
        """Whether the caller named any column."""
        return self.user is not None or bool(self.items)

    @property
    def lists(self) -> bool:
        """Whether a value of the item column may be a list of items."""
        return len(self.items) <= 1 and not self.texts

    def pick(self, known: Iterable[object], label: str) -> list[str]:
        """Return the needed names, the user first, once it is sure that the table has them."""
        counts = Counter(list(known))
        user = self._required(counts, label)
        for name in (user, *self.items):
            if name not in counts:
                hint = _several(name, counts) or did_you_mean(name, map(str, counts))
                raise InputError(f"no column {name!r} in {label}: {hint}")
            if counts[name] > 1:
                raise InputError(f"{label} has {counts[name]} columns {name!r}: rename one of them")
        return [user, *self.items]

    def _required(self, known: Iterable[object], label: str) -> str:
        missing = "user" if self.user is None else "item"
        if self.user is None or not self.items:
            shown = ", ".join(repr(str(name)) for name in known)
            raise UsageError(f"{missing}= must name a column of {label}; it has {shown or 'none'}")
        return self.user


def _as_text(name: object, rename: str) -> str:
    """Say how to name the column that is meant, if this is a number."""
    if not isinstance(name, Integral):
        return ""
    return f': {rename}, and say "{name}"' if rename else f': say "{name}"'


def _several(name: str, known: Container[object]) -> str:
    """Say how to name several columns, if this is their names with commas between them."""
    names = [part.strip() for part in name.split(",")]
    if len(names) == 1 or not all(part in known for part in names):
        return ""
    return f"several columns are named one by one, as item={names}"
