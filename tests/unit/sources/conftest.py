from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from dp_sips.sources import Source, open_source
from dp_sips.sources.values import AnyKind, encode

Rows = Counter[tuple[Any, ...]]


def rows_of(source: Source) -> Rows:
    """Count the rows of a source, and check what every batch promises."""
    rows: Rows = Counter()
    for batch in source.batches():
        assert 0 < batch.num_rows <= 1 << 18
        assert batch.schema.names == ["user", *source.item_schema.names]
        batch.validate(full=True)
        for column, kind in zip(
            batch.columns, [source.user_type, *source.item_schema.types], strict=True
        ):
            plain = column.type == kind
            assert plain or (pa.types.is_dictionary(column.type) and column.type.value_type == kind)
        rows.update(zip(*source.values(batch), strict=True))
    return rows


@pytest.fixture
def read() -> Callable[..., Rows]:
    """Open a source with the columns u and i, and count its rows."""

    def read(data: Any, **options: Any) -> Rows:
        return rows_of(open_source(data, **{"user": "u", "item": "i"} | options))

    return read


@pytest.fixture
def count() -> Callable[[Source], Rows]:
    return rows_of


@pytest.fixture
def items() -> Callable[[Source, list[Any]], pa.Table]:
    """Make the table of released items that an engine would hand back."""

    def items(source: Source, values: list[Any]) -> pa.Table:
        (field,) = source.item_schema
        kind = field.type
        if isinstance(source.schema.types[1], AnyKind):
            return pa.table([encode(values, field.name, "the test")], schema=source.item_schema)
        if pa.types.is_dictionary(kind):
            array = pa.array(values, kind.value_type).dictionary_encode()
            array = pa.DictionaryArray.from_arrays(
                array.indices.cast(kind.index_type), array.dictionary, ordered=kind.ordered
            )
        else:
            array = pa.array(values, kind)
        return pa.table([array], schema=source.item_schema)

    return items
