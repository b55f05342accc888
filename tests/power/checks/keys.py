"""Which secret bits a run draws, and for what: no two purposes of the key meet.

A run of every mechanism is recorded: each secret that is derived from the key, and each block that
is scrambled with one, with the function that asked for it.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from dp_sips import MemoryEngine, count_users, select_partitions
from dp_sips.engines.reference import ReferenceEngine
from dp_sips.engines.spark.wire import WorkerKey
from dp_sips.mechanisms import MECHANISMS
from dp_sips.privacy.noise import Key, Purpose, Scrambler

_NAMES = {"dp_sips.privacy.blocks", "dp_sips.engines.memory.hashing"}
"""Modules that hash long values; all other users of bits are told apart by function."""

_EMPTY = bytes(16)
"""The block of rooms in the memory engine's table that no item has; they have no weight."""

_VERDICTS = {
    "decide",
    "decide_with_laplace",
    "decide_by_coin",
    "decide_on_evidence",
    "decide_and_note",
}
_USES = {
    Purpose.LONG_USERS: {"names"},
    Purpose.LONG_ITEMS: {"names"},
    Purpose.TURNS: {"turns"},
    Purpose.LOOK: {"noisy_integer"},
    Purpose.COUNTS: {"with_noise"},
}
"""What bits of a purpose may be for; those of a round's noise are for one kind of verdict."""


class Recorder:
    """What a run derives from its key, and does with it."""

    def __init__(self) -> None:
        self.purposes: dict[bytes, set[str]] = defaultdict(set)
        self.words: set[str] = set()
        self.uses: dict[bytes, set[str]] = defaultdict(set)
        self.drawn: dict[bytes, list[bytes]] = defaultdict(list)

    @contextmanager
    def listening(self) -> Iterator["Recorder"]:
        """Record all keys and scramblers of the product while this is open."""
        derive, word, scramble = Key._derive, Key.word, Scrambler.__call__

        def note_derived(key: Key, purpose: str) -> bytes:
            secret = derive(key, purpose)
            self.purposes[secret].add(str(purpose))
            return secret

        def note_word(key: Key, purpose: Purpose) -> int:
            self.words.add(str(purpose))
            return word(key, purpose)

        def note_scrambled(scrambler: Scrambler, blocks: Any) -> Any:
            self.uses[scrambler._key].add(_user_of_bits())
            self.drawn[scrambler._key] += [block.tobytes() for block in blocks]
            return scramble(scrambler, blocks)

        with (
            patch.object(Key, "_derive", note_derived),
            patch.object(Key, "word", note_word),
            patch.object(Scrambler, "__call__", note_scrambled),
        ):
            yield self

    def check(self, rounds: int) -> None:
        """Every secret has one purpose and one use, and noise is drawn once for each item."""
        for secret, purposes in self.purposes.items():
            assert len(purposes) == 1, f"one secret for {sorted(purposes)}"
            if secret in self.uses:
                (purpose,) = purposes
                assert purpose not in self.words
                self._check_use(purpose, self.uses[secret], self.drawn[secret])
        assert self.uses.keys() <= self.purposes.keys()
        noise = {p for (p,) in self.purposes.values() if p.startswith("noise of round ")}
        assert noise == {f"noise of round {index}" for index in range(rounds)}

    @staticmethod
    def _check_use(purpose: str, uses: set[str], drawn: list[bytes]) -> None:
        assert len(uses) == 1, f"bits for {purpose!r} are used by {sorted(uses)}"
        if purpose.startswith("noise of round "):
            assert uses <= _VERDICTS
        else:
            assert uses <= _USES[Purpose(purpose)]
        if uses not in ({"names"}, {"turns"}):  # these ask for the same again, for the same
            rooms = {_EMPTY} if purpose.startswith("noise of round ") else set()
            held = [block for block in drawn if block not in rooms]
            assert len(set(held)) == len(held), f"bits for {purpose!r} are drawn twice"


def _user_of_bits() -> str:
    frame = sys._getframe(2)
    if frame.f_globals["__name__"] in _NAMES:
        return "names"
    return frame.f_code.co_name


def _data() -> Any:
    """Return pairs with long names of users and items, popular and rare."""
    pairs = [(f"the user of number {u}", f"the item of number {u * k % 23}")
             for u in range(80) for k in range(1, 7)]  # fmt: skip
    return pa.table({"u": [user for user, _ in pairs], "i": [item for _, item in pairs]})


def _recorded(run: Callable[..., Any], engine: Any, mechanism: str, seed: int = 3) -> Recorder:
    """Run once with a test key, and check what was recorded."""
    recorder = Recorder()
    most = {"max_items": 1} if mechanism == "single" else {}
    with recorder.listening():
        result = run(
            _data(), user="u", item="i", epsilon=8.0, delta=0.01, mechanism=mechanism,
            engine=engine, seed=seed, insecure_test=True, **most if run is select_partitions else {}
        )  # fmt: skip
    recorder.check(len(result.plan.rounds))
    return recorder


def no_two_purposes_meet() -> None:
    """Selections by every mechanism, on both engines.

    Which bits are drawn has nothing to do with how fine the tables of release rules are.
    """
    with patch("dp_sips.mechanisms.release_rule.STEP_BITS", 5):
        for engine in (ReferenceEngine(), MemoryEngine(threads=2)):
            for name in ("auto", *MECHANISMS):
                _recorded(select_partitions, engine, name)


def counts_have_bits_of_their_own() -> None:
    """Counts after a selection, on both engines."""
    for engine in (ReferenceEngine(), MemoryEngine(threads=2)):
        for name in ("auto", "cumulative", "matching", "sips", "dpsu"):
            recorder = _recorded(count_users, engine, name)
            used = {p for (p,) in recorder.purposes.values()}
            assert Purpose.COUNTS in used


def workers_know_nothing_of_the_noise() -> None:
    """What Spark's workers are told to encode rows: bounding and long names, and no more."""
    recorder = Recorder()
    with recorder.listening():
        WorkerKey.of(Key.for_tests(1))
    assert {purpose for (purpose,) in recorder.purposes.values()} == {
        Purpose.BOUNDING_USERS,
        Purpose.BOUNDING_ITEMS,
        Purpose.LONG_USERS,
        Purpose.LONG_ITEMS,
    }


def runs_share_no_bits() -> None:
    """Two runs of one seed share all secrets, and of different or no seeds none."""
    first, same, other = (
        set(_recorded(select_partitions, MemoryEngine(threads=1), "sips", seed).purposes)
        for seed in (1, 1, 2)
    )
    assert first == same
    assert not first & other
    fresh = [Key.fresh() for _ in range(50)]
    derived = {key.noise_of_round(0)._key for key in fresh}
    assert len(derived) == len(fresh)
    assert not any(key.is_test for key in fresh)


EVERY: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        no_two_purposes_meet,
        counts_have_bits_of_their_own,
        workers_know_nothing_of_the_noise,
        runs_share_no_bits,
    )
}
