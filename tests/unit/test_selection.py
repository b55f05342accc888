"""What comes back: public facts, and nothing that counts anybody."""

import dataclasses
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dp_sips import Gw, Mad, Matching, Selection, Sips, select_partitions

OPTIONS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_items": 5}


def select(users: int, **options: Any) -> Selection:
    data = {user: ["all", f"only {user}"] for user in range(users)}
    return select_partitions(data, **OPTIONS | options)


def test_public_attributes_are_pinned() -> None:
    """A new attribute must be argued for: does it say more than the items do?"""
    selection = select(200)
    public = {name for name in dir(selection) if not name.startswith("_")}
    assert public == {
        "items", "plan", "private", "guarantee", "certificate", "to_json", "written", "report",
        "levels",
    }  # fmt: skip
    assert {field.name for field in dataclasses.fields(selection)} == {
        "items", "plan", "private", "_facts", "levels",
    }  # fmt: skip


def test_certificate_is_pinned() -> None:
    certificate = select(200, mechanism="cumulative").certificate
    assert set(certificate) == {
        "software", "version", "time", "private", "protected", "asked", "spent", "mechanism",
        "chosen_by", "max_items", "min_users", "public_items", "rounds", "nulls", "items", "count",
        "levels", "output", "prefixes",
    }  # fmt: skip
    assert certificate["asked"] == {"epsilon": 1.0, "delta": 1e-6, "rho": None}
    assert set(certificate["spent"]) == {
        "epsilon", "delta", "statement", "zcdp", "sampler",
    }  # fmt: skip
    assert certificate["mechanism"]["name"] == "cumulative"
    assert certificate["mechanism"]["parameters"] == {
        "rounds": 17, "growth": 1.0, "trust": 1.06, "first_drop": -2.5, "last_drop": 3.0,
        "ramp": 1.5, "min_users": 1,
    }  # fmt: skip
    assert certificate["items"] == {"columns": {"item": "string"}, "number": 1}
    assert certificate["protected"]["user"] == "user"
    assert certificate["private"] is True
    assert [set(row) for row in certificate["rounds"]] == [
        {"round", "epsilon", "rho", "delta", "sigma", "scale", "threshold", "parameters"}
    ] * 17
    assert [set(row["parameters"]) for row in certificate["rounds"]] == [
        {"share", "count", "counted", "edges"}
    ] * 17


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_certificate_does_not_depend_on_the_data(engine: str) -> None:
    one, other = select(200, engine=engine), select(317, engine=engine)
    same = {"time": "of the run"}
    assert one.certificate | same == other.certificate | same
    assert one._facts | same == other._facts | same


def test_json_is_the_certificate() -> None:
    selection = select(200, mechanism=Sips(rounds=2), seed=1, insecure_test=True)
    assert json.loads(selection.to_json()) == selection.certificate
    assert selection.certificate["private"] is False


@pytest.mark.parametrize(
    ("kind", "name", "value", "plain"),
    [
        (Sips, "ratio", Fraction(1, 3), 1 / 3),
        (Sips, "ratio", np.float32(0.25), 0.25),
        (Sips, "rounds", np.int64(3), 3),
        (Gw, "buffer", np.float32(3), 3.0),
        (Gw, "histogram", {"all": np.int64(3)}, {"all": 3}),
        (Matching, "laps", np.int64(2), 2),
        (Mad, "largest", np.int64(50), 50),
    ],
    ids=repr,
)
def test_json_of_any_kind_of_number(kind: Any, name: str, value: Any, plain: Any) -> None:
    seeded = {"seed": 1, "insecure_test": True}  # both release the same items
    numbers = {"max_items": np.int64(5), "epsilon": np.float32(1)}
    selection = select(200, mechanism=kind(**{name: value}), **numbers, **seeded)
    assert json.loads(selection.to_json()) == selection.certificate
    same = select(200, mechanism=kind(**{name: plain}), **seeded).certificate
    assert selection.certificate == same | {"time": selection.certificate["time"]}


def test_repr_shows_no_facts_beyond_the_items() -> None:
    assert "_facts" not in repr(select(200))


def test_guarantee_is_the_plans() -> None:
    selection = select(200)
    assert selection.guarantee == selection.plan.guarantee
    assert selection.guarantee.epsilon(delta=1e-6) <= 1 + 1e-12


def test_is_frozen() -> None:
    selection: Any = select(200)
    with pytest.raises(AttributeError):
        selection.private = False


def test_a_selection_equals_itself_whatever_its_table() -> None:
    frame = pd.DataFrame({"u": range(200), "i": ["a"] * 200})
    one, other = (select_partitions(frame, user="u", item="i", **OPTIONS) for _ in range(2))
    assert one == one  # noqa: PLR0124
    assert one != other
    assert len({one, other}) == 2
