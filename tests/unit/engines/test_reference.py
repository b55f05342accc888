"""The oracle itself, against sums done by hand."""

from typing import Any

import numpy as np
import pyarrow as pa

from dp_sips.engines.reference import ReferenceContributions, ReferenceEngine
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.privacy.weights import UNIT, weight
from dp_sips.progress import Progress
from dp_sips.sources import open_source


def load(
    data: Any, max_items: int = 10, seed: int = 1, types: Any = None
) -> ReferenceContributions:
    source = open_source(data, user=None, item=None, nulls="error", types=types)
    return ReferenceEngine().load(
        source, Bounds(max_items), Key.for_tests(seed), Progress(show=False)
    )


def test_a_user_gives_each_of_its_items_the_same() -> None:
    loaded = load({"ann": ["x", "y", "x", "z", "w"], "bob": ["x"], "cid": ["y", "x"]})
    assert loaded.weigh(10) == {
        (b"x",): weight(4) + UNIT + weight(2),
        (b"y",): weight(4) + weight(2),
        (b"z",): weight(4),
        (b"w",): weight(4),
    }


def test_found_items_leave_and_the_rest_gains() -> None:
    loaded = load({"ann": ["x", "y"], "bob": ["x"], "cid": ["y"]})
    loaded.weigh(10)
    loaded.remove([(b"x",)])
    assert loaded.weigh(10) == {(b"y",): 2 * UNIT}
    loaded.remove([(b"y",)])
    assert loaded.weigh(10) == {}
    assert loaded.decide({}, lambda *_: np.array([True])) == []
    assert loaded.released().to_pydict() == {"item": [b"x", b"y"]}


def test_truncation_keeps_a_prefix_and_lets_others_move_up() -> None:
    items = [str(n) for n in range(10)]
    loaded = load({"ann": items})
    first = set(loaded.weigh(3))
    assert len(first) == 3
    assert set(loaded.weigh(3).values()) == {weight(3)}
    assert first < set(loaded.weigh(4))
    loaded.remove(list(first))
    second = set(loaded.weigh(3))
    assert len(second) == 3
    assert not first & second


def test_truncation_of_one_user_does_not_depend_on_the_others() -> None:
    items = [str(n) for n in range(10)]
    alone = set(load({"ann": items}).weigh(3))
    among = load({"bob": ["0", "1"], "ann": items[::-1], "cid": items})
    others = load({"bob": ["0", "1"], "cid": items})
    difference = {
        item for item in among.weigh(3) if among.weigh(3)[item] != others.weigh(3).get(item, 0)
    }
    assert difference == alone


def test_an_empty_release_has_the_items_types() -> None:
    loaded = load({1: [5]}, types={"item": "int"})
    assert loaded.released().schema == pa.schema([("item", pa.int64())])
