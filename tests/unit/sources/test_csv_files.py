"""CSV that is not as usual: delimiters, no header, encodings, any suffix."""

from pathlib import Path
from typing import Any

import pytest

import dp_sips
from dp_sips import CsvFiles, InputError, UsageError
from dp_sips.sources import open_source


def rows_of(data: Any, **names: Any) -> list[tuple[Any, ...]]:
    source = open_source(data, **({"user": "1", "item": "2"} | names))
    return [
        row
        for batch in source.batches()
        for row in zip(*map(list, source.values(batch)), strict=True)
    ]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str, name: str = "rows.txt", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_another_delimiter(write: Any) -> None:
    files = CsvFiles(write('id;city\n1;Rome\n2;"a;b"\n'), delimiter=";")
    assert rows_of(files, user="id", item="city") == [("1", "Rome"), ("2", "a;b")]


def test_columns_without_names_have_numbers(write: Any) -> None:
    assert rows_of(CsvFiles(write("7,x,Rome\n8,y,Lima\n"), header=False), item="3") == [
        ("7", "Rome"),
        ("8", "Lima"),
    ]


@pytest.mark.parametrize("names", [{"user": 2}, {"item": 2}, {"item": ["1", 2]}], ids=str)
def test_numbers_of_columns_are_said_as_text(write: Any, names: dict[str, Any]) -> None:
    path = write("7,x,Rome\n", "a.csv")
    for data in (CsvFiles(path, header=False), path, [path]):
        with pytest.raises(UsageError, match=r'got 2: say "2"$'):
            rows_of(data, **names)


def test_a_missing_number_names_those_that_are_there(write: Any) -> None:
    with pytest.raises(InputError, match="no column '4'"):
        rows_of(CsvFiles(write("7,x,Rome\n"), header=False), item="4")


@pytest.mark.parametrize(
    ("delimiter", "own", "other"), [(None, "a comma", ";"), ("|", r"'\|'", ";"), (";", "';'", ",")]
)
def test_one_field_without_a_header_may_be_several(
    write: Any, delimiter: str | None, own: str, other: str
) -> None:
    files = CsvFiles(write("7\tSECRET\n8,9|10;11\n"), header=False, delimiter=delimiter)
    fix = rf"if the delimiter is not {own}, name it, as delimiter='{other}' .*\(--delimiter "
    with pytest.raises(
        InputError, match=f"no column '2' in .*: its first row has one field; {fix}"
    ):
        rows_of(files)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-be", "utf-8-sig"])
def test_other_encodings(write: Any, encoding: str) -> None:
    files = CsvFiles(write("id,city\n1,Zürich\n2,Orléans", encoding=encoding), encoding=encoding)
    assert rows_of(files, user="id", item="city") == [("1", "Zürich"), ("2", "Orléans")]


def test_a_wrong_encoding_shows_no_value(write: Any) -> None:
    path = write("id,city\n1,SECRÉT\n", encoding="latin-1")
    with pytest.raises(InputError, match="not ascii: name its encoding") as caught:
        rows_of(CsvFiles(path, encoding="ascii"), user="id", item="city")
    assert "SECR" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_open_quote_is_found_without_a_header(write: Any) -> None:
    with pytest.raises(InputError, match="ends inside of quotes"):
        rows_of(CsvFiles(write('1,a\n2,"b\n'), header=False))


def test_rows_of_other_lengths(write: Any) -> None:
    with pytest.raises(
        InputError, match=r"a row has 3 fields, and the first row 2: .* if .* is not '\|', name it"
    ):
        rows_of(CsvFiles(write("1|a\n2|SECRET|c\n"), header=False, delimiter="|"))


def test_no_rows_and_no_header_is_an_empty_release(write: Any) -> None:
    files = CsvFiles(write(""), header=False)
    release = dp_sips.select_partitions(files, user="1", item="2", epsilon=1, delta=1e-6)
    assert release.items.num_rows == 0
    assert release.items.column_names == ["2"]


def test_no_bytes_where_a_header_should_be(write: Any) -> None:
    with pytest.raises(InputError, match="has no header: 0 bytes"):
        rows_of(CsvFiles(write("")))


def test_suffixes_still_tell_tabs(write: Any) -> None:
    assert rows_of(CsvFiles(write("1\ta\n", name="a.tsv"), header=False)) == [("1", "a")]


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "é", 3])
def test_what_cannot_be_a_delimiter(delimiter: Any) -> None:
    with pytest.raises(UsageError, match="delimiter must be one ASCII character"):
        CsvFiles("rows.csv", delimiter=delimiter)


@pytest.mark.parametrize("encoding", ["klingon", "base64", 3])
def test_what_is_not_an_encoding(encoding: Any) -> None:
    with pytest.raises(UsageError, match="encoding must be one that Python knows"):
        CsvFiles("rows.csv", encoding=encoding)


def test_engines_agree(write: Any) -> None:
    lines = "".join(f"{user}|{item}\n" for user in range(300) for item in ("thé", f"own {user}"))
    files = CsvFiles(
        write(lines, encoding="latin-1"), delimiter="|", header=False, encoding="latin-1"
    )
    for engine in ("memory", "reference"):
        release = dp_sips.select_partitions(
            files, user="1", item="2", epsilon=1, delta=1e-6, engine=engine, mechanism="sips"
        )
        assert release.items["2"].to_pylist() == ["thé"]
