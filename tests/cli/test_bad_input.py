"""Everything that issue 2 lists under "what bad input gets": one line, exit code 2, no file."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ENOUGH = ("--user", "u", "--item", "i", "--epsilon", "1", "--delta", "1e-5")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--delta", "0"), ("--delta must be in (0, 1)", "got 0")),
        (("--delta", "1.5"), ("--delta must be in (0, 1)", "got 1.5")),
        (("--delta", "nan"), ("--delta must be in (0, 1)", "got nan")),
        (("--delta", "-1e-5"), ("--delta must be in (0, 1)", "got -1e-05")),
        (("--epsilon", "0"), ("--epsilon must be positive", "got 0")),
        (("--epsilon", "-1"), ("--epsilon must be positive", "got -1")),
        (("--epsilon", "-inf"), ("--epsilon must be positive", "got -inf")),
        (("--epsilon", "inf"), ("--epsilon must be positive and finite", "got inf")),
        (("--epsilon", "nan"), ("--epsilon must be positive and finite", "got nan")),
        (("--epsilon", "one"), ("--epsilon", "'one'", "dp-sips select --help")),
        (("--epsilon",), ("--epsilon", "expected one argument")),
        (("--rho", "0.1"), ("either --epsilon or --rho", "both")),
        (("--max-items", "0"), ("--max-items must be", "got 0")),
        (("--max-items", "-3"), ("--max-items must be", "got -3")),
        (("--max-items", "2.5"), ("--max-items", "'2.5'")),
        (("--rounds", "0"), ("--rounds must be", "got 0")),
        (("--ratio", "0"), ("--ratio must be positive", "got 0")),
        (("--ratio", "-1"), ("--ratio must be positive", "got -1")),
        (("--ratio", "1/0"), ("1/0", "divides by zero")),
        (("--ratio", "a/b"), ("--ratio", "'a/b' is neither a number nor a fraction like 1/3")),
        (("--ratio", "abc"), ("--ratio", "'abc' is neither a number nor a fraction like 1/3")),
        (("--rounds", "2", "--mechanism", "weighted-gaussian"), ("--rounds", "sips")),
        (("--mechanism", "sip"), ("unknown mechanism 'sip'", "'sips'")),
        (("--engine", "memry"), ("unknown engine 'memry'", "'memory'")),
        (("--engine", "reference", "--threads", "2"), ("--threads", "memory engine")),
        (("--threads", "0"), ("--threads must be", "at least 1", "got 0")),
        (("--nulls", "skip"), ("--nulls must be one of", "'skip'")),
        (("--seed", "1"), ("--seed 1", "not private", "--insecure-test")),
        (("--insecure-test",), ("--insecure-test makes sense only with a seed",)),
        (("--format", "xml"), ("unknown format 'xml'", "csv")),
        (("--json", "--format", "csv"), ("--json", "--format csv")),
        (("--item", "item"), ("'item'", "twice")),
        (("--item", "user"), ("'user'", "same column")),
        (("--user", "usr"), ("no column 'usr'", "did you mean 'user'")),
        (("--item", "tiem"), ("no column 'tiem'", "did you mean 'item'")),
    ],
)
def test_bad_parameters(select: Any, tmp_path: Path, flags: Any, words: Any) -> None:
    assert select(*flags).refused(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        ("--user", ("--user is missing", "whose row")),
        ("--item", ("--item is missing", "distinct values")),
        ("--epsilon", ("either --epsilon or --rho", "neither")),
        ("--delta", ("delta is missing", "1e-6")),
    ],
)
def test_missing_parameters(run: Any, data: Path, left_out: str, words: Any) -> None:
    usual = {"--user": "user", "--item": "item", "--epsilon": "1", "--delta": "1e-5"}
    del usual[left_out]
    assert run("select", data, *(word for pair in usual.items() for word in pair)).refused(*words)


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        ("--max-partitions-contributed=5", "--max-items"),
        ("--max_groups_contributed=5", "--max-items"),
        ("--eps=1", "--epsilon"),
        ("--privacy-unit-column=user", "--user"),
        ("--partition-key=item", "--item"),
        ("--strategy=sips", "--mechanism"),
        ("--backend=memory", "--engine"),
        ("--iterations=3", "--rounds"),
        ("--random-state=3", "--seed"),
    ],
)
def test_another_librarys_flag_is_translated(select: Any, foreign: str, ours: str) -> None:
    flag = foreign.split("=", maxsplit=1)[0]
    assert select(foreign).refused(f"unknown flag {flag}", f"here it is called {ours}")
    assert select(*foreign.split("=")).refused(f"unknown flag {flag}", ours)


def test_a_foreign_flag_is_named_before_what_is_missing(run: Any, data: Path) -> None:
    ran = run("select", data, "--privacy-unit-column", "user", "--item", "item")
    assert ran.refused("here it is called --user")


def test_a_mistyped_flag_is_guessed(select: Any) -> None:
    assert select("--max-item", "5").refused("unknown flag --max-item", "'--max-items'")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("count --checkpoint ck", "--checkpoint is a flag of select, not of dp-sips count: leave"),
        ("select --levers", "--levers is a flag of plan, not of dp-sips select: leave it out"),
        ("select --users u", "a flag of plan, generate, not of dp-sips select: did you mean"),
        ("plan --user u", "--user is a flag of select, count, tokenize, not of dp-sips plan: did"),
    ],
)
def test_another_commands_flag(run: Any, words: str, message: str) -> None:
    assert run(*words.split()).refused(message)


def test_flags_that_are_not_alike_are_not_offered(select: Any) -> None:
    assert select("--quite").refused("unknown flag --quite: did you mean '--quiet'?\n")
    assert select("--xyzzy").refused("unknown flag --xyzzy: dp-sips select --help lists all\n")
    assert select("--=5").refused("--help lists all\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("-q", "'--quiet'?"),
        ("-t int", "'--type' or '--threads'?"),
        ("-t4", "'--type' or '--threads'?"),
        ("--thr 4", "'--threads'?"),
    ],
)
def test_flags_that_begin_alike_are_offered(select: Any, words: str, hint: str) -> None:
    flag = words.split(maxsplit=1)[0]
    assert select(*words.split()).refused(f"unknown flag {flag}: did you mean {hint}\n")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--type", "time=string"], "error: --type names 'time', which is neither"),
        (["--item", "i"], "error: --item names the column 'i' twice"),
        (["--user", "i"], "error: --user and --item are the same column, 'i'"),
        (["--delimiter", ";;"], "error: --delimiter must be one ASCII character"),
        (["--encoding", "none"], "error: --encoding must be one that Python knows"),
        (["--ngrams", "0"], "error: --ngrams must be a whole number"),
        (["--ngrams", "2", "--checkpoint", "ck"], "error: --checkpoint is for one selection"),
        (["--engine", "reference", "--checkpoint", "ck"], "error: --checkpoint is for --engine m"),
        (["--engine", "spark", "--mechanism", "dpsu"], "choose --mechanism auto or mad2r, or --e"),
    ],
)
def test_messages_name_flags(
    run: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = tmp_path / "rows.csv"
    rows.write_text("u,i\n1,tea\n")
    assert run("select", rows, *ENOUGH, *flags).refused(message)


def test_advice_about_csv_names_flags(run: Any, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("u;i\n1;tea\n")
    assert run("select", rows, *ENOUGH).refused("by ';', not by ',': say --delimiter ';'\n")
    rows.write_text("1,tea\n")
    assert run("select", rows, *ENOUGH).refused("if it has none, say --no-header\n")
    rows.write_text("u,i\n1,tea,jam\n")
    assert run("select", rows, *ENOUGH).refused("is not a comma, name it, as --delimiter ';'\n")


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
@pytest.mark.parametrize("mark", [";", "\t"])
def test_the_header_shows_another_delimiter(
    run: Any, tmp_path: Path, mark: str, flags: tuple[str, ...]
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(f"t{mark}u{mark}i\n1{mark}2{mark}tea,jam\n")
    assert run("select", rows, *ENOUGH, *flags).refused(f": say --delimiter {mark!r}\n")


def test_a_dry_run_finds_what_is_wrong_with_the_first_rows(run: Any, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("u,i\n1,tea,jam\n")
    assert run("select", rows, *ENOUGH, "--dry-run").refused("a row has 3 fields, and the header 2")
    assert run("select", rows, *ENOUGH[2:], "--user", "v", "--dry-run").refused("no column 'v'")


def test_words_in_the_wrong_place(select: Any) -> None:
    assert select("other.parquet").refused("unexpected 'other.parquet'")


def test_no_input(run: Any) -> None:
    assert run("select", *ENOUGH).refused("INPUT is missing")


def test_a_missing_file_shows_the_nearest_name(run: Any, data: Path) -> None:
    assert run("select", data.with_name("dta.parquet"), *ENOUGH).refused(
        "no such file", "did you mean 'data.parquet'"
    )


def test_a_glob_that_matches_nothing(run: Any, tmp_path: Path) -> None:
    assert run("select", tmp_path / "*.csv", *ENOUGH).refused("no data file matches")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (".", ("link.csv is a link to gone.csv",)),
        ("*.csv", ("link.csv is a link to gone.csv",)),
        ("n" * 300 + ".csv", ("cannot be read: File name too long",)),
    ],
    ids=["folder", "glob", "long"],
)
def test_paths_that_lead_nowhere(run: Any, tmp_path: Path, place: str, words: Any) -> None:
    (tmp_path / "link.csv").symlink_to("gone.csv")
    (tmp_path / "old.txt").touch()
    ran = run("select", tmp_path / place, *ENOUGH, "-o", tmp_path / "old.txt", "--force")
    assert ran.refused(*words)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.csv", b"", ("no header", "0 bytes")),
        ("d.csv", b"u,i\n1,a\n2,b,c\n", ("d.csv", "cannot be read")),
        ("d.parquet", b"PAR1 and no more", ("d.parquet cannot be read",)),
        ("d.arrow", b"ARROW1 and no more", ("d.arrow cannot be read",)),
        ("d.jsonl", b'{"u": 1, "i": ', ("d.jsonl", "cannot be read")),
        ("d.jsonl", b'{"u": 1, "i": "\xe9"}\n', ("'i'", "d.jsonl is not UTF-8 text")),
        ("d.csv.gz", gzip.compress(b"u,i\n" + b"1,a\n" * 999, mtime=0)[:-20], ("d.csv.gz",)),
        ("d.data", b"u,i\n1,a\n", ("no suffix that tells its kind", "--delimiter ',', or ';'")),
    ],
)
def test_bad_files(run: Any, tmp_path: Path, name: str, content: bytes, words: Any) -> None:
    (tmp_path / name).write_bytes(content)
    ran = run("select", tmp_path / name, *ENOUGH, "-o", tmp_path / "out.csv")
    assert ran.refused(*words)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_truncated_parquet_file(run: Any, data: Path) -> None:
    data.write_bytes(data.read_bytes()[:-100])
    assert (
        run("select", data, "--user", "user", "--item", "item", "--rho", "1", "--delta", "0.1")[0]
        == 2
    )


def test_mixed_schemas(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": [1], "i": ["a"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"u": [1], "i": [2]}), tmp_path / "b.parquet")
    ran = run("select", tmp_path / "*.parquet", *ENOUGH)
    assert ran.refused("'i'", "string", "int64", "a.parquet", "b.parquet")


@pytest.mark.parametrize("column", ["u", "i"])
def test_nulls(run: Any, tmp_path: Path, column: str) -> None:
    table = pa.table({"u": [1, 2], "i": ["a", "b"]})
    index = table.column_names.index(column)
    nulls = pa.nulls(2, table[column].type)
    pq.write_table(table.set_column(index, column, nulls), tmp_path / "d.parquet")
    assert run("select", tmp_path / "d.parquet", *ENOUGH).refused(f"'{column}'", "--nulls drop")


def test_several_columns_are_named_by_repeating_the_flag(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("u,country,city\n1,2,3\n")
    usual = ("select", path, "--user", "u", "--epsilon", "1", "--delta", "1e-5")
    fix = "--item country --item city"
    assert run(*usual, "--item", "country,city").refused("no column 'country,city'", fix)
    assert run(*usual, "--item", "country", "city").refused("unexpected 'city'", "repeat", fix)


def test_the_input_has_no_flag(run: Any) -> None:
    ran = run("select", "--input", "x.csv")
    assert ran.refused("unknown flag --input", "INPUT is given without a flag")
    assert "did you mean" not in ran.err
