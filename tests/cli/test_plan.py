"""dp-sips plan."""

import json
from typing import Any

import pytest

import dp_sips

ENOUGH = ("--rho", "0.1", "--delta", "1e-5")


def test_it_prints_what_the_plan_explains(run: Any) -> None:
    made = dp_sips.plan("auto", rho=0.1, delta=1e-5)
    assert run("plan", *ENOUGH) == (0, made.explain() + "\n", "")


@pytest.mark.parametrize(
    "words", [("weighted-gaussian",), ("--mechanism", "weighted-gaussian")], ids=str
)
def test_the_mechanism_with_and_without_its_flag(run: Any, words: Any) -> None:
    shown = json.loads(run("plan", *words, *ENOUGH, "--json").out)
    assert shown["mechanism"] == "weighted-gaussian"
    assert [round(row["threshold"], 4) for row in shown["rounds"]] == [11.7261]


def test_json_has_rounds_guarantee_and_chances(run: Any) -> None:
    shown = json.loads(run("plan", "sips", *ENOUGH, "--json").out)
    assert [round(row["threshold"], 2) for row in shown["rounds"]] == [45.71, 25.54, 14.26]
    assert shown["guarantee"]["statement"].endswith("corollary: 1e-05-approximate 0.1-zCDP")
    assert shown["guarantee"]["delta"] == pytest.approx(2e-5, rel=1e-2)
    made = dp_sips.plan("sips", rho=0.1, delta=1e-5)
    for row in shown["users_needed"]:
        assert row["users"] == made.users_needed(row["probability"], row["items_per_user"])


def test_users_ask_for_a_chance(run: Any) -> None:
    flags = ("plan", *ENOUGH, "--users", "50", "--items-per-user", "8")
    chance = dp_sips.plan(rho=0.1, delta=1e-5).release_probability(50, 8)
    shown = json.loads(run(*flags, "--json").out)["release_probability"]
    assert shown == {"users": 50, "items_per_user": 8, "probability": chance}
    words = run(*flags).out.splitlines()[-1]
    assert words.startswith("An item that 50 users hold, with 8 items each, is released")
    assert words.endswith(f"with a probability of {chance:.4g}.")


def test_no_users_have_no_chance(run: Any) -> None:
    shown = json.loads(run("plan", *ENOUGH, "--users", "0", "--json").out)
    assert shown["release_probability"]["probability"] == 0


def test_rounds_and_ratio(run: Any) -> None:
    shown = json.loads(run("plan", *ENOUGH, "--rounds", "2", "--ratio", "1", "--json").out)
    first, second = shown["rounds"]
    assert first["rho"] == second["rho"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sips", "--mechanism", "sips"), ("named twice",)),
        (("spis",), ("unknown mechanism 'spis'", "'sips'")),
        (("--users", "-1"), ("users must be", "-1")),
        (("--users", "5", "--items-per-user", "0"), ("--items-per-user must be", "0")),
        (("--epsilon", "1"), ("both",)),
        (("--max-groups", "5"), ("--max-items",)),
        (("--user", "u"), ("--user is a flag of select, count",)),
    ],
    ids=str,
)
def test_bad_usage(run: Any, words: Any, message: Any) -> None:
    assert run("plan", *words, *ENOUGH).refused(*message)


def test_a_hint_spares_the_look(run: Any) -> None:
    flags = ("plan", "--epsilon", "1", "--delta", "1e-6", "--json")
    assert json.loads(run(*flags).out)["mechanism"] == "auto"
    assert json.loads(run(*flags, "--items-per-user", "3").out)["mechanism"] == "matching"
    assert json.loads(run(*flags, "--items-per-user", "90").out)["mechanism"] == "cumulative"


def test_levers_are_in_flags(run: Any) -> None:
    ran = run("plan", "sips", "--epsilon", 1, "--delta", "1e-6", "--levers")
    assert "- --epsilon 2 instead of 1: " in ran.out
    assert "users" in ran.out.split("--epsilon 2")[1]


def test_unwise_settings_get_one_line(run: Any) -> None:
    ran = run("plan", "sips", "--epsilon", 1, "--delta", "0.01")
    assert ran.code == 0
    assert ran.err.startswith("dp-sips: warning: unwise settings: --delta 0.01 lets the promise")
    assert ran.err.count("\n") == 1
