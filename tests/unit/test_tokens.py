"""write_tokens: a file of words, whole or not at all."""

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dp_sips
from dp_sips import InputError, OutputError, UsageError
from dp_sips.sources import texts
from dp_sips.text import ngrams, words

DOCS = pa.table({"author": [1, 1, 2], "body": ["Tea, jam.", "tea", "Jam and tea!"]})


def test_rows_in_the_order_of_the_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    dp_sips.write_tokens(DOCS, path, user="author", item=words("body"))
    table = pq.read_table(path)
    assert table.schema == pa.schema([("author", pa.int64()), ("body", pa.string())])
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert rows == [(1, "tea"), (1, "jam"), (1, "tea"), (2, "jam"), (2, "and"), (2, "tea")]


def test_the_same_bytes_for_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "_BYTES", 100)
    docs = pa.table(
        {"u": [f"u{i % 7}" for i in range(200)], "t": ["a b c " * i for i in range(200)]}
    )
    for processes in (1, 2, 3):
        item = ngrams("t", 2, processes=processes)
        dp_sips.write_tokens(docs, tmp_path / f"{processes}.parquet", user="u", item=item)
    first, *others = (path.read_bytes() for path in tmp_path.iterdir())
    assert all(other == first for other in others)


def test_a_selection_of_texts_is_one_of_their_words(tmp_path: Path) -> None:
    docs = {f"u{i}": ["Common words,", f"own{i}"] for i in range(400)}
    path = tmp_path / "t.parquet"
    settings: dict[str, Any] = {"rho": 0.5, "delta": 1e-5, "seed": 3, "insecure_test": True}
    dp_sips.write_tokens(docs, path, item=words())
    direct = dp_sips.select_partitions(docs, item=words(), **settings)
    filed = dp_sips.select_partitions(path, user="user", item="item", **settings)
    assert direct.items == filed.items["item"].to_pylist() == ["common", "words"]


def test_users_from_dictionary_pages(tmp_path: Path) -> None:
    table = pa.table({"u": ["ann", "bob"] * 500, "t": ["a", "b"] * 500})
    pq.write_table(table, tmp_path / "in.parquet")
    dp_sips.write_tokens(
        tmp_path / "in.parquet", tmp_path / "out.parquet", user="u", item=words("t")
    )
    assert pq.read_table(tmp_path / "out.parquet") == table


@pytest.mark.parametrize(
    ("path", "options", "error", "message"),
    [
        ("t.csv", {}, UsageError, "words are written as Parquet.*t.csv"),
        ("t", {}, UsageError, "no suffix"),
        ("t.parquet", {"item": "body"}, UsageError, "item must be .*words.*, got 'body'"),
        ("t.parquet", {"item": words("bodi")}, InputError, "did you mean 'body'"),
        ("t.parquet", {"user": "autor"}, InputError, "did you mean 'author'"),
        ("t.parquet", {"nulls": "keep"}, UsageError, "nulls must be one of"),
    ],
)
def test_mistakes_touch_no_file(
    tmp_path: Path, path: str, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        dp_sips.write_tokens(
            DOCS, tmp_path / path, **{"user": "author", "item": words("body")} | options
        )
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "t.parquet"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        dp_sips.write_tokens(DOCS, path, user="author", item=words("body"))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_bad_rows_leave_nothing(tmp_path: Path) -> None:
    docs = pa.table({"author": [1, None], "body": ["a", "b"]})
    with pytest.raises(InputError, match="column 'author' of the table has nulls"):
        dp_sips.write_tokens(docs, tmp_path / "t.parquet", user="author", item=words("body"))
    assert list(tmp_path.iterdir()) == []


def test_users_without_a_type_are_text_or_declared(tmp_path: Path) -> None:
    """A file has one type for all users: 1 and "1" must not become one of them."""
    path, out = tmp_path / "d.jsonl", tmp_path / "t.parquet"
    path.write_text('{"u": "ann", "t": "tea"}\n')
    dp_sips.write_tokens(path, out, user="u", item=words("t"))
    assert pq.read_table(out).to_pydict() == {"u": ["ann"], "t": ["tea"]}
    path.write_text('{"u": 1, "t": "tea"}\n')
    with pytest.raises(InputError, match=r"column 'u' of .* not text: declare its type, as types="):
        dp_sips.write_tokens(path, out, user="u", item=words("t"))
    dp_sips.write_tokens(path, out, user="u", item=words("t"), types={"u": "int"})
    assert pq.read_table(out).to_pydict() == {"u": [1], "t": ["tea"]}
