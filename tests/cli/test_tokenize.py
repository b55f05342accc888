"""dp-sips tokenize."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dp_sips.sources import texts


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "docs.csv"
    path.write_text('author,body\n7,"Tea, jam."\n8,Tea at https://tea.org\n')
    return path


def rows(path: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(path)
    assert table.column_names == ["author", "body"]
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


ENOUGH = ("docs.csv", "--user", "author", "--text", "body", "-o", "t.parquet")


@pytest.mark.usefixtures("docs")
def test_words(run: Any, tmp_path: Path) -> None:
    assert run("tokenize", *ENOUGH) == (0, "", "Wrote the words to t.parquet.\n")
    assert rows(tmp_path / "t.parquet") == [("7", "tea"), ("7", "jam"), ("8", "tea"), ("8", "at")]


@pytest.mark.usefixtures("docs")
def test_ngrams(run: Any, tmp_path: Path) -> None:
    assert run("tokenize", *ENOUGH, "--ngrams", 5, "--quiet") == (0, "", "")
    assert [item for _, item in rows(tmp_path / "t.parquet")] == [
        "tea", "jam", "tea jam", "tea", "at", "tea at"
    ]  # fmt: skip


def test_what_was_written_can_be_selected_from(run: Any, docs: Path) -> None:
    docs.write_text("author,body\n" + "".join(f"{i},Tea for {i}!\n" for i in range(2000)))
    assert run("tokenize", *ENOUGH).code == 0
    # This mechanism releases common items for sure.
    flags = [
        "--user",
        "author",
        "--item",
        "body",
        "--epsilon",
        "1",
        "--delta",
        "1e-5",
        "--mechanism",
        "sips",
    ]
    assert run("select", "t.parquet", *flags).out.split() == ["body", "for", "tea"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (ENOUGH[1:], ("INPUT is missing",)),
        (("docs.csv", *ENOUGH[3:]), ("--user is missing",)),
        ((*ENOUGH[:3], *ENOUGH[5:]), ("--text is missing",)),
        (ENOUGH[:5], ("-o FILE.parquet is missing",)),
        (("dcos.csv", *ENOUGH[1:]), ("no such file", "did you mean 'docs.csv'")),
        ((*ENOUGH, "--user", "autor"), ("no column 'autor'", "did you mean 'author'")),
        ((*ENOUGH, "--text", "boddy"), ("no column 'boddy'", "did you mean 'body'")),
        ((*ENOUGH, "--text", "author"), ("the same column, 'author'",)),
        ((*ENOUGH, "--ngrams", "0"), ("ngrams must be", "got 0")),
        ((*ENOUGH, "--ngrams", "two"), ("--ngrams", "'two'")),
        ((*ENOUGH, "--processes", "-1"), ("processes must be", "got -1")),
        ((*ENOUGH, "--nulls", "keep"), ("nulls must be one of", "'keep'")),
        ((*ENOUGH, "--ngram", "2"), ("unknown flag --ngram", "--ngrams")),
        ((*ENOUGH, "-o", "t.csv"), (".parquet", "t.csv")),
        ((*ENOUGH, "-o", "missing/t.parquet"), ("there is no folder",)),
        ((*ENOUGH, "-o", "old.parquet"), ("exists", "--force")),
    ],
    ids=str,
)
def test_bad_usage(run: Any, docs: Path, words: Any, message: Any) -> None:
    (docs.parent / "old.parquet").write_text("old")
    assert run("tokenize", *words).refused(*message)
    assert {path.name for path in docs.parent.iterdir()} == {"docs.csv", "old.parquet"}


def test_text_that_is_not_utf8(run: Any, docs: Path) -> None:
    path = docs.with_name("docs.jsonl")
    path.write_bytes(b'{"author": 7, "body": "caf\xe9"}\n')
    words = (path, *ENOUGH[1:])
    assert run("tokenize", *words).refused("'body'", "docs.jsonl is not UTF-8 text")
    assert {path.name for path in docs.parent.iterdir()} == {"docs.csv", "docs.jsonl"}


def test_the_input_is_never_the_output(run: Any, docs: Path) -> None:
    assert run("tokenize", *ENOUGH).code == 0
    again = ("t.parquet", "--user", "author", "--text", "body", "-o", "t.parquet", "--force")
    assert run("tokenize", *again).refused("is an input file")
    assert rows(docs.parent / "t.parquet")


def test_force_and_failure(run: Any, docs: Path) -> None:
    old = docs.parent / "t.parquet"
    old.write_text("old")
    docs.write_text("author,body\n7,tea\n8,\n")
    assert run("tokenize", *ENOUGH, "--force").refused("column 'body'", "nulls", "--nulls drop")
    assert old.read_text() == "old"
    assert run("tokenize", *ENOUGH, "--force", "--nulls", "drop").code == 0
    assert rows(old) == [("7", "tea")]


@pytest.mark.usefixtures("docs")
def test_without_nltk(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "find_spec", lambda _: None)
    assert run("tokenize", *ENOUGH).refused("nltk", "pip install 'dp-sips[text]'")
    assert [path.name for path in tmp_path.iterdir()] == ["docs.csv"]
