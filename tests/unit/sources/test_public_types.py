"""Types are public: an additional user changes nothing about what the values of others mean.

For every kind of source, random data and a user of a hostile kind: the others' rows are carried as
the same bytes, and the same released items come out in the same types, codes and metadata, under
the same description in the certificate.
"""

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from dp_sips import select_partitions
from dp_sips.sorting import sorted_items
from dp_sips.sources import Source, open_source

Pairs = list[tuple[Any, Any]]
DAY, NOON = dt.date(2024, 5, 1), dt.datetime(2024, 5, 1, 12)  # noqa: DTZ001
TEXTS = ("7", "007", "tea", "true", "", "2024-05-01", "a rather long text of many bytes", "é")
NUMBERS = (0, 7, -7, 2**40)
PYTHON = (*TEXTS, *NUMBERS, Decimal("1.5"), Decimal(7), True, False, DAY, NOON, b"7")
HOSTILE_PYTHON = (
    *("B", "", 10**18, True, b"\xf6", dt.date(1, 1, 1), dt.time(1, 2, 3, 4)),
    *(Decimal("1.50000000000000000001"), Decimal(10**30)),
    *(NOON.replace(microsecond=1), NOON.replace(tzinfo=dt.UTC), dt.timedelta(1)),
)


@dataclass(frozen=True)
class Kind:
    """A kind of source: how it is made of pairs, and which values its users and items can have."""

    make: Callable[[Pairs, Path], Any]
    known: tuple[Any, ...]
    hostile: tuple[Any, ...]


def _columns(pairs: Pairs) -> dict[str, list[Any]]:
    return {"u": [user for user, _ in pairs], "i": [item for _, item in pairs]}


def _delimited(name: str, delimiter: str) -> Callable[[Pairs, Path], Path]:
    def make(pairs: Pairs, folder: Path) -> Path:
        rows = [("u", "i"), *pairs]
        text = "".join(f'"{user}"{delimiter}"{item}"\n' for user, item in rows)
        (folder / name).write_text(text)
        return folder / name

    return make


def _json(pairs: Pairs, folder: Path) -> Path:
    lines = (json.dumps({"u": user, "i": item}) + "\n" for user, item in pairs)
    (folder / "a.jsonl").write_text("".join(lines))
    return folder / "a.jsonl"


def _arrow(kind: pa.DataType) -> Callable[[Pairs, Path], pa.Table]:
    schema = pa.schema([("u", kind), ("i", kind)])
    return lambda pairs, _: pa.table(_columns(pairs), schema=schema)


def _file(name: str, write: Any) -> Callable[[Pairs, Path], Path]:
    def make(pairs: Pairs, folder: Path) -> Path:
        write(_arrow(pa.string())(pairs, folder), folder / name)
        return folder / name

    return make


def _dictionary(pairs: Pairs, _: Path) -> pa.Table:
    """Encode in the order of appearance, as writers do."""
    return pa.table(
        {name: pa.array(v, pa.string()).dictionary_encode() for name, v in _columns(pairs).items()}
    )


def _pandas(dtype: Any) -> Callable[[Pairs, Path], pd.DataFrame]:
    return lambda pairs, _: pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in _columns(pairs).items()}
    ).astype(dtype)


def _categories(dtype: Any) -> Callable[[Pairs, Path], pd.DataFrame]:
    """Make categories in the order of appearance, of a type that is declared.

    Without one, pandas would infer it from the rows, and it is pandas' types that are public.
    """

    def make(pairs: Pairs, folder: Path) -> pd.DataFrame:
        frame = _pandas(object)(pairs, folder)
        known = {name: pd.Index(list(dict.fromkeys(frame[name])), dtype=dtype) for name in frame}
        return frame.astype({name: pd.CategoricalDtype(known[name]) for name in frame})

    return make


def _mapping(pairs: Pairs, _: Path) -> dict[Any, list[Any]]:
    return {user: [item for other, item in pairs if other == user] for user, _ in pairs}


def _polars(dtype: Any) -> Callable[[Pairs, Path], pl.DataFrame]:
    return lambda pairs, _: pl.DataFrame(_columns(pairs), schema={"u": dtype, "i": dtype})


def _with_metadata(pairs: Pairs, folder: Path) -> Path:
    """Write categories as pandas does: its metadata says how many there are."""
    table = pa.Table.from_pandas(_categories("str")(pairs, folder))
    fields = [field.with_metadata({"rows": str(len(pairs))}) for field in table.schema]
    plain = [column.cast(pa.string()) for column in table.columns]
    schema = pa.schema(
        [field.with_type(pa.string()) for field in fields], metadata=table.schema.metadata
    )
    pq.write_table(pa.table(plain, schema=schema), folder / "b.parquet")
    return folder / "b.parquet"


