"""Items that the caller knows: public keys, from whatever holds them, as a table."""

from typing import Any

import pyarrow as pa

from dp_sips.counts import Counts
from dp_sips.engines.block_sets import NO_BLOCKS, first_rows
from dp_sips.engines.encoding import table_blocks
from dp_sips.errors import InputError, UsageError
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.noise import Key
from dp_sips.selection import Selection
from dp_sips.sorting import sorted_items
from dp_sips.sources import Source
from dp_sips.sources.finding import find_files
from dp_sips.sources.flat import as_arrow
from dp_sips.sources.keys import read_keys


def known_items(name: str, items: Any, source: Source, key: Key) -> pa.Table:
    """Return public items, given as the parameter `name`, sorted, each once.

    They may be an earlier `Selection` or `Counts`, a table with the item columns, a file or a list.
    Text is a path. A last row without any value in a file or a table is that of
    `count_users(…, other=True)`, and no item.
    """
    earlier = items.selection if isinstance(items, Counts) else items
    held = earlier.items if isinstance(earlier, Selection) else earlier
    _check_path(name, held)
    table = read_keys(held, source, name)
    listed = isinstance(held, list | tuple | set | frozenset)
    if not listed and source.nulls != "group" and _ends_empty(table):
        table = table.slice(0, table.num_rows - 1)
    if source.nulls != "group" and any(column.null_count for column in table.columns):
        raise InputError(
            f'{name} have nulls, and the data has none: leave them out, or nulls="group"'
        )
    first = first_rows(table_blocks(table, key))
    return sorted_items(table.take(as_arrow(first)), source.item_schema)


def _check_path(name: str, held: Any) -> None:
    """Reject text that names no file, and say how items are given."""
    if isinstance(held, str):
        try:
            find_files([held])
        except (InputError, UsageError) as error:
            raise InputError(
                f"{error}; text is a path, and items are a list: {name}=[{held!r}]"
            ) from error


def _ends_empty(table: pa.Table) -> bool:
    """Whether there is a last row, and no value in it."""
    last = table.slice(max(0, table.num_rows - 1))
    return last.num_rows > 0 and all(column.null_count for column in last.columns)


def known_blocks(name: str, items: Any, source: Source, key: Key) -> Blocks:
    """Return the blocks of public items, under the run's key; none where there are no items."""
    if items is None:
        return NO_BLOCKS
    return table_blocks(known_items(name, items, source, key), key)
