"""The users' sets as flat arrays of numbers, and what rounds do with them."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.engines.encoding import PublicCounts
from dp_sips.engines.memory import active, folds, kernels, matching, ordering, settling
from dp_sips.engines.memory.allocator import return_to_usual
from dp_sips.engines.memory.counting import KeyCounter, places_of
from dp_sips.engines.memory.disk import Arrays
from dp_sips.engines.memory.histograms import Histograms
from dp_sips.engines.memory.min_users import NO_TABLE, Givers
from dp_sips.engines.memory.numbering import Column, Numbered, Numbers, SomeBlocks
from dp_sips.engines.memory.saving import numbers_of, sum_of_ranks
from dp_sips.engines.memory.sets import (
    UserSets,
    begin_of,
    begins_of,
    close_gaps,
    cuts,
    sizes_by_pieces,
)
from dp_sips.engines.memory.weighing import add_split, counted, pieces
from dp_sips.mechanisms.turns import SHAVE
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks, Bools, Claims, Integers, Weights
from dp_sips.privacy.contributions import (
    MOST,
    Contributions,
    Decide,
    DecideOnEvidence,
    Evidence,
    Favourites,
    Measure,
    Shares,
    Signal,
    Split,
)
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.privacy.weights import HALF, UNIT_BITS, WHOLE_CLAIM, weight_table

_PIECE: Final = 1 << 16
"""Items that are decided about at a time: enough for numpy, little enough for the cache."""

_NO_COUNTS: Final = np.empty(0, dtype=np.uint32)


class MemoryContributions(Contributions):
    """The distinct pairs, grouped by user, as numbers."""

    def __init__(
        self,
        sets: UserSets,
        users: Numbered,
        items: Column,
        *,
        whole: UserSets,
        schema: pa.Schema,
        key: Key,
        pool: ThreadPoolExecutor,
        threads: int,
        public: PublicCounts | None,
        arrays: Arrays,
        limit: int,
    ) -> None:
        self._sets, self._whole = sets, whole
        self._users = users
        self._items = items
        self._schema = schema
        self._key = key
        self._pool = pool
        self._public = public
        self._threads = threads
        self._arrays = arrays
        self._longest = max(int(sizes.max()) for sizes in sizes_by_pieces(sets.ends))
        self._ordered_above = self._longest  # the items of larger sets are in bounding order
        self._gone: Bools = arrays.zeros(items.size(), np.bool_)
        self._released: Bools = arrays.zeros(items.size(), np.bool_)
        self._stride = _PIECE  # how many items have about _PIECE active ones among them
        self._votes: matching.Votes | None = None  # a look and a round may ask for the same
        each = arrays.in_memory(min(threads, len(sets.ends)), items.size(), limit)
        self._histograms = Histograms(each, pool)
        self._share_out()

    @cached_property
    def _evidence(self) -> Evidence:
        evidence: Evidence = self._arrays.zeros(self._items.size(), np.float64)
        return evidence

    @cached_property
    def _claims(self) -> Claims:
        claims: Claims = self._arrays.zeros(self._items.size(), np.uint8)
        np.copyto(claims, WHOLE_CLAIM, where=~self._gone)
        return claims

    def order(self, max_items: int) -> None:
        """Put the items of users that have more than `max_items` in bounding order.

        Sorting takes long, so smaller sets are left as they are until a round counts fewer items.
        """
        if max_items >= self._ordered_above:
            return
        self._ordered_above = max_items
        sets = self._sets
        words = self._user_words(), self._item_words(self._histograms.first)

        def work(share: tuple[int, int]) -> None:
            kernels.order_items(sets.items, sets.counts, sets.ends, *words, max_items, *share)

        self._for_shares(work)

    def truncate(self, max_items: int, *, keep_whole: bool = False) -> None:
        """Keep only the first `max_items` items of each user; whole sets stay where asked for."""
        if max_items >= self._longest and not keep_whole:
            self._whole = self._sets
            return
        items, ends = self._sets.items, self._sets.ends
        if keep_whole and self._whole is self._sets:  # rounds write over what they have
            items = self._arrays.empty_like(items)
            items[:] = self._sets.items
        sizes = np.minimum(np.diff(ends, prepend=np.uint64(0)), np.uint64(max_items))
        new_ends = np.cumsum(sizes, dtype=np.uint64)
        for share in self._shares:
            kernels.cut_items(items, ends, new_ends, *share)
            self._forget(share, ends)
        self._sets = UserSets(items[: int(new_ends[-1])], new_ends, self._sets.counts)
        if not keep_whole:
            self._whole = self._sets
        self._share_out()

    def weigh(
        self,
        max_items: int,
        step_bits: int = UNIT_BITS,
        gamma: Fraction = HALF,
        min_users: int = 1,
    ) -> Weights:
        """Return the weight of each item, by its number."""
        self.order(max_items)
        most = min(max_items, self._longest)
        table = weight_table(most, step_bits, gamma)
        weights = self._added(table)
        if min_users > 1:
            ones = (~self._gone).view(np.uint8)
            self._reduce(weights, Givers(*self._flat(), ones, most, table, step_bits), min_users)
        return weights

    def _flat(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        return self._sets.items, self._sets.ends

    def _reduce(self, weights: Weights, givers: Givers, min_users: int) -> None:
        givers.reduce(
            weights, min_users, self._threads, lambda work, parts: list(self._pool.map(work, parts))
        )

    def _added(self, table: Weights) -> Weights:
        """Return the sums of what users give by a table; its length less one is max_items."""
        removed = np.packbits(self._gone, bitorder="little")

        def work(histogram: Weights, begin: int, share: tuple[int, int]) -> int:
            kernels.add_weights(
                self._sets.items, self._sets.ends, removed, table, histogram, *share
            )
            return begin

        # Shares are small, as some take longer than others.
        return self._sum_over_shares(cuts(self._sets.ends, 8 * len(self._shares)), work)[0]

    def weigh_by_claim(self, step_bits: int, min_users: int = 1) -> Weights:
        """Return the weight of each item, by its number; what was dropped leaves the memory."""
        items, ends, claims = self._sets.items, self._sets.ends, self._claims
        shares, begins = self._shares, begins_of(self._shares, ends)

        def work(histogram: Weights, begin: int, share: tuple[int, int]) -> int:
            return kernels.add_claimed_weights(
                items, ends, claims, step_bits, histogram, begin, *share
            )

        weights, stops = self._sum_over_shares(shares, work)
        left = close_gaps([items], ends, shares, begins, stops)
        self._sets = UserSets(items[:left], ends, self._sets.counts)
        if 2 * left < self._items.size():  # adding up histograms takes longer than few pairs do
            self._histograms.keep(1)
        self._share_out()
        if min_users > 1:
            givers = Givers(*self._flat(), claims, self._longest, NO_TABLE, step_bits)
            self._reduce(weights, givers, min_users)
        return weights

    def _sum_over_shares(
        self, shares: list[tuple[int, int]], work: Callable[[Weights, int, tuple[int, int]], int]
    ) -> tuple[Weights, list[int]]:
        """Return the sum of what shares of the users add to histograms.

        `work` is told where the pairs of a share begin; what it returns comes back, too.
        """
        ends, begins = self._sets.ends, begins_of(shares, self._sets.ends)
        stops = list(begins)

        def add(histogram: Weights, place: int) -> None:
            end = begin_of(shares[place][1], ends)  # before it moves
            stops[place] = work(histogram, begins[place], shares[place])
            self._arrays.forget(self._sets.items[begins[place] : end])

        return self._histograms.sum(range(len(shares)), add), stops

    def _share_out(self) -> None:
        """Cut the users into shares: one for each thread, or more where few are to be in memory."""
        self._votes = None
        pieces_each = self._arrays.pieces(len(self._sets.items))
        self._shares = cuts(self._sets.ends, len(self._histograms) * pieces_each)
        self._histograms.keep(len(self._shares))

    def spread(
        self,
        split: Split,
        max_items: int,
        weights: Weights | None = None,
        signal: Signal | None = None,
    ) -> Weights:
        """Return the sum of what users give by `split`, by the items' numbers."""
        self.order(max_items)
        if weights is None or signal is None:
            signals: NDArray[np.int64] = self._arrays.zeros(self._items.size(), np.int64)
        else:
            signals = self._signals(weights, signal)
        sets = self._sets

        def add(sums: Weights, piece: tuple[int, int]) -> None:
            items, sizes = counted(sets.items, sets.ends, self._gone, max_items, piece)
            add_split(split, items, sizes, signals, sums)

        return self._histograms.sum(pieces(sets.ends), add, MOST)

    def _signals(self, weights: Weights, signal: Signal) -> NDArray[np.int64]:
        signals: NDArray[np.int64] = self._arrays.zeros(len(weights), np.int64)

        def work(piece: slice) -> None:
            signals[piece] = signal(weights[piece], self._evidence[piece])

        self._by_pieces(work)
        return signals

    def pay_shares(self, policy: Shares, max_items: int) -> Weights:
        """Return what users paid to each item, by its number, one user after the other."""
        weights, budget = self._unpaid(), 1 << policy.unit_bits
        turns = self._turns(max_items)
        folds.pay_shares(turns, weights, policy.power, policy.target, budget, SHAVE)
        return weights

    def pay_favourites(self, policy: Favourites, max_items: int) -> Weights:
        """Return how many users backed each item, by its number, one user after the other."""
        weights, turns = self._unpaid(), self._turns(max_items)
        words = weights[:0] if policy.by_row else self._item_words(np.empty_like(weights))
        of_items = self._public is not None
        counts = self._sets.counts if self._public is None else self._counts_of(self._public)
        folds.pay_favourites(turns, weights, policy.target, counts, of_items, words)
        return weights

    def settle(self, seats: int, spare: int, laps: int, max_items: int) -> Weights:
        """Return how many users are seated at each item, by its number."""
        self.order(max_items)
        most = min(max_items, self._longest)
        seating = matching.Seating(seats, spare, laps, most)
        if self._votes is None or self._votes.seating != seating:
            desks, lists = self._lists(seating)
            self._arrays.visit_anywhere(lists.listed)
            self._arrays.forget(self._histograms.first)  # its words have served
            votes = matching.seated(lists, self._turns_of, seating, len(desks), self._pool)
            self._votes = matching.Votes(seating, desks, *votes)
        return self._votes.write(self._histograms.first)

    def _lists(self, seating: matching.Seating) -> tuple[NDArray[np.int64], matching.Lists]:
        """Return the contested items, and the users' lists of them."""
        holders = self._added(np.ones(seating.max_items + 1, dtype=np.uint64))
        desks = np.flatnonzero(holders > seating.seats)
        items = matching.Items(self._precedence(holders), self._items.blocks, self._key)
        sets = matching.Sets(self._sets.items, self._sets.ends, self._user_words(), self._arrays)
        return matching.listed(sets, items, desks, seating, self._for_shares)

    def _for_shares(self, work: Callable[[tuple[int, int]], None]) -> None:
        def then_forget(share: tuple[int, int]) -> None:
            work(share)
            self._forget(share, self._sets.ends)

        list(self._pool.map(then_forget, cuts(self._sets.ends, 8 * len(self._shares))))

    def _forget(self, share: tuple[int, int], ends: NDArray[np.uint64]) -> None:
        begin, end = begin_of(share[0], ends), begin_of(share[1], ends)
        self._arrays.forget(self._sets.items[begin:end])

    def _precedence(self, words: Weights) -> Weights:
        """Fill in the word of each item by which lists are ordered, by its number."""
        seed = self._key.word(Purpose.BOUNDING_ITEMS)

        def work(piece: slice) -> None:
            blocks = self._items.blocks(piece)
            counts = _NO_COUNTS if self._public is None else self._public(blocks)
            ordering.precedence(blocks, seed, counts, words[piece])
            words[piece][self._gone[piece]] = settling.GONE

        self._by_pieces(work)
        return words

    def _turns_of(self, users: NDArray[Any]) -> NDArray[np.uint32]:
        return bounding.turns(self._key, SomeBlocks(self._users, users))

    def _unpaid(self) -> Weights:
        weights = self._histograms.first
        weights.fill(0)
        return weights

    def _turns(self, max_items: int) -> folds.Turns:
        self.order(max_items)
        blocks = self._users.blocks(slice(len(self._sets.ends)))  # there is room for more
        order = bounding.turns(self._key, blocks)
        most = min(max_items, self._longest)
        return folds.Turns(self._sets.items, self._sets.ends, order, most)

    def decide(self, weights: Weights, decide: Decide) -> Bools:
        """Return the verdict on each item, by its number."""
        verdicts = np.zeros(len(weights), dtype=np.bool_)

        def work(piece: slice) -> None:
            # A slice is faster than a choice, unless most items have no weight.
            rows: Any = piece
            if 2 * np.count_nonzero(weights[piece]) <= _PIECE:
                rows = np.flatnonzero(weights[piece]) + piece.start
            verdicts[rows] = decide(self._items.blocks(rows), weights[rows])

        self._by_pieces(work)
        return verdicts

    def decide_on_evidence(self, weights: Weights, decide: DecideOnEvidence) -> Bools:
        """Return what to release, by number; evidence and claims of the rest are kept."""
        released = np.zeros(len(weights), dtype=np.bool_)
        left: list[int] = []  # appending is safe from any thread
        self._votes = None
        is_new, evidence = "_evidence" not in self.__dict__, self._evidence

        def work(piece: slice) -> None:
            if is_new:  # see `Growing.touched_upto`
                evidence[piece] = 0
            numbers = self._active(piece)
            known = np.empty(len(numbers), dtype=np.uint64), np.empty(len(numbers))
            active.gather(numbers, weights, evidence, *known)
            # A slice is faster than a choice.
            rows: Any = piece if len(numbers) == len(weights[piece]) else numbers
            found, yes, claims = decide(self._items.blocks(rows), *known)
            kept = evidence, released.view(np.uint8), self._claims, self._gone.view(np.uint8)
            active.scatter(numbers, found, yes.view(np.uint8), claims, *kept)
            left.append(int(np.count_nonzero(claims)))
            self._arrays.forget(evidence[piece])

        self._by_pieces(work, self._stride)
        self._stride = _PIECE * max(1, len(weights) // max(1, sum(left)))
        return released

    def _active(self, piece: slice) -> Numbers:
        """Return the numbers of a piece's items that are in somebody's set."""
        stop = min(piece.stop, len(self._gone))
        numbers = np.empty(stop - piece.start + 1, dtype=np.uint32)
        count = active.pick(self._gone.view(np.uint8), piece.start, stop, numbers)
        return numbers[:count]

    def measure_users(self, measure: Measure) -> int:
        """Return the sum over the users' sets, by their sizes."""
        users = np.zeros(self._longest + 1, dtype=np.int64)  # of each size
        for sizes in sizes_by_pieces(self._sets.ends):
            found = np.bincount(sizes)
            users[: len(found)] += found
        users[0] = 0
        present = np.flatnonzero(users)
        return int(measure(present) @ users[present])

    def measure_items(self, weights: Weights, measure: Measure) -> int:
        """Return the sum over the items that have weight."""
        sums: list[int] = []  # appending is safe from any thread

        def work(piece: slice) -> None:
            held = weights[piece]
            sums.append(int(measure(held[held > 0]).sum()))

        self._by_pieces(work)
        return sum(sums)

    def count(self, keys: Blocks, max_items: int, *, others: bool) -> tuple[Integers, int]:
        """Return how many users count for each key, and how many hold none."""
        counter = self._counter(keys, max_items)
        shares = [counter.pieces()[i :: self._threads] for i in range(self._threads)]
        histograms = [np.zeros(len(keys), dtype=np.uint64) for _ in shares]

        def work(sums: Weights, share: list[tuple[int, int]]) -> int:
            return sum(counter.add(piece, sums) for piece in share)

        none = sum(self._pool.map(work, histograms, shares))
        return np.sum(histograms, axis=0).astype(np.int64), none if others else 0

    def _counter(self, keys: Blocks, max_items: int) -> KeyCounter:
        """Find the keys among the items."""
        places: NDArray[np.int32] = self._arrays.zeros(self._items.size(), np.int32)
        find = places_of(keys)

        def work(piece: slice) -> None:
            places[piece] = find(self._items.blocks(piece))

        self._by_pieces(work, max(_PIECE, len(keys)))  # keys are hashed for each piece
        words = self._user_words(), bounding.item_words(self._key, keys)
        return KeyCounter(self._whole, places, *words, max_items)

    def remove(self, verdicts: Bools) -> None:
        """Release the items with a yes, and take them out of the users' sets."""
        # Few are: the rest of the memory need not be touched.
        numbers = np.flatnonzero(verdicts)
        self._votes = None
        self._released[numbers] = self._gone[numbers] = True
        if "_claims" in self.__dict__:
            self._claims[numbers] = 0

    def fingerprint(self) -> int:
        """Return a keyed sum over the pairs, as they were loaded."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> int:
        words = self._user_words(), self._item_words(self._histograms.first)
        return sum_of_ranks(self._sets, *words, self._pool)

    def snapshot(self) -> dict[str, Any]:
        """Return the released items and, where evidence counts, all that are left with theirs."""
        state: dict[str, Any] = {"released": self._items.blocks(np.flatnonzero(self._released))}
        if "_claims" in self.__dict__:
            active = np.flatnonzero(~self._gone & self._items.used(slice(len(self._gone))))
            state["active"] = self._items.blocks(active)
            state["evidence"], state["claims"] = self._evidence[active], self._claims[active]
        return state

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Bring back what rounds have left; items are found by their blocks."""
        numbers = numbers_of(snapshot["released"], self._items, self._by_pieces)
        self._released[numbers] = self._gone[numbers] = True
        self._votes = None
        if "active" in snapshot:
            left = numbers_of(snapshot["active"], self._items, self._by_pieces)
            self._gone[:] = True
            self._gone[left] = False
            self._claims[left] = snapshot["claims"]
            self._evidence[left] = snapshot["evidence"]

    def close(self) -> None:
        """Free the threads and the memory that the plan used."""
        self._pool.shutdown()
        return_to_usual()

    def released(self) -> pa.Table:
        """Return the items that were released."""
        columns = self._items.values(np.flatnonzero(self._released))
        return pa.Table.from_arrays(columns, names=self._schema.names)

    def _user_words(self) -> Weights:
        words: Weights = np.zeros(len(self._sets.ends), dtype=np.uint64)
        return self._fill(words, self._users, Purpose.BOUNDING_USERS)

    def _item_words(self, words: Weights) -> Weights:
        return self._fill(words, self._items, Purpose.BOUNDING_ITEMS)

    def _fill(self, words: Weights, column: Numbered, purpose: Purpose) -> Weights:
        """Fill in the word of bounding of each user or item, by its number."""
        seed = self._key.word(purpose)

        def work(piece: slice) -> None:
            ordering.scrambled(column.blocks(piece), seed, words[piece])

        self._by_pieces(work, size=len(words))
        return words

    def _counts_of(self, public: PublicCounts) -> NDArray[np.uint32]:
        counts: NDArray[np.uint32] = self._arrays.zeros(self._items.size(), np.uint32)

        def work(piece: slice) -> None:
            counts[piece] = public(self._items.blocks(piece))

        self._by_pieces(work)
        return counts

    def _by_pieces(
        self, work: Callable[[slice], None], step: int = _PIECE, size: int | None = None
    ) -> None:
        """Work on pieces of all items, or of something else of this size, side by side."""
        starts = range(0, self._items.size() if size is None else size, step)
        list(self._pool.map(work, (slice(i, i + step) for i in starts)))
