"""The Spark engine: one exchange by user, then one by item for each round."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dp_sips.engines.spark import chunks, parcels
from dp_sips.engines.spark.buckets import bucket_labels
from dp_sips.engines.spark.chunks import Weigh, blocks_of
from dp_sips.engines.spark.failures import explained
from dp_sips.engines.spark.files import are_paths, read_files
from dp_sips.engines.spark.found import Found
from dp_sips.engines.spark.layout import LayOut
from dp_sips.engines.spark.parcels import Encode, EncodeAgain, Rows, packed, unchunked
from dp_sips.engines.spark.session import find_session
from dp_sips.engines.spark.values import LookUp, decoded, once, split, unblocked
from dp_sips.engines.spark.verdicts import BLOCKS, JUDGED, Judge, JudgeEvidence
from dp_sips.engines.spark.worker_key import WorkerKey
from dp_sips.errors import InputError, UsageError
from dp_sips.privacy.decide import Decide, DecideOnEvidence
from dp_sips.privacy.noise import Blocks, Key
from dp_sips.privacy.weights import UNIT_BITS
from dp_sips.progress import Progress
from dp_sips.sources import Source

_ADAPTIVE_CACHE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"


@dataclass(frozen=True)
class SparkEngine:
    """Runs a plan on Apache Spark.

    Attributes:
        master: The address of the cluster, such as spark://host:7077 or local[4], where no session
            runs yet; local[*] unless told otherwise. A Spark table brings its own session.
        broadcast_items: Up to so many found items are sent to every worker; more leave by a join.
        explain: Whether to print the physical plan of each step to stderr.
    """

    master: str | None = None
    broadcast_items: int = 5_000_000
    explain: bool = False

    def __post_init__(self) -> None:
        if self.broadcast_items < 0:
            raise UsageError(f"broadcast_items must not be negative, got {self.broadcast_items}")

    def read(self, data: Any, *, text: bool) -> Any:
        """Return paths as a table that Spark reads; everything else as it is."""
        if not are_paths(data):
            return data
        return read_files(data, lambda: find_session(self.master), text=text)

    def load(
        self, source: Source, max_items: int, key: Key, progress: Progress, *, cut: bool = False
    ) -> "SparkContributions":
        """Lay the pairs out by user, once: repeats dropped, users' items in bounding order."""
        most = max_items if cut else None
        loaded = SparkContributions(self, source, WorkerKey.of(key), most)
        try:
            with progress.bar("laying out by user", 1, unit="step") as bar:
                loaded.lay_out()
                bar(1)
        except BaseException:
            loaded.close()
            raise
        return loaded


