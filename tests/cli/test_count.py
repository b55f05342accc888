"""dp-sips count: items and counts, where they go, and what is refused."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

COMMON = ["jam", "rice", "tea"]


@pytest.fixture
def count(run: Any, data: Path) -> Any:
    """Run `dp-sips count` on the data, with more flags."""

    def count(*flags: object) -> Any:
        usual = "--user user --item item --epsilon 4 --delta 1e-9"
        return run("count", data, *usual.split(), *flags)

    return count


def test_counts_go_to_stdout_as_csv_and_the_noise_to_stderr(count: Any) -> None:
    ran = count("--mechanism", "sips")
    assert ran.code == 0
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert [row["item"] for row in rows] == COMMON
    assert all(abs(int(row["users"]) - 300) < 90 for row in rows)
    assert "Released 3 items." in ran.err
    assert "Counts have noise with a standard deviation of " in ran.err


def test_files_and_certificate(count: Any, tmp_path: Path) -> None:
    out, certificate = tmp_path / "counts.parquet", tmp_path / "counts.json"
    ran = count("-o", out, "--certificate", certificate, "--quiet", "--other", "--share", "0.4")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    table = pq.read_table(out)
    assert table.column_names == ["item", "users"]
    assert table["item"].to_pylist() == [*COMMON, None]
    facts = json.loads(certificate.read_text())
    assert facts["count"]["share"] == 0.4
    assert facts["count"]["other"] is True
    assert facts["asked"] == {"epsilon": 4.0, "delta": 1e-9, "rho": None}


def test_other_is_an_empty_field_of_csv(count: Any) -> None:
    *_, last = count("--other", "--mechanism", "sips").out.splitlines()
    assert last.startswith(",")


def test_keys_from_a_file(count: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("item\ntea\nnobody's\n")
    ran = count("--keys", keys, "--json", "--max-items", "1")
    assert ran.code == 0
    shown = json.loads(ran.out)
    assert [row["item"] for row in shown["counts"]] == ["nobody's", "tea"]
    assert shown["certificate"]["mechanism"]["name"] == "given-keys"
    assert shown["certificate"]["count"]["max_items"] == 1


def test_given_keys_need_no_advice_on_selecting(count: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    for text in ("item\ntea\n", "item\n"):
        keys.write_text(text)
        ran = count("--keys", keys)
        assert ran.code == 0
        assert "Fewer than you expected?" not in ran.err
        assert len(ran.err.splitlines()) == 4
    assert count("--keys", keys, "--share", "0.5").refused("--keys is given, and nothing is sel")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--share", "2"], ["--share must be in (0, 1)"]),
        (["--other", "--nulls", "group"], ["--other has a row", "--nulls group"]),
        (["--max-items", "0"], ["--max-items must be"]),
        (["-o", "counts.txt"], ["a text file holds one column"]),
        (["--selection-max-items", "0"], ["--selection-max-items must be"]),
        (["--keys", "missing.csv"], ["missing.csv"]),
        (["--seed", "3"], ["--insecure-test"]),
        (["--max-partitions", "3"], ["--max-items"]),
        (["--engine", "abacus"], ["unknown engine"]),
    ],
)
def test_what_is_wrong_is_one_line(count: Any, flags: list[str], words: list[str]) -> None:
    assert count(*flags).refused(*words)


def test_options_of_a_selection_are_named_as_they_are_typed(count: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("item\ntea\n")
    for flag in ("--share", "--selection-max-items", "--min-users"):
        assert count("--keys", keys, flag, "0.5" if flag == "--share" else "2").refused(
            f"nothing is selected: leave out {flag}"
        )


@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet", "counts.jsonl"])
def test_a_file_with_other_users_can_be_the_keys(count: Any, tmp_path: Path, name: str) -> None:
    keys = tmp_path / name
    assert count("--other", "-o", keys).code == 0
    ran = count("--keys", keys, "--json")
    assert ran.code == 0
    assert [row["item"] for row in json.loads(ran.out)["counts"]] == ["jam", "rice", "tea"]


def test_the_keys_are_not_replaced(count: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("item\ntea\n")
    assert count("--keys", keys, "-o", keys, "--force").refused("is an input file")
    assert keys.read_text() == "item\ntea\n"


def test_nothing_is_written_where_opendp_is_missing(
    count: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dp_sips.mechanisms.discrete.find_spec", lambda _: None)
    assert count("-o", tmp_path / "counts.csv").refused("pip install 'dp-sips[counts]'")
    assert not (tmp_path / "counts.csv").exists()


def test_a_test_seed_repeats_itself(count: Any) -> None:
    one, other = (count("--seed", "3", "--insecure-test") for _ in range(2))
    assert one.out == other.out
    assert "NOT PRIVATE" in one.err
