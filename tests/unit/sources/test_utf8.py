"""Text that is not UTF-8 is refused, wherever it hides."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from dp_sips.errors import InputError
from dp_sips.text import words

BAD = b"caf\xe9"
MESSAGE = "column '{}' of .*{} is not UTF-8 text: convert it to UTF-8 first"


def text(*values: bytes | None) -> pa.Array:
    """Call bytes text, as a careless writer does."""
    return pa.array(values, pa.binary()).view(pa.string())


LAYOUTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "string": lambda array: array,
    "large": lambda array: array.cast(pa.large_string()),
    "view": lambda array: array.cast(pa.string_view()),
    "dictionary": lambda array: array.dictionary_encode(),
    "slice": lambda array: pa.concat_arrays([pa.array(["é", "b"]), array]).slice(2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("column", ["u", "i"])
def test_each_layout(layout: str, column: str, read: Any) -> None:
    make, other = LAYOUTS[layout], "u" if column == "i" else "i"
    good = text("café".encode(), b"", b"tea")
    rows = read(pa.table({column: make(good), other: good}))
    assert rows == Counter([("café", "café"), ("", ""), ("tea", "tea")])
    with pytest.raises(InputError, match=MESSAGE.format(column, "the table")) as caught:
        read(pa.table({column: make(text(b"tea", BAD, b"")), other: good}))
    assert "caf" not in str(caught.value)


def test_halves_of_a_character_are_none(read: Any) -> None:
    with pytest.raises(InputError, match=MESSAGE.format("i", "the table")):
        read(pa.table({"u": [1, 2], "i": text(b"\xc3", b"\xa9")}))


def test_lists(read: Any) -> None:
    lists = pa.ListArray.from_arrays([0, 1, 2], text(b"tea", BAD))
    with pytest.raises(InputError, match=MESSAGE.format("i", "the table")):
        read(pa.table({"u": [1, 2], "i": lists}))


def test_nulls_and_empty_texts(read: Any) -> None:
    table = pa.table({"u": [1, 2], "i": text(None, b"")})
    assert read(table, nulls="drop") == Counter([(2, "")])
    assert read(table.slice(0, 1), nulls="group") == Counter([(1, None)])


def _write_json(table: pa.Table, path: Path) -> None:
    rows = zip(*(column.cast(pa.binary()).to_pylist() for column in table.columns), strict=True)
    path.write_bytes(b"".join(b'{"u": "%b", "i": "%b"}\n' % row for row in rows))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "a.parquet": pq.write_table,
    "a.arrow": feather.write_feather,
    "a.jsonl": _write_json,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("item", ["i", words("i")], ids=["items", "words"])
def test_each_kind_of_file(name: str, item: Any, tmp_path: Path, read: Any) -> None:
    users, path = text(b"ann", b"bob"), tmp_path / name
    WRITERS[name](pa.table({"u": users, "i": text(b"tea", BAD)}), path)
    with pytest.raises(InputError, match=MESSAGE.format("i", name)):
        read(path, item=item)
    WRITERS[name](pa.table({"u": users, "i": text(b"tea", BAD.decode("latin-1").encode())}), path)
    assert read(path, item=item) == Counter([("ann", "tea"), ("bob", "café")])