MANY = tuple(f"category {n}" for n in range(300))
KINDS: dict[str, Kind] = {
    "csv": Kind(_delimited("a.csv", ","), TEXTS[:4], ("B", "1.5", "NA", "2024-05-01T10:00:00.5")),
    "tsv": Kind(_delimited("a.tsv", "\t"), TEXTS[:4], ("B", "1.5", "NA", "2024-05-01T10:00:00.5")),
    "json lines": Kind(_json, (*TEXTS, *NUMBERS, True, False), ("B", 1, "1", True, 2.5, 10**18)),
    "parquet": Kind(_file("a.parquet", pq.write_table), TEXTS, ("B", "x" * 99)),
    "parquet of pandas": Kind(_with_metadata, TEXTS, ("B", *MANY)),
    "arrow ipc": Kind(_file("a.arrow", feather.write_feather), TEXTS, ("B", "x" * 99)),
    "table": Kind(_arrow(pa.int64()), NUMBERS, (2**62, -1)),
    "decimals": Kind(_arrow(pa.decimal128(30, 8)), (Decimal("1.5"), Decimal(7)), (Decimal(99),)),
    "dictionaries": Kind(_dictionary, TEXTS, ("B", *MANY)),
    "pandas objects": Kind(_pandas(object), PYTHON, HOSTILE_PYTHON),
    "pandas decimals": Kind(_pandas(object), (Decimal("1.5"), Decimal(20)), HOSTILE_PYTHON),
    "pandas integers": Kind(_pandas("int64"), NUMBERS, (2**62, -1)),
    "pandas text": Kind(_pandas("str"), TEXTS, ("B",)),
    "pandas categories": Kind(_categories("str"), TEXTS, ("B", *MANY)),
    "pandas categories of objects": Kind(
        _categories(object), (*TEXTS, *NUMBERS), ("B", Decimal("0.5"))
    ),
    "polars": Kind(_polars(pl.Int64), NUMBERS, (2**62, -1)),
    "polars categoricals": Kind(_polars(pl.Categorical), TEXTS, ("B", *MANY)),
    "polars enums": Kind(_polars(pl.Enum([*TEXTS, *MANY])), TEXTS, MANY[:2]),
    "polars lazy": Kind(lambda *args: _polars(pl.String)(*args).lazy(), TEXTS, ("B",)),
    "duckdb": Kind(
        lambda *args: duckdb.connect().from_arrow(_arrow(pa.string())(*args)), TEXTS, ("B",)
    ),
    "pairs": Kind(lambda pairs, _: list(pairs), PYTHON, HOSTILE_PYTHON),
    "generator": Kind(lambda pairs, _: (pair for pair in pairs), PYTHON, HOSTILE_PYTHON),
    "mapping": Kind(_mapping, TEXTS, TEXTS),
    "dict of columns": Kind(lambda pairs, _: _columns(pairs), PYTHON, HOSTILE_PYTHON),
}  # fmt: skip


def _open(kind: str, pairs: Pairs, folder: Path) -> Source:
    names = {"user": None, "item": None} if kind in ("pairs", "generator", "mapping") else NAMES
    return open_source(KINDS[kind].make(pairs, folder), **names)


NAMES: dict[str, Any] = {"user": "u", "item": "i"}
CHEAP: dict[str, Any] = {"rho": 1, "delta": 1e-6, "mechanism": "sips"}


def _worlds(kind: str) -> Iterator[tuple[Pairs, Pairs]]:
    """Yield random data, and the same with an additional user, who comes first or last."""
    random = np.random.default_rng(1)
    values = KINDS[kind].known
    for n, hostile in enumerate(KINDS[kind].hostile[:12]):
        rows = random.integers(0, len(values), (30, 2)).tolist()
        pairs = [(values[user], values[item]) for user, item in rows]
        own = [(hostile, other) for other in KINDS[kind].hostile]
        yield pairs, own + pairs if n % 2 else pairs + own


