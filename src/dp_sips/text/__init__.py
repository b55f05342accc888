"""Texts as items: `item=dp_sips.text.words("body")` takes a column of texts apart into its words.

Preprocessing is the paper's: URLs and symbols are removed, words are NLTK's word tokens, in lower
case. `ngrams` adds the sequences of words that DPSU extracts. A row's words stay with the row's
user, so neighbouring data sets are what they were. Needs the extra `dp-sips[text]`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dp_sips.errors import UsageError

__all__ = ["Shares", "TextItems", "ngrams", "words"]

Shares = bool | Sequence[float]
"""Whether there are levels: True for equal parts of the budget, or a share for each."""


@dataclass(frozen=True)
class TextItems:
    """The words of a column of texts, and sequences of up to `longest` of them.

    Public: all of it. `processes` changes how fast words come, never which or in what order.
    """

    column: str | None
    longest: int = 1
    processes: int | None = None
    levels: Shares = False
    tokenized: bool = False

    def __post_init__(self) -> None:
        _check_count("ngrams", self.longest)
        if self.tokenized and self.levels is False:
            raise UsageError("a column of n-grams is an item by its name: tokenized needs levels")
        if self.processes is not None:
            _check_count("processes", self.processes)


def words(column: str | None = None, *, processes: int | None = None) -> TextItems:
    """Return the item that is each word of a column; without a name, of plain Python texts.

    Args:
        column: The column of texts; the released items keep its name.
        processes: How many processes take texts apart; as many as there are cores by default.
    """
    return TextItems(column, 1, processes)


def ngrams(
    column: str | None,
    longest: int,
    *,
    levels: Shares = False,
    tokenized: bool = False,
    processes: int | None = None,
) -> TextItems:
    """Return the item that is each sequence of 1 to `longest` words of a text, in their order.

    Words that follow each other in one row, once URLs and symbols are gone, are joined by a space:
    no word has one. Where DPSU means sequences of exactly n words, keep those with n - 1 spaces.

    Args:
        column: The column of texts; the released items keep its name.
        longest: The most words of a sequence.
        levels: Whether to select words first, then pairs of released words, and so on: a sequence
            counts only if its parts were released. True for equal parts of the budget, or the
            levels' shares, as (1, 2, 2).
        tokenized: With `levels`: the column has the sequences themselves, as `write_tokens` writes
            them, one a row.
        processes: How many processes take texts apart; as many as there are cores by default.
    """
    return TextItems(column, longest, processes, levels, tokenized)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number of at least 1, got {value!r}")
