"""Public frequencies of items, looked up by the blocks that engines know items by."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.blocks import combine, plain_type, value_blocks
from dp_sips.errors import UsageError
from dp_sips.privacy.noise import Blocks, Key
from dp_sips.privacy.policy import Liking


def public_liking(histogram: Mapping[Any, int], schema: pa.Schema, key: Key) -> Liking:
    """Return the function from items to their counts in a public histogram, 0 for the others.

    Its items are values of the item column, or tuples of values where there are several columns.
    """
    rows = [item if len(schema) > 1 else (item,) for item in histogram]
    columns = zip(*rows, strict=True) if rows else [[]] * len(schema)
    scrambler = key.scrambler("long items")
    try:
        arrays = [
            pa.array(list(values), plain_type(field.type))
            for values, field in zip(columns, schema, strict=True)
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        kinds = ", ".join(f"{field.name}: {field.type}" for field in schema)
        raise UsageError(
            f"the items of the histogram must be like those of the data ({kinds}): {error}"
        ) from error
    blocks = combine([value_blocks(array, scrambler) for array in arrays], scrambler)
    counts = {
        block.tobytes(): count for block, count in zip(blocks, histogram.values(), strict=True)
    }

    def like(items: Blocks) -> NDArray[np.uint32]:
        return np.array([counts.get(block.tobytes(), 0) for block in items], dtype=np.uint32)

    return like