def _carried(source: Source) -> Counter[tuple[Any, ...]]:
    rows: Counter[tuple[Any, ...]] = Counter()
    for batch in source.batches():
        rows.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_others_mean_the_same(kind: str, tmp_path: Path) -> None:
    for pairs, more in _worlds(kind):
        before = _open(kind, pairs, tmp_path)
        rows = _carried(before)
        after = _open(kind, more, tmp_path)
        assert (before.user_type, before.item_schema) == (after.user_type, after.item_schema)
        found = _carried(after)
        assert rows <= found
        if kind != "mapping":
            assert (found - rows).total() == len(more) - len(pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_release_comes_out_the_same(kind: str, tmp_path: Path) -> None:
    for pairs, more in _worlds(kind):
        before = _open(kind, pairs, tmp_path)
        items = sorted({item for _, item in _carried(before)})
        for released in (items[: len(items) // 2], items[:1], []):
            outcomes = []
            for rows in (pairs, more):
                source = _open(kind, rows, tmp_path)
                kinds = [getattr(t, "value_type", t) for t in source.item_schema.types]
                table = pa.table([pa.array(released, kinds[0])], names=source.item_schema.names)
                table = sorted_items(table, source.item_schema)
                outcomes.append((_fingerprint(source.restore(table)), source.describe(table)))
            assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_run_shows_nothing_else(
    kind: str, tmp_path: Path, capfd: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Items, certificate, plan, output and logs are those of the same release without the user.

    Everybody has the first item, which ε = 28 makes as good as certain for two users; nothing of
    the hostile user's comes out with this seed.
    """
    values, hostile = KINDS[kind].known, KINDS[kind].hostile
    settings: dict[str, Any] = {"epsilon": 28, "delta": 1e-6, "mechanism": "single", "max_items": 1}
    settings |= {"seed": 1, "insecure_test": True}
    settings |= {} if kind in ("pairs", "generator", "mapping") else NAMES
    crowd: Pairs = [(user, values[0]) for user in values]
    seen = []
    own = [[(user, item) for item in (*hostile, values[0])] for user in hostile[:6]]
    for pairs in [crowd, *([*rows, *crowd] for rows in own), crowd + own[0]]:
        selection = select_partitions(KINDS[kind].make(pairs, tmp_path), **settings)
        certificate = selection.certificate | {"time": ""}
        told = (json.dumps(certificate), repr(selection.plan), repr(selection.guarantee))
        spoken = (*capfd.readouterr(), [record.getMessage() for record in caplog.records])
        seen.append((_fingerprint(selection.items), told, spoken))
    assert len(_fingerprint(selection.items)) > 0
    assert all(each == seen[0] for each in seen[1:])


def _fingerprint(items: Any) -> Any:
    """Return all that can be seen of released items."""
    match items:
        case pa.Table():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, items.schema) as writer:
                writer.write_table(items)
            return sink.getvalue().to_pybytes()
        case pd.DataFrame():
            codes = [
                items[name].cat.codes.tolist() for name in items if hasattr(items[name], "cat")
            ]
            return repr(items.dtypes), _seen(items["i"].tolist()), codes, repr(items["i"].dtype)
        case pl.LazyFrame() | pl.DataFrame():
            items = items.lazy().collect()
            return repr(items.schema), items["i"].to_physical().to_list(), items["i"].to_list()
        case duckdb.DuckDBPyRelation():
            return items.columns, items.types, items.fetchall()
        case dict():
            return {name: _seen(values) for name, values in items.items()}
    return _seen(items)


def _seen(values: list[Any]) -> list[tuple[type, str]]:
    return [(type(value), repr(value)) for value in values]


@pytest.mark.parametrize("kind", ["csv", "tsv", "json lines", "pairs"])
def test_ids_with_zeros_in_front(kind: str, tmp_path: Path) -> None:
    """Were types inferred, an additional user with a letter would make 24 users of 12."""
    pairs: Pairs = [(f"{zero}{n}", "7") for n in range(1, 13) for zero in ("", "0")]
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "single"}
    settings |= {"max_items": 1, "insecure_test": True, "progress": False}
    settings |= {} if kind == "pairs" else NAMES
    for seed in range(10):
        releases = []
        for rows in (pairs, [*pairs, ("h", "B")]):
            data = KINDS[kind].make(rows, tmp_path)
            selection = select_partitions(data, seed=seed, **settings)
            found = selection.items if kind == "pairs" else selection.items["i"].to_pylist()
            releases.append(found.count("7"))
        assert releases[0] == releases[1]


TYPED = (
    *("parquet", "arrow ipc", "table", "decimals", "dictionaries", "csv", "tsv", "duckdb"),
    *("pandas integers", "pandas text"),
    *("polars", "polars categoricals", "polars enums", "polars lazy"),
)


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_no_error_depends_on_rows(kind: str, engine: str, tmp_path: Path) -> None:
    """With typed columns and nulls="drop", any rows make a release: none, one person's, all."""
    for pairs, more in list(_worlds(kind))[:2]:
        nulls = (
            [] if kind.startswith(("pandas", "csv", "tsv")) else [(None, None), (None, more[0][1])]
        )
        for rows in ([], pairs[:1], [*more, *nulls], nulls):
            data = KINDS[kind].make(rows, tmp_path)
            select_partitions(data, **NAMES, **CHEAP, nulls="drop", engine=engine, progress=False)
