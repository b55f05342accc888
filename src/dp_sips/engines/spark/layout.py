"""From parcels to chunks: all pairs of a bucket in order, however many there are.

A task holds one run of pairs. Where its bucket has more, because of one user with very many items
above all, it writes sorted runs to disk and merges them, a piece of each at a time.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from dp_sips.engines.spark import chunks
from dp_sips.engines.spark.pairs import Pairs, before, distinct, from_bytes, length_of, user_starts
from dp_sips.engines.spark.worker_key import WorkerKey

RUN: Final = 1 << 21
"""Pairs that a task holds at a time: 80 MB."""


@dataclass(frozen=True, repr=False)
class LayOut:
    """The pass after the exchange: parcels of users become chunks."""

    key: WorkerKey
    most: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream chunks of `chunks.SCHEMA`."""
        pairs = in_order(self._runs(batches))
        if self.most is not None:
            pairs = _first_of_each(pairs, self.most)
        for chunk in chunks.cut(pairs):
            yield chunk.to_batch()

    def _runs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Pairs]:
        held, size = [], 0
        for batch in batches:
            for parcel in batch.column("parcel"):
                held.append(parcel.as_buffer())
                size += length_of(held[-1])
                if size >= RUN:
                    yield distinct(from_bytes(held, self.key))
                    held, size = [], 0
        if held:
            yield distinct(from_bytes(held, self.key))


def _first_of_each(pieces: Iterable[Pairs], most: int) -> Iterator[Pairs]:
    """Keep the first pairs of each user, which may go on from piece to piece."""
    last, seen = None, 0
    for piece in pieces:
        starts = user_starts(piece)
        sizes = np.diff(starts, append=piece.shape[1])
        places = np.arange(piece.shape[1]) - np.repeat(starts, sizes)
        if last is not None and (last == piece[:2, 0]).all():
            places[: sizes[0]] += seen
        last, seen = piece[:2, -1], int(places[-1]) + 1
        yield piece[:, places < most]


def in_order(runs: Iterable[Pairs]) -> Iterator[Pairs]:
    """Merge ordered runs into one ordered stream without repeats."""
    runs = iter(runs)
    first = list(islice(runs, 2))
    if len(first) < 2:  # noqa: PLR2004 (nearly always: nothing to merge, nothing on disk)
        yield from first
        return
    with tempfile.TemporaryDirectory(prefix="dp-sips-", dir=_scratch()) as folder:
        files = []
        for number, run in enumerate(chain(first, runs)):
            files.append(Path(folder, f"{number}.npy"))
            np.save(files[-1], run)
        yield from _merged([np.load(file, mmap_mode="r") for file in files])


def _scratch() -> str | None:
    """Return a folder that Spark cleans up when a worker dies; any, where this is no worker."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None


def _merged(runs: list[Pairs]) -> Iterator[Pairs]:
    """Take from each run what comes before the least last pair of all the pieces in sight."""
    size = max(RUN // len(runs), 1)
    places = [0] * len(runs)
    while left := [n for n, run in enumerate(runs) if places[n] < run.shape[1]]:
        pieces = {n: runs[n][:, places[n] : places[n] + size] for n in left}
        cut_short = [n for n in left if places[n] + pieces[n].shape[1] < runs[n].shape[1]]
        taken = {n: pieces[n].shape[1] for n in left}
        if cut_short:
            mark = min((pieces[n][:, -1] for n in cut_short), key=tuple)
            taken = {n: before(pieces[n], mark) + _starts_with(pieces[n], mark) for n in left}
        yield distinct(np.concatenate([pieces[n][:, : taken[n]] for n in left], axis=1))
        for n in left:
            places[n] += taken[n]


def _starts_with(piece: Pairs, mark: Pairs) -> int:
    """Return 1 where `mark` itself is in the piece, else 0."""
    at = before(piece, mark)
    return int(at < piece.shape[1] and bool((piece[:, at] == mark).all()))