class SparkContributions:
    """The distinct pairs as a cached Spark table of chunks.

    Weights are a Spark table of sums, verdicts one of blocks; both run when they are needed.
    """

    def __init__(
        self, engine: SparkEngine, source: Source, key: WorkerKey, most: int | None
    ) -> None:
        self._engine = engine
        self._most = most
        self._source = source
        self._key = key
        self._frame, self._rows = _frame_of(source, engine.master)
        self._held: list[DataFrame] = []
        self._found: list[DataFrame] = []
        self._near = Found.of(np.empty((0, 2), dtype=np.uint64))
        self._chunks: DataFrame | None = None
        self._evidence: DataFrame | None = None

    def lay_out(self) -> None:
        """Read the source: one exchange by user."""
        self._lay_out(self._frame, Encode(self._rows, self._key, self._labels))
        assert self._chunks is not None
        if self._fill(self._chunks) == 0:
            with explained():
                empty = self._frame.isEmpty()
            label = self._source.feed.label
            raise InputError(
                f"no rows in {label}"
                if empty
                else f"no rows are left of {label}: each has a null or an empty list"
            )

    def weigh(self, max_items: int, step_bits: int = UNIT_BITS) -> DataFrame:
        """Return the weight of each item: partial sums per chunk, then one exchange by item."""
        assert self._chunks is not None
        partial = _without_past(self._chunks).mapInArrow(
            Weigh(self._near, max_items, step_bits), chunks.SUMS
        )
        if self._evidence is None:
            return partial.groupBy("low", "high").sum("weight").toDF("low", "high", "weight")
        # Evidence meets the weights in their own exchange, and takes none of its own.
        both = partial.selectExpr("*", "0d AS evidence").union(
            self._evidence.selectExpr("low", "high", "0L AS weight", "evidence")
        )
        sums = both.groupBy("low", "high").sum("weight", "evidence")
        return sums.toDF("low", "high", "weight", "evidence")

    def decide(self, weights: DataFrame, decide: Decide) -> DataFrame:
        """Return the blocks of the items with a yes."""
        return weights.mapInArrow(Judge(decide), BLOCKS)

    def decide_on_evidence(
        self, weights: DataFrame, decide: DecideOnEvidence
    ) -> tuple[DataFrame, DataFrame]:
        """Return the blocks to release and those to drop; the rest keeps its evidence."""
        judged = self._hold(weights.mapInArrow(JudgeEvidence(decide), JUDGED))
        self._fill(judged)
        judged = _without_past(judged)
        self._evidence = judged.where("NOT released AND NOT dropped")
        released, dropped = judged.where("released"), judged.where("dropped AND NOT released")
        return released.select("low", "high"), dropped.select("low", "high")

    def remove(self, verdicts: DataFrame) -> None:
        """Run the round, release what was found, and take it out of the users' sets."""
        found = self._hold(verdicts)
        self._found.append(found)
        self._take_out(found)

    def drop(self, verdicts: DataFrame) -> None:
        """Take items out of the users' sets without releasing them."""
        self._take_out(self._hold(verdicts))

    def _take_out(self, found: DataFrame) -> None:
        """Let items leave by broadcast while they are few, else by a join."""
        new = self._fill(found)
        if len(self._near) + new <= self._engine.broadcast_items:
            blocks = np.concatenate((self._near.blocks, self._collected(found)))
            self._near = Found.of(blocks)
        else:
            self._join_away(found)

    def released(self) -> pa.Table:
        """Return the items found so far."""
        schema = self._source.item_schema
        blocks = np.concatenate([self._collected(found) for found in self._found])
        within, hashed = split(blocks, schema)
        tables = []
        if len(within):
            tables.append([unblocked(within, schema.field(0).type)])
        if len(hashed):
            tables.append(self._looked_up(hashed))
        if not tables:
            tables.append([pa.array([], _plain(kind)) for kind in schema.types])
        columns = [pa.concat_arrays(parts) for parts in zip(*tables, strict=True)]
        return pa.Table.from_arrays(columns, names=schema.names)

    def close(self) -> None:
        """Free what Spark holds for this run."""
        for frame in self._held:
            frame.unpersist()
        self._held.clear()

    @cached_property
    def _labels(self) -> Any:
        return bucket_labels(_partitions(self._frame.sparkSession))

    def _lay_out(self, frame: DataFrame, encode: Callable[[Any], Any]) -> None:
        moved = frame.mapInArrow(encode, parcels.SCHEMA).repartition("bucket")
        self._chunks = self._hold(moved.mapInArrow(LayOut(self._key, self._most), chunks.SCHEMA))

    def _join_away(self, found: DataFrame) -> None:
        """Thin out the pairs by a join with what was found, and lay them out anew."""
        assert self._chunks is not None
        old = self._chunks
        pairs = _without_past(old).mapInArrow(unchunked, parcels.PAIRS)
        left = pairs.join(_without_past(found), ["low", "high"], "left_anti")
        self._lay_out(left, EncodeAgain(self._key, self._labels))
        self._fill(self._chunks)
        self._let_go(old)

    def _looked_up(self, blocks: Blocks) -> list[pa.Array]:
        look_up = LookUp(self._rows, self._key, Found.of(blocks), self._labels)
        moved = self._frame.mapInArrow(look_up, parcels.SCHEMA).repartition("bucket")
        with explained():
            parts = moved.mapInArrow(once, parcels.SCHEMA).toArrow().column("parcel")
        batches = [batch for part in parts for batch in pa.ipc.open_stream(part.as_buffer())]
        values = pa.Table.from_batches(batches).combine_chunks()
        if len(values) != len(blocks):
            label = self._source.feed.label
            raise InputError(f"{label} changed while it was read: persist it first")
        kinds = [_plain(kind) for kind in self._source.item_schema.types]
        columns = values.columns[2:]
        return [column.combine_chunks().cast(k) for column, k in zip(columns, kinds, strict=True)]

    def _hold(self, frame: DataFrame) -> DataFrame:
        with _adaptive_cache(frame.sparkSession):
            self._held.append(frame.persist())
        return frame

    def _let_go(self, frame: DataFrame) -> None:
        self._held.remove(frame)
        frame.unpersist()

    def _fill(self, frame: DataFrame) -> int:
        """Run what fills a held table, and return how many rows it has."""
        if self._engine.explain:
            with redirect_stdout(sys.stderr):
                frame.explain("formatted")
        with explained():
            return frame.count()

    def _collected(self, found: DataFrame) -> Blocks:
        with explained():
            return blocks_of(found.toArrow())


def _without_past(frame: DataFrame) -> DataFrame:
    """Return a held table as a plain scan, without the plan that made it.

    Spark prints that plan in every plan after it, twice: after twelve rounds, four thousand times.
    Lost blocks are computed again all the same. (Spark Connect has no way to do this.)
    """
    spark: Any = frame.sparkSession
    if not hasattr(spark, "_jsparkSession"):
        return frame
    java: Any = frame.select("*")._jdf  # noqa: SLF001 (a new query, which finds the table held)
    rows, schema = java.queryExecution().toRdd(), java.schema()
    plain = spark._jsparkSession.internalCreateDataFrame(rows, schema, False)  # noqa: FBT003, SLF001
    return DataFrame(plain, spark)


@contextmanager
def _adaptive_cache(spark: SparkSession) -> Iterator[None]:
    """Let Spark fit the partitions of what is persisted now to its size, as it does elsewhere."""
    before = spark.conf.get(_ADAPTIVE_CACHE, None)
    spark.conf.set(_ADAPTIVE_CACHE, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_ADAPTIVE_CACHE)
        else:
            spark.conf.set(_ADAPTIVE_CACHE, before)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _frame_of(source: Source, master: str | None) -> tuple[DataFrame, Rows]:
    """Return the source as a Spark table, and how workers read it."""
    feed = source.feed
    frame = getattr(feed, "frame", None)
    if frame is not None:
        return frame, Rows(feed.label, feed.schema, source.nulls, packed=False)
    spark = find_session(master)
    # Spark has no type for some of Arrow's: batches travel as they are, in parcels.
    # Dictionaries do not: those of several batches may not fit together.
    rows = [[decoded(column) for column in batch.columns] for batch in source.batches()]
    schema = pa.schema([(str(n), column.type) for n, column in enumerate(rows[0])])
    cargo = [packed(pa.RecordBatch.from_arrays(columns, schema=schema)) for columns in rows]
    table = pa.table({"parcel": pa.array(cargo, pa.binary())})
    return spark.createDataFrame(table), Rows(feed.label, schema, source.nulls, packed=True)


def _partitions(spark: SparkSession) -> int:
    """Return how many partitions an exchange has, to begin with."""
    setting = spark.conf.get("spark.sql.shuffle.partitions", "200") or "200"
    return int(setting) if setting.isdigit() else 200
