"""--public-items and --min-users, in dp-sips select, count and plan."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("command", ["select", "count"])
def test_new_items_only(run: Any, data: Path, tmp_path: Path, command: str) -> None:
    known = tmp_path / "known.csv"
    known.write_text("item\ntea\n")
    usual = "--user user --item item --epsilon 4 --delta 1e-9 --min-users 5 --json --mechanism sips"
    ran = run(command, data, *usual.split(), "--public-items", known)
    assert ran.code == 0
    shown = json.loads(ran.out)
    released = shown.get("items") or [row["item"] for row in shown["counts"]]
    assert released == ["jam", "rice"]
    assert shown["certificate"]["public_items"] == 1
    assert shown["certificate"]["min_users"] == 5


def test_nothing_that_fewer_hold(run: Any, data: Path) -> None:
    usual = "--user user --item item --epsilon 4 --delta 1e-9 --min-users 5000"
    ran = run("select", data, *usual.split())
    assert (ran.code, ran.out) == (0, "item\n")


def test_plan(run: Any) -> None:
    usual = ("plan", "sips", "--epsilon", 1, "--delta", "1e-6", "--min-users", 20)
    assert "Nothing that fewer than 20 users hold" in run(*usual).out
    assert json.loads(run(*usual, "--json").out)["min_users"] == 20


def test_errors_have_the_names_of_flags(run: Any, data: Path, tmp_path: Path) -> None:
    ran = run("plan", "gw", "--epsilon", 1, "--delta", "1e-6", "--min-users", 2)
    assert ran.code == 2
    assert "--min-users is not proven to be private with gw" in ran.err
    known = tmp_path / "known.csv"
    known.write_text("item\ntea\n")
    usual = "--user user --item item --epsilon 4 --delta 1e-9 --force"
    ran = run("select", data, *usual.split(), "--public-items", known, "-o", known)
    assert "is an input file" in ran.err
