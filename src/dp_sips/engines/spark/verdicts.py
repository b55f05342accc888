"""The passes that ask for verdicts: sums in, blocks of items out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from dp_sips.engines.spark.chunks import blocks_of
from dp_sips.privacy.decide import Decide, DecideOnEvidence

BLOCKS: Final = "low long, high long"


@dataclass(frozen=True, repr=False)
class Judge:
    """Hands `decide` what it asks for, batch by batch; a retried task gets the same verdicts.

    Sensitive: `decide` holds the secret of the round's noise.
    """

    decide: Decide

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream the blocks of `BLOCKS` that have a yes."""
        for batch in batches:
            weights = np.asarray(batch.column("weight")).view(np.uint64)
            yes = self.decide(blocks_of(batch), weights)
            yield batch.select(["low", "high"]).filter(pa.array(yes))


JUDGED: Final = "low long, high long, evidence double, released boolean, dropped boolean"


@dataclass(frozen=True, repr=False)
class JudgeEvidence:
    """The same, with what earlier rounds learnt; an item without any has evidence zero.

    Sensitive: `decide` holds the secret of the round's noise.
    """

    decide: DecideOnEvidence

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stream verdicts of `JUDGED`."""
        for batch in batches:
            weights = np.asarray(batch.column("weight")).view(np.uint64)
            known = "evidence" in batch.schema.names
            so_far = np.asarray(batch.column("evidence")) if known else np.zeros(len(weights))
            judged = self.decide(blocks_of(batch), weights, so_far)
            columns = [*batch.select(["low", "high"]).columns, *map(pa.array, judged)]
            names = ["low", "high", "evidence", "released", "dropped"]
            yield pa.RecordBatch.from_arrays(columns, names=names)
