import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.engines.block_sets import first_rows

words = st.integers(0, 3) | st.just(2**64 - 1)


@given(st.lists(st.tuples(words, words)))
def test_first_rows_are_those_of_distinct_blocks(blocks: list[tuple[int, int]]) -> None:
    found = first_rows(np.array(blocks, dtype=np.uint64).reshape(-1, 2))
    assert sorted(found.tolist()) == sorted(blocks.index(block) for block in set(blocks))
