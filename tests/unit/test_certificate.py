"""Certificates: one schema for every mechanism, field by field; and digests of what was written."""

import csv
import hashlib
import json
import os
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

import dp_sips
from dp_sips.cli import main
from dp_sips.mechanisms import MECHANISMS

SCHEMA = json.loads(files("dp_sips").joinpath("certificate.schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
BUDGETS: list[dict[str, Any]] = [{"epsilon": 3.0, "delta": 1e-4}, {"rho": 0.5, "delta": 1e-4}]
DATA = {user: ["jam", "tea"] for user in range(400)}


def shape(value: Any) -> Any:
    """Return the names of all fields, without those that are a mechanism's own."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items() if name != "parameters"}
    if isinstance(value, list):
        return shape(value[0]) if value else None
    return "value"


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: next(iter(budget)))
@pytest.mark.parametrize("name", ["auto", *MECHANISMS])
def test_every_mechanism_has_the_same_fields(name: str, budget: Any, engine: str) -> None:
    if name.endswith("-rule") and "rho" in budget:
        return
    made = dp_sips.select_partitions(DATA, mechanism=name, engine=engine, **budget).certificate
    VALIDATOR.validate(made)
    usual = dp_sips.select_partitions(DATA, mechanism="sips", **budget).certificate
    if name == "auto" and "epsilon" in budget:
        made |= {"chosen_by": None}
    assert shape(made) == shape(usual)
    assert list(made) == list(usual)


def test_on_spark() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = dp_sips.select_partitions(DATA, mechanism="sips", engine="spark", **BUDGETS[0])
    VALIDATOR.validate(made.certificate)


@pytest.mark.parametrize("options", [{}, {"mechanism": "sips"}, {"keys": ["jam"]}], ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: next(iter(budget)))
def test_counts(options: Any, budget: Any) -> None:
    counts = dp_sips.count_users(DATA, **options, **budget)
    VALIDATOR.validate(counts.certificate)
    spent, asked = counts.certificate["spent"], counts.certificate["asked"]
    if asked["epsilon"]:
        assert spent["epsilon"] == asked["epsilon"]
        assert spent["delta"] <= asked["delta"]


@pytest.mark.parametrize("mechanism", ["sips", "auto"])
def test_levels_have_their_number_and_what_they_spent(mechanism: str) -> None:
    rows = {"who": list(range(900)), "land": ["a", "b"] * 450, "town": ["x", "y", "z"] * 300}
    made = dp_sips.select_partitions(
        rows, user="who", item=["land", "town"], hierarchy=True, mechanism=mechanism, **BUDGETS[0]
    ).certificate
    VALIDATOR.validate(made)
    coarse, fine = made["levels"]
    assert (coarse["number"], fine["number"]) == (2, 6)
    assert coarse["spent"]["epsilon"] == pytest.approx(1.5, rel=0.01)
    assert 0 < coarse["spent"]["delta"] <= 0.5e-4
    # Without a look, the last level has all that composition leaves.
    assert (fine["spent"]["epsilon"] > 1.6) == (mechanism == "sips")
    with pytest.raises(ValidationError):
        VALIDATOR.validate(made | {"levels": [coarse | {"number": -1}]})
    with pytest.raises(ValidationError):
        VALIDATOR.validate(made | {"levels": [{n: coarse[n] for n in coarse if n != "spent"}]})


def test_the_digest_of_prefixes(tmp_path: Path) -> None:
    data, facts, places = tmp_path / "d.csv", tmp_path / "c.json", tmp_path / "lands.csv"
    data.write_text("u,a,b\n" + "".join(f"{user},land,town\n" for user in range(400)))
    words = f"select {data} --user u --item a --item b --hierarchy --epsilon 3 --delta 1e-4 --quiet"
    assert main([*words.split(), "--certificate", str(facts), "--prefixes", str(places)]) == 0
    made = json.loads(facts.read_text("utf-8"))
    VALIDATOR.validate(made)
    digest = hashlib.sha256(places.read_bytes()).hexdigest()
    assert made["prefixes"] == {"file": "lands.csv", "sha256": digest}
    assert made["output"] is None


def test_names_what_is_protected_and_when_and_how_many() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    rows = {"who": list(range(400)), "what": ["jam"] * 400}
    made = dp_sips.select_partitions(rows, user="who", item="what", **BUDGETS[0]).certificate
    after = datetime.now(UTC)
    assert made["protected"]["user"] == "who"
    assert made["items"]["number"] == 1
    assert made["version"] == version("dp-sips")
    assert before <= datetime.fromisoformat(made["time"]) <= after
    assert made["output"] is None


@pytest.mark.parametrize(
    "broken",
    [
        {"rows": 400},
        {"version": None},
        {"time": "2026-11-16 12:00:00"},
        {"asked": {"epsilon": None, "delta": 1e-6, "rho": None}},
        {"output": {"file": "items.csv", "sha256": "no digest"}},
        {"items": {"columns": {"item": "string"}, "number": -1}},
    ],
    ids=str,
)
def test_the_schema_can_say_no(broken: dict[str, Any]) -> None:
    made = dp_sips.select_partitions(DATA, mechanism="sips", **BUDGETS[0]).certificate
    with pytest.raises(ValidationError):
        VALIDATOR.validate(made | broken)


@pytest.mark.parametrize("command", ["select", "count"])
@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.arrow", "out.jsonl"])
def test_the_digest_is_that_of_the_file(command: str, name: str, tmp_path: Path) -> None:
    data, out, facts = tmp_path / "d.csv", tmp_path / name, tmp_path / "c.json"
    with data.open("w", newline="") as sink:
        csv.writer(sink).writerows([("u", "i"), *((user, "jam") for user in range(400))])
    words = f"{command} {data} --user u --item i --epsilon 3 --delta 1e-4 --mechanism sips --quiet"
    assert main([*words.split(), "-o", str(out), "--certificate", str(facts)]) == 0
    made = json.loads(facts.read_text("utf-8"))
    VALIDATOR.validate(made)
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    assert made["output"] == {"file": name, "sha256": digest}


def test_json_on_stdout_has_the_digest_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "d.csv", tmp_path / "out.csv"
    data.write_text("u,i\n" + "".join(f"{user},jam\n" for user in range(400)))
    words = f"select {data} --user u --item i --epsilon 3 --delta 1e-4 --mechanism sips --json"
    assert main([*words.split(), "-o", str(out)]) == 0
    shown = json.loads(capsys.readouterr().out)["certificate"]
    assert shown["output"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["certificate"]["output"] is None
