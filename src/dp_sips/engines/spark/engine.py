"""The Spark engine: one exchange by user, then one by item for each round."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from dp_sips.engines.base import Engine
from dp_sips.engines.encoding import PublicCounts, plain_type, public_counts
from dp_sips.engines.memory.matching import Seating
from dp_sips.engines.spark import chunks, parcels, settling, spreading, verdicts
from dp_sips.engines.spark.block_sets import NO_BLOCKS, BlockSet
from dp_sips.engines.spark.buckets import bucket_labels
from dp_sips.engines.spark.failures import explained
from dp_sips.engines.spark.files import are_paths, read_files
from dp_sips.engines.spark.layout import LayOut
from dp_sips.engines.spark.own_session import in_own_session, partitions, without_past
from dp_sips.engines.spark.parcels import Encode, EncodeAgain, Rows, packed, unchunked
from dp_sips.engines.spark.session import find_session
from dp_sips.engines.spark.settling import (
    LISTS,
    VOTES,
    Collected,
    Contested,
    ListUp,
    Order,
    Turns,
    one_each,
)
from dp_sips.engines.spark.spreading import Give, Tell, Told
from dp_sips.engines.spark.sums import to_batch
from dp_sips.engines.spark.values import LookUp, decoded, once, split, unblocked
from dp_sips.engines.spark.verdicts import (
    COUNTS,
    DROPPED,
    KEPT,
    RELEASED,
    Judge,
    JudgeEvidence,
    Outcome,
    blocks_of,
)
from dp_sips.engines.spark.weighing import KeepOnly, Weigh
from dp_sips.engines.spark.worker_key import WorkerKey
from dp_sips.errors import InputError, UsageError
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.contributions import (
    Contributions,
    Decide,
    DecideOnEvidence,
    Signal,
    Split,
)
from dp_sips.privacy.noise import Key
from dp_sips.privacy.weights import UNIT_BITS
from dp_sips.progress import Progress
from dp_sips.sources import Source
from dp_sips.validation import check_whole


@dataclass(frozen=True)
class SparkEngine(Engine):
    """Runs a plan on Apache Spark.

    Attributes:
        master: The address of the cluster, such as spark://host:7077 or local[4], where no session
            runs yet; local[*] unless told otherwise. A Spark table brings its own session.
        broadcast_items: Up to so many found items are sent to every worker; more leave by a join.
        collect_bytes: How much of users' lists the driver takes at most, for mechanism "matching".
        explain: Whether to print the physical plan of each step to stderr.
    """

    master: str | None = None
    broadcast_items: int = 5_000_000
    collect_bytes: int = 800_000_000
    explain: bool = False

    def __post_init__(self) -> None:
        check_whole("broadcast_items", self.broadcast_items, least=0)
        check_whole("collect_bytes", self.collect_bytes, least=0)

    def read(self, data: Any, *, text: bool) -> Any:
        """Return paths as a table that Spark reads; everything else as it is."""
        if not are_paths(data):
            return data
        return read_files(data, lambda: find_session(self.master), text=text)

    def load(
        self, source: Source, bounds: Bounds, key: Key, progress: Progress
    ) -> "SparkContributions":
        """Lay the pairs out by user, once: repeats dropped, users' items in bounding order."""
        most = bounds.max_items if bounds.once else None
        counts = bounds.public_counts
        public = None if counts is None else public_counts(counts, source.item_schema, key)
        turns = partial(bounding.turns, key)
        loaded = SparkContributions(
            self, source, WorkerKey.of(key), most, turns=turns, public=public
        )
        try:
            with progress.bar("laying out by user", 1, unit="step") as bar:
                loaded.lay_out()
                bar(1)
        except BaseException:
            loaded.close()
            raise
        return loaded


