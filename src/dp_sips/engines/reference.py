"""The paper's pseudo-code in plain Python: slow, short, and the oracle for every other engine."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dp_sips.engines.base import Engine
from dp_sips.engines.block_sets import NO_BLOCKS
from dp_sips.engines.encoding import (
    PublicCounts,
    item_blocks,
    plain_type,
    public_counts,
    value_blocks,
)
from dp_sips.mechanisms.min_users import reduced
from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Blocks, Integers, Words
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.contributions import (
    MOST,
    Contributions,
    Decide,
    DecideOnEvidence,
    Favourites,
    Measure,
    Shares,
    Signal,
    Split,
)
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.privacy.weights import HALF, UNIT, UNIT_BITS, WHOLE_CLAIM, claimed_weight, weight
from dp_sips.progress import Progress
from dp_sips.sources import Source

Item = tuple[object, ...]
"""The values of the item columns."""


@dataclass(frozen=True)
class ReferenceEngine(Engine):
    """Runs a plan with dictionaries and lists, one user after the other."""

    takes_turns: ClassVar[bool] = True

    def load(
        self, source: Source, bounds: Bounds, key: Key, progress: Progress
    ) -> "ReferenceContributions":
        """Read a source whole; users stand in the order of their turns, items in bounding order."""
        del progress  # it is for small data
        public = public_counts(bounds.public_counts, source, key)
        ranks: dict[object, dict[Item, int]] = defaultdict(dict)
        times: dict[object, Counter[Item]] = defaultdict(Counter)
        blocks: dict[Item, Blocks] = {}
        words: dict[Item, int] = {}
        people: dict[object, Blocks] = {}
        for batch in source.batches():
            users, *columns = batch.columns
            user_blocks = value_blocks(users, key.scrambler(Purpose.LONG_USERS))
            scrambler = key.scrambler(Purpose.LONG_ITEMS)
            blocks_of_items = item_blocks(columns, scrambler)
            item_words = bounding.item_words(key, blocks_of_items)
            rank = bounding.rank(bounding.user_words(key, user_blocks), item_words)
            items = zip(*(column.to_pylist() for column in columns), strict=True)
            for row, (user, item) in enumerate(zip(users.to_pylist(), items, strict=True)):
                ranks[user][item] = int(rank[row])
                times[user][item] += 1
                blocks[item] = blocks_of_items[row]
                words[item] = int(item_words[row])
                people[user] = user_blocks[row]
        most = bounds.max_items if bounds.once else None
        known = {
            block.tobytes() for block in (NO_BLOCKS if bounds.without is None else bounds.without)
        }
        public_items = {item for item, block in blocks.items() if block.tobytes() in known}
        users = list(people)
        people_blocks = np.array(list(people.values()), dtype=np.uint64).reshape(-1, 2)
        order = bounding.turns(key, people_blocks)
        turns = [users[n] for n in order]
        user_words = bounding.user_words(key, people_blocks)[order]
        sets = [sorted(ranks[user], key=ranks[user].__getitem__) for user in turns]
        for counts in times.values():
            for item in public_items:
                counts.pop(item, None)
        repeats = [times[user] for user in turns]
        return ReferenceContributions(
            sets,
            repeats,
            blocks,
            source.item_schema,
            words=words,
            user_words=user_words,
            public=public,
            without=public_items,
            most=most,
        )


def _requests(
    items: list[Item], first: list[Item], turn: int, laps: int, *, spare: bool
) -> Iterator[Any]:
    """Yield the desks that a user asks, in order, each with the key by which it is seated."""
    for item in first:
        for at_spare in (False, True)[: 1 + spare]:
            yield (item, at_spare), (laps + spare, len(items) + 1, turn)
    for left in range(laps + spare, 0, -1):
        for place, item in enumerate(items):
            yield (item, spare and left == 1), (left, len(items) - place, turn)


def _nobody_loyal(users: int) -> Words:
    return np.full(users, np.iinfo(np.uint64).max)


class ReferenceContributions(Contributions):
    """The users' sets: W_1, …, W_N in the paper."""

    def __init__(
        self,
        sets: list[list[Item]],
        times: list[Counter[Item]],
        blocks: dict[Item, Blocks],
        schema: pa.Schema,
        *,
        words: dict[Item, int] | None = None,
        user_words: Words | None = None,
        public: PublicCounts | None = None,
        without: Iterable[Item] = (),
        most: int | None = None,
    ) -> None:
        self._whole = self._sets = sets
        self._discard(without)
        self._sets = [items[:most] for items in self._sets]
        self._times = times
        self._blocks = blocks
        self._words = words or {}
        self._user_words = user_words if user_words is not None else _nobody_loyal(len(sets))
        self._public = public
        self._schema = schema
        self._evidence: dict[Item, float] = defaultdict(float)
        self._claims: dict[Item, int] = defaultdict(lambda: WHOLE_CLAIM)
        self._released: list[Item] = []

    def weigh(
        self,
        max_items: int,
        step_bits: int = UNIT_BITS,
        gamma: Fraction = HALF,
        min_users: int = 1,
    ) -> dict[Item, int]:
        """Return the weighted histogram: Algorithm 2, lines 3–7."""
        given: dict[Item, list[int]] = defaultdict(list)
        for items in self._sets:
            counted = items[:max_items]
            for item in counted:
                given[item].append(weight(len(counted), step_bits, gamma))
        return {item: reduced(parts, min_users) for item, parts in given.items()}

    def weigh_by_claim(self, step_bits: int, min_users: int = 1) -> dict[Item, int]:
        """Return the sum of what users give to each item, by its claim."""
        given: dict[Item, list[int]] = defaultdict(list)
        for items in self._sets:
            total = sum(self._claims[item] for item in items)
            for item in items:
                given[item].append(claimed_weight(self._claims[item], total, step_bits))
        return {item: reduced(parts, min_users) for item, parts in given.items()}

    def spread(
        self,
        split: Split,
        max_items: int,
        weights: dict[Item, int] | None = None,
        signal: Signal | None = None,
    ) -> dict[Item, int]:
        """Return the sum of what users give, each by `split`: MAD's Algorithm."""
        signals = self._signals(weights, signal) if weights and signal else {}
        sums: dict[Item, int] = defaultdict(int)
        for items in self._sets:
            counted = items[:max_items]
            signalled = np.array([signals.get(item, 0) for item in counted], dtype=np.int64)
            given = split(np.array([len(counted)]), signalled).tolist()
            for item, weight_ in zip(counted, given, strict=True):
                sums[item] = min(sums[item] + weight_, MOST)
        return sums

    def _signals(self, weights: dict[Item, int], signal: Signal) -> dict[Item, int]:
        evidence = np.array([self._evidence[item] for item in weights])
        sums = np.array(list(weights.values()), dtype=np.uint64)
        return dict(zip(weights, signal(sums, evidence).tolist(), strict=True))

    def pay_shares(self, policy: Shares, max_items: int) -> dict[Item, int]:
        """Return what users pay, one after the other: the paper's section on greedy approaches."""
        paid: dict[Item, int] = defaultdict(int)
        for items in self._sets:
            counted = items[:max_items]
            payments = policy.payments([policy.target - paid[item] for item in counted])
            for item, payment in zip(counted, payments, strict=True):
                paid[item] += payment
        return {item: weight for item, weight in paid.items() if weight}

    def pay_favourites(self, policy: Favourites, max_items: int) -> dict[Item, int]:
        """Return how many users back each item, one user after the other: GW."""
        paid: dict[Item, int] = defaultdict(int)
        for items, times in zip(self._sets, self._times, strict=True):
            in_rows = policy.by_row and len(items) <= max_items
            listed = list(times) if in_rows else items[:max_items]
            below = [item for item in listed if paid[item] < policy.target]
            if below:
                count = times.__getitem__ if self._public is None else self._public_count
                most = max(map(count, below))
                alike = [item for item in below if count(item) == most]
                paid[alike[0] if policy.by_row else min(alike, key=self._word)] += 1
        return {item: weight for item, weight in paid.items() if weight}

    def settle(self, seats: int, spare: int, laps: int, max_items: int) -> dict[Item, int]:
        """Return how many users are seated at each item: deferred acceptance, as in matching.py."""
        places = self._places()
        counted = [items[:max_items] for items in self._sets]
        lists = [sorted(items, key=places.__getitem__) for items in counted]
        sizes = np.array([len(items) for items in counted], dtype=np.int64)
        loyal = bounding.loyal(self._user_words, sizes)
        first = [
            items[:1] if is_loyal else [] for items, is_loyal in zip(counted, loyal, strict=True)
        ]
        left = [
            _requests(items, mine, turn, laps, spare=spare > 0)
            for turn, (items, mine) in enumerate(zip(lists, first, strict=True))
        ]
        seated: dict[tuple[Item, bool], list[tuple[int, int, int]]] = defaultdict(list)
        standing = list(range(len(lists)))
        while standing:
            desk, key = next(left[standing.pop()], (None, (0, 0, 0)))
            if desk is None:
                continue
            seated[desk].append(key)
            if len(seated[desk]) > (spare if desk[1] else seats):
                worst = max(seated[desk])
                seated[desk].remove(worst)
                standing.append(worst[-1])
        users: dict[Item, int] = defaultdict(int)
        for (item, _), keys in seated.items():
            users[item] += len(keys) * UNIT
        return users

    def _places(self) -> dict[Item, int]:
        """Return the place of each item on all lists."""
        items = list(self._blocks)
        blocks = np.array(list(self._blocks.values()), dtype=np.uint64).reshape(-1, 2)
        counts = None if self._public is None else self._public(blocks)
        words = np.array([self._word(item) for item in items], dtype=np.uint64)
        order = bounding.in_precedence(bounding.precedence(blocks, words, counts), blocks)
        return {items[row]: place for place, row in enumerate(order)}

    def _word(self, item: Item) -> int:
        return self._words.get(item, 0)

    def _public_count(self, item: Item) -> int:
        assert self._public is not None
        return int(self._public(self._blocks[item].reshape(1, 2))[0])

    def decide(self, weights: dict[Item, int], decide: Decide) -> list[Item]:
        """Return the items with a yes: Algorithm 1, lines 3–7."""
        if not weights:
            return []
        blocks = np.array([self._blocks[item] for item in weights])
        verdicts = decide(blocks, np.array(list(weights.values()), dtype=np.uint64))
        return list(compress(weights, verdicts))

    def decide_on_evidence(self, weights: dict[Item, int], decide: DecideOnEvidence) -> list[Item]:
        """Return the items to release; keep the evidence and the claims of the others."""
        if not weights:
            return []
        blocks = np.array([self._blocks[item] for item in weights])
        so_far = np.array([self._evidence[item] for item in weights])
        sums = np.array(list(weights.values()), dtype=np.uint64)
        evidence, released, claims = decide(blocks, sums, so_far)
        self._evidence.update(zip(weights, evidence.tolist(), strict=True))
        self._claims.update(zip(weights, claims.tolist(), strict=True))
        self._discard(compress(weights, claims == 0))
        return list(compress(weights, released))

    def measure_users(self, measure: Measure) -> int:
        """Return the sum over the users' sets, by their sizes."""
        sizes = [len(items) for items in self._sets if items]
        return int(measure(np.array(sizes, dtype=np.int64)).sum())

    def measure_items(self, weights: dict[Item, int], measure: Measure) -> int:
        """Return the sum over the items, by their weights."""
        return int(measure(np.array(list(weights.values()), dtype=np.uint64)).sum())

    def count(self, keys: Blocks, max_items: int, *, others: bool) -> tuple[Integers, int]:
        """Return how many users count for each key, and how many hold none."""
        places = {key.tobytes(): place for place, key in enumerate(keys)}
        counts, none = np.zeros(len(keys), dtype=np.int64), 0
        for items in self._whole:
            found = [places.get(self._blocks[item].tobytes()) for item in items]
            held = [place for place in found if place is not None]
            counts[held[:max_items]] += 1
            none += not held
        return counts, none if others else 0

    def remove(self, verdicts: list[Item]) -> None:
        """Remove found items from the users' sets: Algorithm 3, lines 8–10."""
        self._discard(verdicts)
        self._released += verdicts

    def _discard(self, items: Iterable[Item]) -> None:
        """Take items out of the users' sets."""
        gone = set(items)
        self._sets = [[item for item in items if item not in gone] for items in self._sets]

    def released(self) -> pa.Table:
        """Return the items found so far."""
        columns = zip(*self._released, strict=True) if self._released else [[]] * len(self._schema)
        arrays = [
            pa.array(list(values), plain_type(field.type))
            for values, field in zip(columns, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=self._schema.names)
