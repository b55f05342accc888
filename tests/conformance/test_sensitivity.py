"""One user, removed with all rows, moves the weights by an L2 norm of at most 1: in integers.

So it is in the first round, and in every later one, given the same items removed. The items'
names are their blocks, which do not depend on who holds them.
"""

from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_sips.privacy.weights import UNIT, weight

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# Few items and many users, or many items and few users; rows scattered and repeated.
row_lists = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), min_size=2, max_size=100)
rows_with_a_large_user = st.builds(
    lambda rows, size: [*rows, *((3, item) for item in range(size)), *rows[:5]],
    row_lists,
    st.integers(0, 60),
)


def table(rows: list[tuple[int, int]]) -> Any:
    return pa.table({"u": [user for user, _ in rows], "i": [item for _, item in rows]})


def squared_distance(one: Any, other: Any) -> int:
    return sum((one.get(item, 0) - other.get(item, 0)) ** 2 for item in one.keys() | other.keys())


@SETTINGS
@given(
    rows=rows_with_a_large_user,
    max_items=st.integers(1, 20),
    seed=st.integers(0, 2**32),
    removed=st.sets(st.integers(0, 60)),
    data=st.data(),
)
def test_any_user_removed(
    any_engine: Any,
    *,
    rows: list[tuple[int, int]],
    max_items: int,
    seed: int,
    removed: set[int],
    data: st.DataObject,
) -> None:
    gone = data.draw(st.sampled_from(sorted({user for user, _ in rows})))
    rest = [row for row in rows if row[0] != gone] or [(99, 99)]
    whole = rows if rest[0][0] != 99 else [*rows, (99, 99)]

    def item(block: bytes) -> int:
        return int.from_bytes(block[:8], "little")

    options: dict[str, Any] = {"user": "u", "item": "i", "seed": seed}
    after = any_engine.weights(
        table(rest), max_items, lambda block: item(block) in removed, **options
    )
    # Only what has weight can be found; without the user, that may be less.
    found = removed & {item(block) for block in after[0]}
    before = any_engine.weights(
        table(whole), max_items, lambda block: item(block) in found, **options
    )
    own = {item for user, item in rows if user == gone}
    for one, other, held in zip(before, after, (own, own - found), strict=True):
        count = min(len(held), max_items)
        distance = squared_distance(one, other)
        assert distance <= UNIT * UNIT
        # It is what the user adds, and all that it adds.
        assert distance == (count * weight(count) ** 2 if count else 0)
        assert all(one.get(item, 0) >= weights for item, weights in other.items())
