"""The paper's synthetic data: its distributions, its file, its memory."""

import io
import math
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

from dp_sips import UsageError, synthetic
from dp_sips.progress import Progress


def written(users: int, seed: int = 0) -> bytes:
    sink = io.BytesIO()
    synthetic.write_synthetic(sink, users, seed, Progress(show=False))
    return sink.getvalue()


def test_the_same_seed_gives_the_same_file() -> None:
    assert written(1000, 3) == written(1000, 3)
    assert written(1000, 3) != written(1000, 4)


def test_set_sizes_are_pareto() -> None:
    table = pq.read_table(io.BytesIO(written(20_000)))
    sizes = np.bincount(table["user"].to_numpy())
    assert sizes.min() == 10
    for size in (20, 100, 1000):
        expected = (10 / size) ** 1.16
        spread = 5 * math.sqrt(expected / len(sizes))
        assert abs((sizes >= size).mean() - expected) < spread


def test_items_are_zeta() -> None:
    items = pq.read_table(io.BytesIO(written(20_000)))["item"].to_numpy()
    counts = Counter(items[items <= 16].tolist())
    for item in (2, 4, 16):
        expected = counts[1] * item**-1.1
        assert abs(counts[item] - expected) < 6 * math.sqrt(expected)
    assert items.min() == 1
    assert items.max() > 2**60


def test_a_large_user_is_split_over_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pq.read_table(io.BytesIO(written(200)))
    monkeypatch.setattr(synthetic, "_ROWS", 64)
    file = pq.ParquetFile(io.BytesIO(written(200)))
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert max(groups) == 64
    assert file.read()["user"] == whole["user"]


def test_chunks_of_users_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "_USERS", 30)
    users = pq.read_table(io.BytesIO(written(100)))["user"].to_numpy()
    assert np.array_equal(np.unique(users), np.arange(100))
    assert (np.diff(users) >= 0).all()


@pytest.mark.parametrize(("users", "seed"), [(0, 0), (-1, 0), (1, -1)])
def test_impossible_numbers(users: int, seed: int) -> None:
    with pytest.raises(UsageError, match=r"got (0|-1)"):
        synthetic.check_counts(users, seed)
