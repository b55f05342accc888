"""dp-sips ledger, and --ledger of the commands that release."""

import json
from pathlib import Path
from typing import Any

import pytest

from dp_sips import OutputError


@pytest.fixture
def path(run: Any, tmp_path: Path) -> Path:
    made = tmp_path / "budget.json"
    assert run("ledger", "create", made, "--epsilon", "2", "--delta", "2e-5").code == 0
    return made


def test_a_new_one_has_all_left(run: Any, path: Path) -> None:
    shown = run("ledger", path).out
    assert "(2, 2e-05)-DP in all" in shown
    assert "Left: about 2 of epsilon" in shown


def test_one_that_exists_is_not_made_again(run: Any, path: Path) -> None:
    ran = run("ledger", "create", path, "--epsilon", "3", "--delta", "2e-5")
    assert ran.refused("exists: book on it as it is, or name another file")
    assert "--force" not in ran.err


def test_releases_are_booked_and_shown(run: Any, select: Any, path: Path) -> None:
    assert select("--ledger", path, "--purpose", "the weekly list", "--quiet").code == 0
    shown = run("ledger", path).out
    assert "items of item by user, cumulative  the weekly list" in shown
    found = json.loads(run("ledger", path, "--json").out)
    assert found["spent"]["delta"] <= 1e-5
    assert [entry["number"] for entry in found["entries"]] == [1]
    assert found["left"]["epsilon"] > 0.9


def test_counts_are_one_entry(run: Any, data: Path, path: Path) -> None:
    words = "--user user --item item --epsilon 1 --delta 1e-6 --mechanism sips --quiet"
    assert run("count", data, *words.split(), "--ledger", path).code == 0
    assert "counts of item by user, sips" in run("ledger", path).out


def test_too_much_is_refused_and_writes_nothing(select: Any, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    ran = select("--ledger", path, "--epsilon", "3", "-o", out)
    assert ran.refused("not enough left", "(2, 2e-05)")
    assert not out.exists()


def test_a_release_does_not_replace_the_ledger(select: Any, path: Path) -> None:
    before = path.read_text()
    ran = select("--ledger", path, "-o", path, "--format", "csv", "--force")
    assert ran.refused("is an input file")
    assert path.read_text() == before


def test_test_seeds_book_nothing(run: Any, select: Any, path: Path) -> None:
    assert select("--ledger", path, "--seed", "1", "--insecure-test").code == 0
    assert json.loads(run("ledger", path, "--json").out)["entries"] == []


def test_a_dry_run_books_nothing(run: Any, select: Any, path: Path) -> None:
    assert select("--ledger", path, "--dry-run").code == 0
    assert json.loads(run("ledger", path, "--json").out)["entries"] == []


@pytest.mark.parametrize("command", ["select", "count"])
def test_a_dry_run_refuses_what_the_ledger_would(
    run: Any, data: Path, path: Path, command: str
) -> None:
    words = ("--user", "user", "--item", "item", "--delta", "1e-6", "--ledger", path, "--dry-run")
    fits = run(command, data, *words, "--epsilon", "2")
    assert f"Would book the release in {path}, which has enough left for it." in fits.out
    assert run(command, data, *words, "--epsilon", "2.5").refused("not enough left", "(2.5, ")
    tested = run(command, data, *words, "--epsilon", "2.5", "--seed", "1", "--insecure-test")
    assert tested.code == 0
    assert "Would book" not in tested.out


def test_a_dry_run_of_counts_of_given_keys(run: Any, data: Path, path: Path) -> None:
    keys = path.with_name("keys.csv")
    keys.write_text("item\ntea\n")
    words = ("count", data, "--user", "user", "--item", "item", "--delta", "1e-6", "--keys", keys)
    more = ("--ledger", path, "--dry-run", "--epsilon")
    assert "Would book" in run(*words, *more, "2").out
    assert run(*words, *more, "2.5").refused("not enough left")


def test_a_dry_run_of_a_run_that_goes_on_books_nothing_more(
    select: Any, path: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir(mode=0o700)
    (saved / "run.json").write_text("{}")
    flags = ("--ledger", path, "--dry-run", "--epsilon", "2.5", "--checkpoint", saved)
    assert select(*flags).code == 0


@pytest.mark.parametrize("command", ["select", "count"])
def test_an_error_after_booking_says_that_it_stays(
    run: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("user,item\n1,tea\n2,\n")
    words = ("--user", "user", "--item", "item", "--epsilon", "1", "--delta", "1e-6")
    ran = run(command, rows, *words, "--ledger", path)
    stays = f"The release stays booked in {path}, as the run may have read some of the data.\n"
    assert ran.refused("--nulls group keeps null as an item of its own. " + stays)
    with rows.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        ran = run(command, "-", *words, "--ledger", path)
    assert ran.refused("'item' of standard input has nulls", stays)
    assert len(json.loads(path.read_text())["entries"]) == 2
    assert not run(command, rows, *words, "--ledger", path).refused(stays)  # it is used up


def test_a_release_that_cannot_be_written_stays_booked(
    select: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OutputError("o.csv could not be written: No space left on device")

    monkeypatch.setattr("dp_sips.cli.select.write_files", fails)
    ran = select("--ledger", path, "-o", tmp_path / "o.csv")
    assert ran.code == 1
    assert f"left on device. The release stays booked in {path}, " in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name one FILE"),
        (["create"], "name one FILE"),
        (["a.json", "b.json"], "name one FILE"),
        (["missing.json"], "no ledger missing.json"),
        (["create", "new.json"], "--epsilon and --delta are missing"),
        (["create", "new.json", "--epsilon", "1"], "--epsilon and --delta are missing"),
        (["create", "new.json", "--epsilon", "0", "--delta", "1e-5"], "epsilon must be"),
        (["old.json", "--epsilon", "1"], "a total is given once"),
    ],
)
def test_bad_usage(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("ledger", *words).refused(message)
    assert list(tmp_path.iterdir()) == []


def test_a_purpose_needs_a_ledger(select: Any) -> None:
    assert select("--purpose", "fun").refused("--ledger")
