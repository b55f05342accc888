"""dp-sips audit: a table, JSON, a page, and an exit code that a pipeline can use.

A black box reports a sound build by chance with a probability of at most 1e-8.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.power.loud import Loud

from dp_sips.mechanisms import MECHANISMS

# Few users are enough for items at these, and black boxes are run once.
QUICK = ("audit", "--quick", "--epsilon", "3", "--delta", "0.05", "--max-items", "1")


def test_a_table(run: Any) -> None:
    ran = run(*QUICK, "--mechanism", "single", "--mechanism", "weighted-gaussian")
    assert ran.code == 0
    head, *lines = ran.out.splitlines()
    assert head.split()[:3] == ["mechanism", "method", "neighbours"]
    assert {line.split()[0] for line in lines[:-2]} == {"single", "weighted-gaussian"}
    assert lines[-1].startswith("No promise is broken.")


def test_json_and_a_page(run: Any, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    ran = run(*QUICK, "--mechanism", "single", "--json", "--report", page)
    facts = json.loads(ran.out)
    assert ran.code == 0
    assert facts["passed"]
    assert {row["method"] for row in facts["rows"]} == {"exact", "black box"}
    assert "<svg" in page.read_text(encoding="utf-8")
    assert str(page) in ran.err


def test_a_broken_promise_is_exit_code_1(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "weighted-gaussian", Loud)
    ran = run(*QUICK, "--mechanism", "weighted-gaussian")
    assert ran.code == 1
    assert "BROKEN" in ran.out
    assert "promises are broken: weighted-gaussian." in ran.out


def test_unknown_mechanisms_are_refused(run: Any) -> None:
    assert run(*QUICK, "--mechanism", "spis").refused("unknown mechanism 'spis'")


def test_it_does_not_warn_of_what_it_means(run: Any) -> None:
    assert "unwise" not in run("audit", "--quick", "--mechanism", "single").err
