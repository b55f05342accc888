"""What engines owe to the argument: privacy/README.md, "Duties of an engine".

The memory engine and the reference engine are held against what the duties say, and against each
other, release for release.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dp_sips import MemoryEngine, plan, select_partitions
from dp_sips.engines.encoding import table_blocks
from dp_sips.engines.reference import ReferenceEngine
from dp_sips.engines.spark.deciding import KEPT, DecideItemsOnEvidence
from dp_sips.engines.spark.sums import Sums, add_up
from dp_sips.engines.spark.wire import bucket_labels, payloads_of
from dp_sips.privacy.bounding import Bounds
from dp_sips.privacy.noise import Key
from dp_sips.progress import Progress
from dp_sips.sources import open_source

_UNIT = 1 << 30
_QUICK = ("cumulative", "sips", "mad2r", "dpsu", "policy-laplace", "gw", "matching", "single")
"""Mechanisms that use everything of an engine; plans of the others take longer, or add nothing."""

_ENGINES: tuple[Any, ...] = (ReferenceEngine(), MemoryEngine(threads=2))


def loaded(engine: Any, pairs: list[tuple[str, int]], bounds: Bounds) -> Any:
    """Load pairs with a test key."""
    source = open_source(pairs_table(pairs), user="u", item="i", nulls="error")
    return engine.load(source, bounds, Key.for_tests(2), Progress(show=False))


def pairs_table(pairs: list[tuple[str, int]]) -> Any:
    users, items = [user for user, _ in pairs], [item for _, item in pairs]
    return pa.table({"u": pa.array(users, pa.string()), "i": pa.array(items, pa.int64())})


def weights_of(contributions: Any, weights: Any) -> dict[int, int]:
    """Return the weight of each item that has one, by its number."""
    found: dict[int, int] = {}

    def note(blocks: Any, column: Any) -> Any:
        found.update((int(b[0]), int(w)) for b, w in zip(blocks, column, strict=True) if w)
        return column > 0

    contributions.decide(weights, note)
    return found


def one_user_weighs_1() -> None:
    """weigh: at most Δ0 items of a user count, with ⌊2³⁰/√k⌋ each; repeated rows count once."""
    for engine in _ENGINES:
        for items, most in ((1, 5), (4, 5), (5, 5), (40, 5), (7, 1)):
            pairs = [("ann", item) for item in range(items)] * 3
            contributions = loaded(engine, pairs, Bounds(most))
            found = weights_of(contributions, contributions.weigh(most))
            contributions.close()
            assert len(found) == min(items, most)
            assert set(found.values()) == {math.isqrt(_UNIT**2 // len(found))}
            assert sum(weight**2 for weight in found.values()) <= _UNIT**2


def repeated_rows_count_once() -> None:
    """Rows of several users, in any order and many times over, weigh as if they were there once."""
    rows = [(user, item) for user in ("ann", "bob", "cyd") for item in range(4)]
    for engine in _ENGINES:
        found = []
        for pairs in (
            rows,
            rows * 3,
            sorted(rows * 3, key=lambda row: row[::-1]),
            rows[::-1] + rows,
        ):
            contributions = loaded(engine, pairs, Bounds(10))
            found.append(weights_of(contributions, contributions.weigh(10)))
            contributions.close()
        assert found == [dict.fromkeys(range(4), 3 * _UNIT // 2)] * 4


def cut_items_are_never_released() -> None:
    """What everybody's cut left out has no weight: no luck releases it, in any round.

    Thresholds and drop levels far below zero release all that has weight.
    """
    pairs = [("ann", item) for item in range(40)]
    for engine in _ENGINES:
        for name in ("mad2r", "cumulative", "mad", "weighted-gaussian"):
            made = plan(name, epsilon=1.0, delta=1e-6, max_items=5)
            contributions = loaded(engine, pairs, Bounds(5, once=True))
            for index, step in enumerate(made.rounds):
                lower: dict[str, Any] = {"threshold": -1e6}
                lower |= {"drop": -1e7} if getattr(step, "drop", None) is not None else {}
                replace(step, **lower).run(contributions, Key.for_tests(1).noise_of_round(index))
            assert contributions.released().num_rows == 5, name
            contributions.close()


def found_items_leave() -> None:
    """remove: what is released has no weight any more, and the next items of a user move up."""
    for engine in _ENGINES:
        contributions = loaded(engine, [("ann", item) for item in range(12)], Bounds(5))
        seen: set[int] = set()
        for left in (5, 5, 2, 0):
            weights = contributions.weigh(5)
            found = weights_of(contributions, weights)
            assert len(found) == left
            assert not seen & set(found)
            seen |= set(found)
            contributions.remove(contributions.decide(weights, lambda _, column: column > 0))
        assert sorted(contributions.released()["i"].to_pylist()) == list(range(12))
        contributions.close()


def sets_are_cut_once() -> None:
    """Bounds(once=True): what was cut off never comes back, and never has weight."""
    for engine in _ENGINES:
        contributions = loaded(engine, [("ann", item) for item in range(12)], Bounds(5, once=True))
        weights = contributions.weigh(5)
        assert len(weights_of(contributions, weights)) == 5
        contributions.remove(contributions.decide(weights, lambda _, column: column > 0))
        assert not weights_of(contributions, contributions.weigh(5))
        contributions.close()


def evidence_is_kept() -> None:
    """decide_on_evidence: a round sees what the last one learnt, also where a block was cleared.

    Evidence is handed back as it was; items with a claim of 0 leave the sets.
    """
    for engine in _ENGINES:
        contributions = loaded(engine, [("ann", item) for item in range(6)], Bounds(6, once=True))
        seen: list[dict[int, float]] = []

        def judge(blocks: Any, weights: Any, evidence: Any, seen: Any = seen) -> Any:
            numbers = blocks[:, 0].astype(np.int64)
            held = np.flatnonzero(weights)
            seen[-1].update((int(numbers[n]), float(evidence[n])) for n in held)
            claims = np.where(numbers == 0, 0, 16).astype(np.uint8)
            return evidence + numbers, np.zeros(len(numbers), dtype=np.bool_), claims

        for _ in range(3):
            seen.append({})
            weights = contributions.weigh_by_claim(12)
            contributions.remove(contributions.decide_on_evidence(weights, judge))
        contributions.close()
        assert seen == [
            dict.fromkeys(range(6), 0.0),
            {n: float(n) for n in range(1, 6)},
            {n: 2.0 * n for n in range(1, 6)},
        ]


def retries_see_the_same_evidence() -> None:
    """Spark's pass over evidence: a task that runs again gives the same verdicts and evidence."""
    blocks = np.stack((np.arange(50, dtype=np.uint64), np.full(50, 9, np.uint64)), axis=1)
    evidence = np.random.default_rng(1).normal(0, 5, 50)
    labels = bucket_labels(4)
    rows = [
        Sums.of_weights(blocks, np.arange(1, 51, dtype=np.uint64)).to_batch(labels),
        Sums.of_evidence(blocks, evidence).to_batch(labels),
    ]

    def judge(blocks: Any, weights: Any, before: Any) -> Any:
        del blocks
        after = before + weights
        return after, after > 30, np.where(after > 5, 16, 0).astype(np.uint8)

    task = DecideItemsOnEvidence(judge, labels)
    for _ in range(3):
        found = pa.Table.from_batches(list(task(rows)))
        kept = found.filter(pc.equal(found["kind"], KEPT)).to_batches()
        after = add_up(payloads_of(kept))
        expected = evidence + np.arange(1, 51)
        numbers = after.blocks[:, 0].astype(np.int64)
        assert sorted(numbers) == np.flatnonzero((expected > 5) & (expected <= 30)).tolist()
        assert np.array_equal(after.evidence, expected[numbers])