class SparkContributions(Contributions):
    """The distinct pairs as a cached Spark table of chunks.

    Weights are a Spark table of sums that meet by item, and run when verdicts are asked for.
    """

    def __init__(
        self,
        engine: SparkEngine,
        source: Source,
        key: WorkerKey,
        most: int | None,
        *,
        turns: Turns,
        public: PublicCounts | None,
    ) -> None:
        self._engine = engine
        self._most = most
        self._source = source
        self._key = key
        self._turns = turns
        self._public = public
        frame, self._rows = _frame_of(source, engine.master)
        self._frame = in_own_session(frame)
        self._spark = frame.sparkSession
        self._held: list[DataFrame] = []
        self._found: list[Blocks] = []
        self._removed = BlockSet.of(NO_BLOCKS)
        self._hopeless: Outcome | None = None
        self._dropped: DataFrame | None = None
        self._chunks: Held | None = None
        self._judged: Held | None = None
        self._stale: list[Held] = []
        self._seen = False
        self._left: int | None = None

    def lay_out(self) -> None:
        """Read the source: one exchange by user."""
        self._lay_out(self._frame, Encode(self._rows, self._key, self._labels, self._most))

    def weigh(self, max_items: int, step_bits: int = UNIT_BITS) -> DataFrame:
        """Return the sums of each item: partial ones per chunk, then one exchange by item."""
        table = self._thinned()
        weigh = Weigh(self._removed, max_items, step_bits, self._labels)
        return self._met(table.mapInArrow(weigh, parcels.SCHEMA))

    def spread(
        self,
        split: Split,
        max_items: int,
        weights: DataFrame | None = None,
        signal: Signal | None = None,
    ) -> DataFrame:
        """Return the sums of what users give by `split`; signals travel by broadcast."""
        table, told = self._thinned(), Told.nothing()
        if weights is not None and signal is not None:
            with explained():
                told = Told.of(weights.mapInArrow(Tell(signal), spreading.SIGNALS).toArrow())
        give = Give(split, self._removed, told, max_items, self._labels)
        return self._met(table.mapInArrow(give, parcels.SCHEMA))

    def settle(self, seats: int, spare: int, laps: int, max_items: int) -> DataFrame:
        """Return the sums of seated users: workers make lists, and the driver settles them."""
        holders, order = self.spread(one_each, max_items), Order(self._key, self._public)
        with explained():
            told = holders.mapInArrow(Tell(Contested(seats)), spreading.SIGNALS).toArrow()
        desks, contested = order.numbered(Told.of(told))
        seating = Seating(seats, spare, laps, max_items)
        make = ListUp(order, self._removed, contested, seating, self._labels)
        made = self._hold(self._thinned().mapInArrow(make, settling.SCHEMA))
        self._stale.append(made)
        lists = Collected.of(self._lists(made.table), self._key)
        settled = lists.settled(desks, self._turns, seating)
        sums = self._spark.createDataFrame(pa.Table.from_batches([to_batch(self._labels, settled)]))
        votes = made.table.where(f"kind = {VOTES}").select("bucket", "parcel")
        return self._met(votes.union(sums))

    def _lists(self, made: DataFrame) -> Any:
        """Bring the users' lists to the driver, if they are not too long for it."""
        parcels = made.where(f"kind = {LISTS}")
        with explained():
            size = parcels.selectExpr("sum(length(parcel))").first()
            if size is not None and (size[0] or 0) > self._engine.collect_bytes:
                raise UsageError(
                    f"users' lists take more than collect_bytes={self._engine.collect_bytes}: "
                    "give SparkEngine(collect_bytes=...) as much as the driver can hold, or choose "
                    "another mechanism, such as 'auto'"
                )
            return parcels.select("parcel").toArrow().column("parcel")

    def _met(self, sums: DataFrame) -> DataFrame:
        """Let partial sums meet by item: one exchange."""
        if self._judged is not None:
            # Evidence meets the weights in their own exchange, and takes none of its own.
            kept = self._judged.table.where(f"kind = {KEPT}")
            sums = sums.union(kept.select("bucket", "parcel"))
        return sums.repartition("bucket")

    def decide(self, weights: DataFrame, decide: Decide) -> Blocks:
        """Run the round, and return the blocks of the items with a yes."""
        judged = weights.mapInArrow(Judge(decide), verdicts.SCHEMA)
        self._show(judged)
        return self._outcome(judged).released

    def decide_on_evidence(
        self, weights: DataFrame, decide: DecideOnEvidence
    ) -> tuple[Blocks, Outcome]:
        """Run the round; return the blocks to release, and where to find those to drop."""
        old = self._judged
        judge = JudgeEvidence(decide, self._labels)
        self._judged = self._hold(weights.mapInArrow(judge, verdicts.SCHEMA))
        # Those to drop come along where they are sure to be few enough: a job less.
        few = self._left is not None and self._left <= self._engine.broadcast_items
        kinds = f"{RELEASED}, {COUNTS}" + (f", {DROPPED}" if few else "")
        outcome = self._outcome(self._judged.table.where(f"kind IN ({kinds})"))
        self._left = outcome.kept
        if old is not None:
            self._let_go(old)
        return outcome.released, outcome

    def remove(self, released: Blocks) -> None:
        """Release what was found, and take it out of the users' sets."""
        self._found.append(released)
        self._take_out(released)

    def drop(self, outcome: Outcome) -> None:
        """Take items out of the users' sets without releasing them, if another round follows."""
        self._hopeless = outcome

    def _drop(self, outcome: Outcome) -> None:
        """Ship the items that leave, or those that stay: the lesser part."""
        assert self._judged is not None
        most, table = self._engine.broadcast_items, self._judged.table
        gone = len(self._removed) + outcome.dropped
        # Where users' sets are cut, every item in them has been judged.
        if self._most is not None and outcome.kept <= min(gone, most):
            self._keep_only(self._blocks(table, KEPT))
        elif gone <= most:
            here = len(outcome.hopeless) == outcome.dropped
            self._take_out(outcome.hopeless if here else self._blocks(table, DROPPED))
        else:
            dropped = table.where(f"kind = {DROPPED}")
            self._dropped = dropped.mapInArrow(verdicts.block_rows, verdicts.BLOCKS)

    def _take_out(self, blocks: Blocks) -> None:
        """Let items leave with the next round's pass."""
        self._removed = BlockSet.of(np.concatenate((self._removed.blocks, blocks)))

    def _keep_only(self, blocks: Blocks) -> None:
        """Make the chunks smaller, in the next round's pass: most of their items are gone."""
        assert self._chunks is not None
        self._stale.append(self._chunks)
        only = KeepOnly(BlockSet.of(blocks))
        self._chunks = self._hold(self._chunks.table.mapInArrow(only, chunks.SCHEMA))
        self._removed = BlockSet.of(NO_BLOCKS)

    def released(self) -> pa.Table:
        """Return the items found so far."""
        schema = self._source.item_schema
        blocks = np.concatenate([NO_BLOCKS, *self._found])
        within, hashed = split(blocks, schema)
        tables = []
        if len(within):
            tables.append([unblocked(within, schema.field(0).type)])
        if len(hashed):
            tables.append(self._looked_up(hashed))
        if not tables:
            tables.append([pa.array([], plain_type(kind)) for kind in schema.types])
        columns = [pa.concat_arrays(parts) for parts in zip(*tables, strict=True)]
        return pa.Table.from_arrays(columns, names=schema.names)

    def close(self) -> None:
        """Free what Spark holds for this run."""
        for frame in self._held:
            frame.unpersist()
        self._held.clear()

    @cached_property
    def _labels(self) -> Any:
        return bucket_labels(partitions(self._frame.sparkSession))

    def _lay_out(self, frame: DataFrame, encode: Callable[[Any], Any]) -> None:
        moved = frame.mapInArrow(encode, parcels.SCHEMA).repartition("bucket")
        chunked = moved.mapInArrow(LayOut(self._key, self._most), chunks.SCHEMA)
        self._chunks = self._hold(chunked, at_once=True)

    def _thinned(self) -> DataFrame:
        """Return the chunks, thinned out by a join where more items left than workers are told."""
        if self._hopeless is not None:
            self._drop(self._hopeless)
            self._hopeless = None
        assert self._chunks is not None
        if self._dropped is None and len(self._removed) <= self._engine.broadcast_items:
            return self._chunks.table
        words = self._removed.blocks.T.view(np.int64)
        gone = self._spark.createDataFrame(pa.table({"low": words[0], "high": words[1]}))
        if self._dropped is not None:
            gone = gone.union(self._dropped)
        old = self._chunks
        pairs = old.table.mapInArrow(unchunked, parcels.PAIRS)
        left = pairs.join(gone, ["low", "high"], "left_anti")
        self._lay_out(left, EncodeAgain(self._key, self._labels))
        self._let_go(old)
        self._removed, self._dropped = BlockSet.of(NO_BLOCKS), None
        return self._chunks.table

    def _looked_up(self, blocks: Blocks) -> list[pa.Array]:
        look_up = LookUp(self._rows, self._key, BlockSet.of(blocks), self._labels)
        moved = self._frame.mapInArrow(look_up, parcels.SCHEMA).repartition("bucket")
        with explained():
            parts = moved.mapInArrow(once, parcels.SCHEMA).toArrow().column("parcel")
        batches = [batch for part in parts for batch in pa.ipc.open_stream(part.as_buffer())]
        if sum(batch.num_rows for batch in batches) != len(blocks):
            label = self._source.feed.label
            raise InputError(f"{label} changed while it was read: persist it first")
        kinds = [plain_type(kind) for kind in self._source.item_schema.types]
        columns = pa.Table.from_batches(batches).combine_chunks().columns[2:]
        return [column.combine_chunks().cast(k) for column, k in zip(columns, kinds, strict=True)]

    def _outcome(self, judged: DataFrame) -> Outcome:
        """Run a round and read its outcome, once nothing of earlier rounds' is needed."""
        with explained():
            outcome = Outcome.of(judged.toArrow())
        for table in self._stale:
            self._let_go(table)
        self._stale.clear()
        if not self._seen and not outcome.items:
            self._complain()
        self._seen = True
        return outcome

    def _blocks(self, judged: DataFrame, kind: int) -> Blocks:
        with explained():
            rows = judged.where(f"kind = {kind}").select("parcel").toArrow()
        return blocks_of(rows.column("parcel"))

    def _complain(self) -> None:
        """Say why there is not one item."""
        with explained():
            empty = self._frame.isEmpty()
        label = self._source.feed.label
        raise InputError(
            f"no rows in {label}"
            if empty
            else f"no rows are left of {label}: each has a null or an empty list"
        )

    def _hold(self, frame: DataFrame, *, at_once: bool = False) -> "Held":
        """Keep a table in Spark's cache, which is filled at once or by what first reads it."""
        self._show(frame)
        self._held.append(frame.persist())
        with explained():
            return Held(frame, without_past(frame, at_once=at_once))

    def _let_go(self, held: "Held") -> None:
        self._held.remove(held.frame)
        held.frame.unpersist()

    def _show(self, frame: DataFrame) -> None:
        if self._engine.explain:
            with redirect_stdout(sys.stderr):
                frame.explain("formatted")


@dataclass(frozen=True)
class Held:
    """A table in Spark's cache, and a plain scan of it."""

    frame: DataFrame
    table: DataFrame


def _frame_of(source: Source, master: str | None) -> tuple[DataFrame, Rows]:
    """Return the source as a Spark table, and how workers read it."""
    feed = source.feed
    if feed.frame is not None:
        return feed.frame, Rows(feed.label, feed.schema, source.nulls, packed=False)
    spark = find_session(master)
    # Spark has no type for some of Arrow's: batches travel as they are, in parcels.
    # Dictionaries do not: those of several batches may not fit together.
    rows = [[decoded(column) for column in batch.columns] for batch in source.batches()]
    schema = pa.schema([(str(n), column.type) for n, column in enumerate(rows[0])])
    cargo = [packed(pa.RecordBatch.from_arrays(columns, schema=schema)) for columns in rows]
    table = pa.table({"parcel": pa.array(cargo, pa.binary())})
    return spark.createDataFrame(table), Rows(feed.label, schema, source.nulls, packed=True)
