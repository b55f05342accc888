"""Which rows count at a level: those whose parts were released at the level before.

Guarantee: a row is kept or not by a fixed rule, given the released parts, which are public, and a
hash whose key has nothing to do with the noise. No other row matters.
"""

from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from dp_sips.engines.block_sets import BlockSet
from dp_sips.engines.encoding import item_blocks, table_blocks
from dp_sips.privacy.noise import Key, Purpose, Scrambler


@dataclass(frozen=True, repr=False)
class ReleasedPrefixes:
    """Keeps the rows whose first item columns, taken together, were released.

    Attributes:
        columns: How many item columns a prefix has.
        blocks: The released prefixes.
        scrambler: What hashes long values.
    """

    columns: int
    blocks: BlockSet
    scrambler: Scrambler

    @classmethod
    def of(cls, released: pa.Table, key: Key) -> Self:
        """Return the rule for prefixes that an earlier level released."""
        blocks = BlockSet.of(table_blocks(released, key))
        return cls(released.num_columns, blocks, key.scrambler(Purpose.LONG_ITEMS))

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that count; the first column is the user's."""
        found = item_blocks(batch.columns[1 : 1 + self.columns], self.scrambler)
        return batch.filter(pa.array(self.blocks.find(found) >= 0))


@dataclass(frozen=True, repr=False)
class ReleasedParts:
    """Keeps the rows with exactly `length` words, of which all but the last, and all but the first,
    were released; so, level by level, was every shorter part.

    Attributes:
        length: How many words, with single spaces between them.
        released: What the level before released; None at the first level.
    """  # noqa: D205

    length: int
    released: pa.Array | None

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that count; the second column has the words."""
        words = _plain(batch.column(1))
        long = pc.fill_null(
            pc.equal(pc.count_substring(words, " "), self.length - 1), self.is_first
        )
        batch, words = batch.filter(long), words.filter(long)
        if self.released is None:
            return batch
        for part in (r" [^ ]*$", r"^[^ ]* "):
            known = pc.is_in(pc.replace_substring_regex(words, part, ""), self.released)
            batch, words = batch.filter(known), words.filter(known)
        return batch

    @property
    def is_first(self) -> bool:
        """Whether single words count, and with them a null, where it is an item."""
        return self.length == 1


def _plain(words: pa.Array) -> pa.Array:
    return words.dictionary_decode() if pa.types.is_dictionary(words.type) else words
