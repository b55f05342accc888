"""Who is measured: this package, and DuckDB's two plain, non-private forms of the question."""

from collections.abc import Callable
from typing import Any


def ours(path: str, mechanism: str = "sips") -> Callable[[], int]:
    """Select from a file with the paper's settings; return the number of items released."""
    import scipy.special  # noqa: F401 (imported beforehand, as DuckDB is)

    import dp_sips

    select: Any = dp_sips.select_partitions
    settings = {"user": "user", "item": "item", "rho": 0.1, "delta": 1e-5, "max_items": 100}
    return lambda: select(path, mechanism=mechanism, progress=False, **settings).items.num_rows


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
