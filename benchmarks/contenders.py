"""Who is measured: this package, and two plain, non-private forms of the question elsewhere."""

from collections.abc import Callable
from functools import partial
from typing import Any


def ours(path: str, mechanism: str = "sips", **options: Any) -> Callable[[], int]:
    """Select from a file with the paper's settings; return the number of items released."""
    return _selecting(path, mechanism, **options)


def ours_on_frame(path: str, mechanism: str, kind: str) -> Callable[[], int]:
    """Select from a frame of this kind that is in memory already."""
    return _selecting(_frame(path, kind), mechanism)


def _selecting(data: Any, mechanism: str, **options: Any) -> Callable[[], int]:
    # Imported beforehand, as DuckDB is.
    import scipy.special  # noqa: F401
    from cryptography.hazmat.primitives import ciphers  # noqa: F401

    import dp_sips
    import dp_sips.engines.memory

    # The paper's main setting; the look of `auto` needs it as epsilon, and so does `gw`.
    settings: dict[str, Any] = {"epsilon": 1.765, "delta": 4.96e-5}
    if mechanism not in {"auto", "gw"}:
        settings = {"rho": 0.1, "delta": 1e-5, "max_items": 100}
    settings |= options
    select: Any = partial(dp_sips.select_partitions, user="user", item="item", progress=False)
    return lambda: len(select(data, mechanism=mechanism, **settings).items)


def _frame(path: str, kind: str) -> Any:
    if kind == "pandas":
        import pandas as pd

        return pd.read_parquet(path)
    if kind == "polars":
        import polars as pl

        return pl.read_parquet(path)
    import pyarrow.parquet as pq

    return pq.read_table(path)


def duckdb_count_distinct(path: str) -> Callable[[], int]:
    """Count distinct users per item."""
    return _duckdb(f"SELECT item, COUNT(DISTINCT user) AS n FROM '{path}' GROUP BY item")  # noqa: S608


def duckdb_distinct_first(path: str) -> Callable[[], int]:
    """Take distinct pairs first, then count them per item."""
    return _duckdb(
        f"SELECT item, COUNT(*) AS n FROM (SELECT DISTINCT user, item FROM '{path}') GROUP BY item"  # noqa: S608
    )


def _duckdb(query: str) -> Callable[[], int]:
    import duckdb

    connection = duckdb.connect()

    def run() -> int:
        connection.execute(f"CREATE TEMP TABLE counts AS {query}")
        row = connection.execute("SELECT COUNT(*) FROM counts").fetchone()
        assert row is not None
        return int(row[0])

    return run


def polars_count_distinct(path: str) -> Callable[[], int]:
    """Count distinct users per item of a frame in memory."""
    import polars as pl

    frame = pl.read_parquet(path)
    return lambda: frame.group_by("item").agg(pl.col("user").n_unique()).height


def polars_distinct_first(path: str) -> Callable[[], int]:
    """Take distinct pairs of a frame in memory first, then count them per item."""
    import polars as pl

    frame = pl.read_parquet(path)
    return lambda: frame.unique(["user", "item"]).group_by("item").len().height