def counts_of_users() -> None:
    """count: a user adds 1 to at most max_items of the keys, and is one of the others or is not."""
    pairs = [("ann", item) for item in range(9)] * 2 + [("bob", 3), ("cyd", 77)]
    key = Key.for_tests(2)
    keys = table_blocks(pa.table({"i": pa.array(range(8), pa.int64())}), key)
    for engine in _ENGINES:
        for most in (1, 3, 20):
            contributions = loaded(engine, pairs, Bounds(2, whole=True))
            counts, others = contributions.count(keys, most, others=True)
            contributions.close()
            assert others == 1
            assert int(counts.sum()) == min(most, 8) + 1
            assert int(counts.max()) <= 2


def _random_pairs(random: Any) -> list[tuple[str, int]]:
    """Return popular and rare items, with repeats."""
    users = random.integers(0, 60, 700)
    items = np.minimum(random.zipf(1.4, 700), 80)
    return [(f"user {u}", int(i)) for u, i in zip(users, items, strict=True)]


def engines_agree() -> None:
    """These mechanisms release the same items on both engines, with the same key."""
    random = np.random.default_rng(11)
    for trial in range(3):
        data = pairs_table(_random_pairs(random))
        for name in _QUICK:
            options: dict[str, Any] = {"max_items": 1 if name == "single" else 5}
            options |= {"epsilon": 4.0, "delta": 0.01, "seed": trial, "insecure_test": True}
            found = [
                select_partitions(
                    data, user="u", item="i", mechanism=name, engine=engine, **options
                ).items["i"].to_pylist()
                for engine in _ENGINES
            ]  # fmt: skip
            assert found[0] == found[1], name
            assert found[0], name


EVERY: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        one_user_weighs_1,
        repeated_rows_count_once,
        cut_items_are_never_released,
        found_items_leave,
        sets_are_cut_once,
        evidence_is_kept,
        retries_see_the_same_evidence,
        counts_of_users,
        engines_agree,
    )
}
