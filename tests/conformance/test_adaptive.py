"""MAD and MAD2R: every engine spreads the same weights, to the bit, and releases the same items."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dp_sips import Mad, Mad2R


def crowd() -> Any:
    """Users of very different sizes, items of very different popularity, rows scattered."""
    random = np.random.default_rng(7)
    sizes = np.minimum(random.zipf(1.5, 600), 60)
    users = np.repeat(np.arange(600), sizes)
    items = np.minimum(random.zipf(1.3, len(users)), 400)
    order = random.permutation(len(users))
    return pa.table({"user": users[order], "item": items[order].astype(str)})


@pytest.mark.parametrize(
    "mechanism",
    [Mad(), Mad(buffer=0.0, largest=8), Mad2R(), Mad2R(largest=12, share=0.4, composition="basic")],
    ids=["mad", "mad-small", "mad2r", "mad2r-basic"],
)
@pytest.mark.parametrize("max_items", [100, 7])
def test_engines_agree(engine: Any, reference: Any, mechanism: Any, max_items: int) -> None:
    options = {
        "user": "user", "item": "item", "mechanism": mechanism, "max_items": max_items,
        "epsilon": 3.0, "delta": 0.01, "rho": None,
    }  # fmt: skip
    data = crowd()
    expected = reference.release(data, **options).items
    assert expected.num_rows > 10
    assert engine.release(data, **options).items.equals(expected)
