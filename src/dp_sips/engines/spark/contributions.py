"""The users' sets as a cached Spark table of chunks, and what rounds do with them."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from dp_sips.engines.block_sets import NO_BLOCKS, BlockSet
from dp_sips.engines.encoding import PublicCounts, plain_type
from dp_sips.engines.memory.matching import Seating
from dp_sips.engines.spark.chunks import ARRAYS, CHUNK_SCHEMA
from dp_sips.engines.spark.counting import NO_KEY, CountChunks, EncodeKeys, as_signal
from dp_sips.engines.spark.deciding import (
    BLOCK_SCHEMA,
    COUNTS,
    DROPPED,
    KEPT,
    LOWERED,
    RELEASED,
    VERDICT_SCHEMA,
    DecideItems,
    DecideItemsOnEvidence,
    RoundResult,
    explode_blocks,
    read_blocks,
)
from dp_sips.engines.spark.finishing import LastItems
from dp_sips.engines.spark.loading import (
    PAIR_SCHEMA,
    EncodePairs,
    EncodeRows,
    LayOutChunks,
    explode_chunks,
)
from dp_sips.engines.spark.min_users import ReduceParts
from dp_sips.engines.spark.reading import PartitionReader, without_users
from dp_sips.engines.spark.session import (
    cut_lineage,
    in_cloned_session,
    print_plan,
    shuffle_partitions,
    translated_errors,
)
from dp_sips.engines.spark.settling import (
    LIST_SCHEMA,
    LISTS,
    VOTES,
    Collected,
    Contested,
    ListUp,
    Order,
    Turns,
    one_each,
)
from dp_sips.engines.spark.sums import add_up
from dp_sips.engines.spark.values import (
    LookUpValues,
    decode_blocks,
    drop_repeated_values,
    read_values,
    split_hashed,
)
from dp_sips.engines.spark.weighing import (
    SIGNAL_SCHEMA,
    TOTAL_SCHEMA,
    MeasureItems,
    MeasureUsers,
    RetainItems,
    SignalItems,
    Signals,
    SpreadWeights,
    WeighByClaim,
    WeighChunks,
)
from dp_sips.engines.spark.wire import (
    SHUFFLE_SCHEMA,
    Labels,
    WorkerKey,
    bucket_labels,
    payloads_of,
)
from dp_sips.errors import InputError, UsageError
from dp_sips.privacy.arrays import Blocks, Integers, Weights
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.contributions import (
    Contributions,
    Decide,
    DecideOnEvidence,
    Measure,
    Signal,
    Split,
)
from dp_sips.privacy.weights import HALF, UNIT_BITS
from dp_sips.sources import Source

T = TypeVar("T")


@dataclass(frozen=True)
class CachedTable:
    """A persisted table, and a plain scan of it."""

    frame: DataFrame
    scan: DataFrame


class SparkContributions(Contributions):
    """The distinct pairs as a cached Spark table of chunks.

    Weights are a Spark table of partial sums, shuffled by item. It is lazy: `decide` runs it.
    """

    def __init__(
        self,
        frame: DataFrame,
        reader: PartitionReader,
        *,
        source: Source,
        bounds: Bounds,
        key: WorkerKey,
        turns: Turns,
        public: PublicCounts | None,
        broadcast_items: int,
        collect_bytes: int,
        driver_items: int,
        explain: bool,
    ) -> None:
        self._frame = in_cloned_session(frame)
        self._spark = frame.sparkSession
        self._reader = reader
        self._source = source
        self._key = key
        self._cut_to = bounds.max_items if bounds.once else None
        self._known = BlockSet.of(NO_BLOCKS if bounds.without is None else bounds.without)
        self._turns = turns
        self._public = public
        self._broadcast_items = broadcast_items
        self._collect_bytes = collect_bytes
        self._driver_items = driver_items
        self._explain = explain
        self._persisted: list[DataFrame] = []
        self._chunks: CachedTable | None = None
        self._verdicts: CachedTable | None = None
        self._stale: list[CachedTable] = []
        self._released: list[Blocks] = []
        self._removed = BlockSet.of(NO_BLOCKS)
        self._lowered = Signals.none()
        self._last_items: LastItems | None = None
        self._dropped: DataFrame | None = None
        self._to_drop: RoundResult | None = None
        self._kept_count: int | None = None

    @cached_property
    def _labels(self) -> Labels:
        return bucket_labels(shuffle_partitions(self._frame.sparkSession))

    def lay_out(self) -> None:
        """Read the source: one shuffle by user."""
        encode = EncodeRows(self._reader, self._key, self._labels, self._cut_to, self._known)
        self._shuffle_by_user(self._frame, encode)

    def _shuffle_by_user(self, frame: DataFrame, encode: Callable[[Any], Any]) -> None:
        shuffled = frame.mapInArrow(encode, SHUFFLE_SCHEMA).repartition("bucket")
        chunks = shuffled.mapInArrow(LayOutChunks(self._key, self._cut_to), CHUNK_SCHEMA)
        self._chunks = self._cache(chunks, eager=True)

    def gather(self, gatherer: Callable[[list[pa.RecordBatch]], T], most_bytes: int) -> T | None:
        """Bring the chunks to the driver, if they are not larger than this: two small jobs."""
        assert self._chunks is not None
        if not most_bytes or self._size_of(self._chunks.scan, *ARRAYS) > most_bytes:
            return None
        with translated_errors():
            return gatherer(self._chunks.scan.toArrow().to_batches())

    def weigh(
        self,
        max_items: int,
        step_bits: int = UNIT_BITS,
        gamma: Fraction = HALF,
        min_users: int = 1,
    ) -> DataFrame:
        """Return the weight of each item: partial sums by chunk, shuffled by item."""
        chunks, parts = self._current_chunks(), min_users > 1
        weigh = WeighChunks(self._removed, max_items, step_bits, self._labels, gamma, parts)
        return self._shuffle_by_item(chunks.mapInArrow(weigh, SHUFFLE_SCHEMA), min_users)

    def weigh_by_claim(self, step_bits: int, min_users: int = 1) -> DataFrame | Weights:
        """Return the weight of each item; claims travel by broadcast.

        Once few items are left, the driver has them, and their weights.
        """
        if self._to_drop is not None and self._to_drop.kept_count <= self._driver_items:
            self._last_items = self._collect_last_items(self._to_drop)
        if self._last_items is not None:
            return self._last_items.weigh_by_claim(step_bits, min_users)
        chunks, parts = self._current_chunks(), min_users > 1
        weigh = WeighByClaim(self._removed, self._lowered, step_bits, self._labels, parts)
        return self._shuffle_by_item(chunks.mapInArrow(weigh, SHUFFLE_SCHEMA), min_users)

    def spread(
        self,
        split: Split,
        max_items: int,
        weights: DataFrame | None = None,
        signal: Signal | None = None,
    ) -> DataFrame:
        """Return the sum of what users give by `split`; signals travel by broadcast."""
        chunks, signals = self._current_chunks(), Signals.none()
        if weights is not None and signal is not None:
            signals = self._signals(weights, signal)
        spread = SpreadWeights(split, self._removed, signals, max_items, self._labels)
        return self._shuffle_by_item(chunks.mapInArrow(spread, SHUFFLE_SCHEMA))

    def settle(self, seats: int, spare: int, laps: int, max_items: int) -> DataFrame:
        """Return the sums of seated users: workers make lists, and the driver settles them."""
        holders, order = self.spread(one_each, max_items), Order(self._key, self._public)
        with translated_errors():
            rows = holders.mapInArrow(SignalItems(Contested(seats)), SIGNAL_SCHEMA).toArrow()
        desks, contested = order.numbered(Signals.from_table(rows))
        seating = Seating(seats, spare, laps, max_items)
        make = ListUp(order, self._removed, contested, seating, self._labels)
        made = self._cache(self._current_chunks().mapInArrow(make, LIST_SCHEMA))
        self._stale.append(made)
        lists = Collected.of(self._collect_lists(made.scan), self._key)
        settled = lists.settled(desks, self._turns, seating).to_batch(self._labels)
        sums = self._spark.createDataFrame(pa.Table.from_batches([settled]))
        votes = made.scan.where(f"kind = {VOTES}").select("bucket", "payload")
        return self._shuffle_by_item(votes.union(sums))

    def _collect_lists(self, made: DataFrame) -> list[pa.RecordBatch]:
        """Bring the users' lists to the driver, if they are not too long for it."""
        lists = made.where(f"kind = {LISTS}")
        if self._size_of(lists, "payload") > self._collect_bytes:
            raise UsageError(
                f"users' lists take more than collect_bytes={self._collect_bytes}: give "
                "SparkEngine(collect_bytes=...) as much as the driver can hold, or choose "
                "another mechanism, such as 'cumulative'"
            )
        with translated_errors():
            batches: list[pa.RecordBatch] = lists.select("payload").toArrow().to_batches()
        return batches

    def _shuffle_by_item(self, sums: DataFrame, min_users: int = 1) -> DataFrame:
        """Shuffle partial sums by item, together with the evidence of earlier rounds."""
        if self._verdicts is not None:
            # In the same shuffle: evidence needs none of its own.
            evidence = self._verdicts.scan.where(f"kind = {KEPT}")
            sums = sums.union(evidence.select("bucket", "payload"))
        shuffled = sums.repartition("bucket")
        if min_users == 1:
            return shuffled
        return shuffled.mapInArrow(ReduceParts(min_users, self._labels), SHUFFLE_SCHEMA)

    def decide(self, weights: DataFrame, decide: Decide) -> Blocks:
        """Run the round, and return the blocks of the items with a yes."""
        verdicts = weights.mapInArrow(DecideItems(decide), VERDICT_SCHEMA)
        self._print_plan(verdicts)
        return self._run(verdicts).released

    def decide_on_evidence(self, weights: Any, decide: DecideOnEvidence) -> Blocks:
        """Run the round; return the blocks to release. The next round drops what is hopeless."""
        if self._last_items is not None:
            return self._last_items.decide_on_evidence(weights, decide)
        old = self._verdicts
        on_evidence = DecideItemsOnEvidence(decide, self._labels)
        self._verdicts = self._cache(weights.mapInArrow(on_evidence, VERDICT_SCHEMA))
        # Items to drop are collected in the same job where they cannot be too many to broadcast.
        few = self._kept_count is not None and self._kept_count <= self._broadcast_items
        kinds = f"{RELEASED}, {COUNTS}, {LOWERED}" + (f", {DROPPED}" if few else "")
        result = self._run(self._verdicts.scan.where(f"kind IN ({kinds})"))
        self._kept_count = result.kept_count
        if old is not None:
            self._uncache(old)
        self._to_drop, self._lowered = result, result.lowered
        return result.released

    def measure_users(self, measure: Measure) -> int:
        """Return the sum over the users' sets, by their sizes: one small job."""
        return self._total(self._current_chunks().mapInArrow(MeasureUsers(measure), TOTAL_SCHEMA))

    def measure_items(self, weights: DataFrame, measure: Measure) -> int:
        """Return the sum over the items, by their weights: one small job."""
        return self._total(weights.mapInArrow(MeasureItems(measure), TOTAL_SCHEMA))

    def count(self, keys: Blocks, max_items: int, *, others: bool) -> tuple[Integers, int]:
        """Return how many users count for each key, and how many hold none: the data, once more."""
        most = max_items + others
        known = BlockSet.of(keys)
        encode = EncodeKeys(self._reader, self._key, self._labels, known, most, others)
        shuffled = self._frame.mapInArrow(encode, SHUFFLE_SCHEMA).repartition("bucket")
        chunks = shuffled.mapInArrow(LayOutChunks(self._key, most), CHUNK_SCHEMA)
        count = CountChunks(max_items, others, self._labels)
        sums = chunks.mapInArrow(count, SHUFFLE_SCHEMA).repartition("bucket")
        found = self._signals(sums, as_signal)
        return found.look_up(keys), int(found.look_up(NO_KEY)[0]) if others else 0

    def _signals(self, sums: DataFrame, signal: Signal) -> Signals:
        """Add up partial sums, and bring the items' signals to the driver."""
        with translated_errors():
            rows = sums.mapInArrow(SignalItems(signal), SIGNAL_SCHEMA).toArrow()
        return Signals.from_table(rows)

    def _total(self, totals: DataFrame) -> int:
        with translated_errors():
            return sum(totals.toArrow().column("total").to_pylist())

    def remove(self, verdicts: Blocks) -> None:
        """Release these items, and take them out of the users' sets."""
        self._released.append(verdicts)
        self._broadcast_removal(verdicts)

    def released(self) -> pa.Table:
        """Return the items released so far."""
        columns = self.values_of(np.concatenate([NO_BLOCKS, *self._released]))
        return pa.Table.from_arrays(columns, names=self._source.item_schema.names)

    def values_of(self, blocks: Blocks) -> list[pa.Array]:
        """Return the values of released items, in any order; hashed ones are looked up."""
        schema = self._source.item_schema
        plain, hashed = split_hashed(blocks, schema)
        tables = [[pa.array([], plain_type(kind)) for kind in schema.types]]
        if len(plain):
            tables.append([decode_blocks(plain, schema.field(0).type)])
        if len(hashed):
            tables.append(self._look_up_values(hashed))
        return [pa.concat_arrays(parts) for parts in zip(*tables, strict=True)]

    def close(self) -> None:
        """Remove this run's tables from Spark's cache."""
        for frame in self._persisted:
            frame.unpersist()
        self._persisted.clear()

    def _current_chunks(self) -> DataFrame:
        """Return the chunks for the next pass, which leaves out the items of `_removed`.

        Where these are too many to broadcast, an anti-join takes them out of the chunks.
        """
        if self._to_drop is not None:
            self._drop_items(self._to_drop)
            self._to_drop = None
        assert self._chunks is not None
        if self._dropped is not None or len(self._removed) > self._broadcast_items:
            self._remove_by_join(self._chunks)
        return self._chunks.scan

    def _drop_items(self, result: RoundResult) -> None:
        """Broadcast the items that leave or those that stay, whichever are fewer; or join."""
        assert self._verdicts is not None
        gone = len(self._removed) + result.dropped_count
        # Where users' sets are cut, every item in them has been decided about.
        if self._cut_to is not None and result.kept_count <= min(gone, self._broadcast_items):
            self._retain_only(self._collect_blocks(self._verdicts.scan, KEPT))
        elif gone <= self._broadcast_items:
            collected = len(result.dropped) == result.dropped_count
            self._broadcast_removal(
                result.dropped if collected else self._collect_blocks(self._verdicts.scan, DROPPED)
            )
        else:
            dropped = self._verdicts.scan.where(f"kind = {DROPPED}")
            self._dropped = dropped.mapInArrow(explode_blocks, BLOCK_SCHEMA)

    def _collect_last_items(self, result: RoundResult) -> LastItems | None:
        """Collect the items that are kept, with their evidence, and the users' sets of them.

        Where these sets are too large for the driver, their chunks only become smaller.
        """
        assert self._verdicts is not None
        kept = self._verdicts.scan.where(f"kind = {KEPT}").select("payload")
        with translated_errors():
            items = add_up(payloads_of(kept.toArrow().to_batches()))
        self._retain_only(items.blocks)
        assert self._chunks is not None
        if self._size_of(self._chunks.scan, "items") > self._collect_bytes:
            return None
        self._to_drop = None
        with translated_errors():
            chunks = self._chunks.scan.toArrow().to_batches()
        return LastItems.from_batches(items, result.claims_of(items.blocks), chunks)

    @staticmethod
    def _size_of(table: DataFrame, *columns: str) -> int:
        """Return how many bytes columns of payloads have: one small job."""
        lengths = " + ".join(f"length({column})" for column in columns)
        with translated_errors():
            size = table.selectExpr(f"sum({lengths})").first()
        return int(size[0] or 0) if size else 0

    def _broadcast_removal(self, blocks: Blocks) -> None:
        """Remove items in the next round's pass, whose function Spark broadcasts."""
        self._removed = BlockSet.of(np.concatenate((self._removed.blocks, blocks)))

    def _retain_only(self, blocks: Blocks) -> None:
        """Make the chunks smaller, in the next round's pass: most of their items are gone."""
        assert self._chunks is not None
        self._stale.append(self._chunks)
        retain = RetainItems(BlockSet.of(blocks))
        self._chunks = self._cache(self._chunks.scan.mapInArrow(retain, CHUNK_SCHEMA))
        self._removed = BlockSet.of(NO_BLOCKS)

    def _remove_by_join(self, chunks: CachedTable) -> None:
        """Take items out of the chunks by an anti-join, and lay out the remaining pairs again."""
        words = self._removed.blocks.T.view(np.int64)
        gone = self._spark.createDataFrame(pa.table({"low": words[0], "high": words[1]}))
        if self._dropped is not None:
            gone = gone.union(self._dropped)
        pairs = chunks.scan.mapInArrow(explode_chunks, PAIR_SCHEMA)
        remaining = pairs.join(gone, ["low", "high"], "left_anti")
        self._shuffle_by_user(remaining, EncodePairs(self._key, self._labels))
        self._uncache(chunks)
        self._removed, self._dropped = BlockSet.of(NO_BLOCKS), None

    def _run(self, verdicts: DataFrame) -> RoundResult:
        """Run a round, after which stale tables are no longer needed."""
        with translated_errors():
            result = RoundResult.from_table(verdicts.toArrow())
        for table in self._stale:
            self._uncache(table)
        self._stale.clear()
        return result

    def _collect_blocks(self, verdicts: DataFrame, kind: int) -> Blocks:
        with translated_errors():
            rows = verdicts.where(f"kind = {kind}").select("payload").toArrow()
        return read_blocks(rows.to_batches())

    def _look_up_values(self, blocks: Blocks) -> list[pa.Array]:
        frame, reader = without_users(self._frame, self._reader)
        look_up = LookUpValues(reader, self._key, BlockSet.of(blocks), self._labels)
        shuffled = frame.mapInArrow(look_up, SHUFFLE_SCHEMA).repartition("bucket")
        with translated_errors():
            rows = shuffled.mapInArrow(drop_repeated_values, SHUFFLE_SCHEMA).toArrow()
        columns = read_values(rows.to_batches(), self._source.item_schema)
        if len(columns[0]) != len(blocks):
            label = self._source.feed.label
            raise InputError(f"{label} changed while it was read: persist it first")
        return columns

    def _cache(self, frame: DataFrame, *, eager: bool = False) -> CachedTable:
        """Persist a table; Spark fills its cache now if `eager`, else when it is first read."""
        self._print_plan(frame)
        self._persisted.append(frame.persist())
        with translated_errors():
            return CachedTable(frame, cut_lineage(frame, eager=eager))

    def _uncache(self, table: CachedTable) -> None:
        self._persisted.remove(table.frame)
        table.frame.unpersist()

    def _print_plan(self, frame: DataFrame) -> None:
        if self._explain:
            print_plan(frame)
