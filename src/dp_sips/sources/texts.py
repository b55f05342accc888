"""A feed of texts becomes a feed of their words."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Final

import pyarrow as pa

from dp_sips.errors import InputError, UsageError
from dp_sips.progress import Progress
from dp_sips.sources.base import Feed, Part, Source, reading
from dp_sips.sources.batches import ROWS, in_pieces
from dp_sips.sources.utf8 import Utf8Check
from dp_sips.sources.values import ANY_KIND
from dp_sips.text import TextItems
from dp_sips.text.workers import tokenize_all

_BYTES: Final = 1 << 20
"""Text that is taken apart at a time."""
_TEXTS: Final = (pa.string(), pa.large_string(), pa.string_view())


def tokenized(
    feed: Feed, types: Mapping[str, pa.DataType], words: TextItems, progress: Progress
) -> Feed:
    """Give each row a list of its words in place of its text; all that can be wrong is found here.

    Public: the types and names of the columns. Sensitive: every value, and the number of rows.
    """
    item = feed.schema.field(1)
    _check(feed, item.name, types.get(item.name, item.type))
    source = Source(feed, "group", {**types, item.name: pa.large_string()})
    kind = types.get(item.name, _word_type(item.type))
    schema = pa.schema([source.schema.field(0), (item.name, pa.list_(kind))])

    def read() -> Iterator[pa.RecordBatch]:
        with progress.bar("texts", feed.rows, unit="text") as bar:
            for batch in _taken_apart(source, words):
                bar(batch.num_rows)
                yield batch

    return Feed(feed.label, schema, (Part(feed.label, read),), feed.restore, once=feed.once)


def _check(feed: Feed, name: str, kind: pa.DataType) -> None:
    if find_spec("nltk") is None:
        raise UsageError("texts need nltk, which is not installed: pip install 'dp-sips[text]'")
    if feed.frame is not None:
        raise UsageError(
            f"Spark reads {feed.label}, and does not take texts apart: write the words to a file "
            "with dp-sips tokenize first, and give Spark that"
        )
    if kind not in (*_TEXTS, pa.null(), ANY_KIND):
        raise InputError(
            f"column {name!r} of {feed.label} has the type {kind}, and words are made of text: "
            "name a column of text, or cast this one"
        )


def _word_type(kind: pa.DataType) -> pa.DataType:
    return kind if kind in _TEXTS else pa.string()


def _taken_apart(source: Source, words: TextItems) -> Iterator[pa.RecordBatch]:
    """Pair each piece's users with their lists of words; few pieces are in memory at a time."""
    users: list[pa.Array] = []

    def texts() -> Iterator[pa.Array]:
        for own, piece in _pieces(source):
            users.append(own)
            yield piece

    for lists in tokenize_all(texts(), words.longest, words.processes):
        yield pa.record_batch([users.pop(0), lists], names=source.feed.schema.names)


def _pieces(source: Source) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield users and their texts, a few at a time."""
    check = Utf8Check()
    for part in source.feed.parts:
        with reading(part.label):
            for batch in part.batches():
                rows = _BYTES * batch.num_rows // max(batch.nbytes, 1)
                for piece in in_pieces(batch, min(max(rows, 1), ROWS)):
                    users, texts = (source.carry(c, n, part) for n, c in enumerate(piece.columns))
                    check(texts, source.schema.names[1], part.label)
                    yield users, texts
