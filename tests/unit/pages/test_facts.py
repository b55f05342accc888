"""Certificates: read as they are written, and good enough to compute the rounds again."""

import json
from pathlib import Path
from typing import Any

import pytest

import dp_sips
from dp_sips.errors import InputError
from dp_sips.mechanisms import MECHANISMS
from dp_sips.pages.facts import Facts, read_certificate

DATA = {user: ["all", f"only {user}"] for user in range(200)}


def facts_of(mechanism: Any, **more: Any) -> Facts:
    options = {"epsilon": 1.0, "delta": 1e-6} | more
    release = dp_sips.select_partitions(DATA, mechanism=mechanism, **options)
    return Facts(json.loads(release.to_json()))


@pytest.mark.parametrize("name", MECHANISMS)
def test_rounds_follow_from_the_certificate(name: str) -> None:
    most = 1 if name == "single" else 20
    facts = facts_of(name, max_items=most)
    plan = facts.recomputed()
    assert plan is not None
    assert plan.mechanism.name == name
    assert facts.recipe is not None
    assert facts.recipe.parameters == {}


@pytest.mark.parametrize(
    "mechanism",
    [
        dp_sips.Sips(rounds=2, ratio=0.2),
        dp_sips.Gw(buffer=2, histogram={"all": 3}),
        dp_sips.Matching(laps=2),
        dp_sips.Mad(buffer=1, largest=20),
    ],
    ids=repr,
)
def test_and_with_own_parameters(mechanism: Any) -> None:
    assert facts_of(mechanism).recomputed() is not None


def test_and_after_a_look_at_the_data() -> None:
    facts = facts_of("auto")
    plan = facts.recomputed()
    assert facts.look is not None
    assert plan is not None
    assert plan.mechanism.name == facts.mechanism


def test_and_with_rho() -> None:
    assert facts_of("sips", rho=0.1, epsilon=None).recomputed() is not None


def test_and_of_a_selection_before_counts() -> None:
    counts = dp_sips.count_users(DATA, epsilon=1, delta=1e-6, share=0.4, mechanism="sips")
    facts = Facts(counts.certificate)
    assert facts.recomputed() is not None
    assert facts.recipe is not None
    assert facts.recipe.asked["epsilon"] == pytest.approx(0.6)


def test_a_round_that_differs_is_noticed() -> None:
    facts = facts_of("sips")
    facts.certificate["rounds"][1]["threshold"] *= 0.999
    assert facts.recomputed() is None


@pytest.mark.parametrize(
    ("name", "value"), [("max_items", 19), ("asked", {"epsilon": 1.1, "delta": 1e-6, "rho": None})]
)
def test_a_parameter_that_differs_is_noticed(name: str, value: Any) -> None:
    facts = facts_of("sips", max_items=20)
    assert Facts({**facts.certificate, name: value}).recomputed() is None


def test_others_mechanisms_have_no_recipe() -> None:
    facts = facts_of("sips")
    facts.certificate["mechanism"]["name"] = "somebody's"
    assert facts.recipe is None
    assert facts.recomputed() is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"asked": 3}', '{"software": "dp-sips"}', "\udcff"]
)
def test_what_is_not_a_certificate(text: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(InputError, match=r"certificate\.json is not a certificate: give the file"):
        read_certificate(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_certificate(tmp_path / "certificate.json")
