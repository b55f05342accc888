"""dp-sips report, and --report of select and count."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def released(select: Any, tmp_path: Path) -> tuple[Path, Path]:
    items, certificate = tmp_path / "items.parquet", tmp_path / "release.json"
    flags = ("--mechanism", "sips", "-o", items, "--certificate", certificate)
    assert select(*flags).code == 0
    return items, certificate


def test_a_page_with_the_release(select: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    ran = select("--report", path, "--mechanism", "sips")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "item"
    page = path.read_text("utf-8")
    assert "3 items of" in page
    assert "<td><bdi>jam</bdi></td>" in page
    assert "own-" not in page


def test_the_page_has_the_digest_of_the_file(select: Any, tmp_path: Path) -> None:
    items, page = tmp_path / "items.csv", tmp_path / "page.html"
    assert select("-o", items, "--report", page, "--mechanism", "sips").code == 0
    assert hashlib.sha256(items.read_bytes()).hexdigest() in page.read_text("utf-8")


def test_counts_have_it_too(run: Any, data: Path, tmp_path: Path) -> None:
    usual = "--user user --item item --epsilon 4 --delta 1e-9 --mechanism sips"
    assert run("count", data, *usual.split(), "--report", tmp_path / "counts.html").code == 0
    page = (tmp_path / "counts.html").read_text("utf-8")
    assert "<code><bdi>users</bdi></code>" in page


def test_from_a_certificate(run: Any, released: tuple[Path, Path]) -> None:
    _, certificate = released
    ran = run("report", certificate)
    page = certificate.with_suffix(".html")
    assert (ran.code, ran.out) == (0, f"{page}\n")
    text = page.read_text("utf-8")
    assert "✓ This page computed them" in text
    assert "How many users an item needed" in text
    assert 'id="items"' not in text


def test_with_the_items(run: Any, released: tuple[Path, Path], tmp_path: Path) -> None:
    items, certificate = released
    path = tmp_path / "page.html"
    ran = run("report", certificate, "--items", items, "-o", path, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    text = path.read_text("utf-8")
    assert "<td><bdi>rice</bdi></td>" in text
    assert f"{hashlib.sha256(items.read_bytes()).hexdigest()}  items.parquet" in text


def test_a_certificate_that_was_changed(run: Any, released: tuple[Path, Path]) -> None:
    _, certificate = released
    facts = json.loads(certificate.read_text())
    facts["rounds"][0]["threshold"] /= 2
    certificate.write_text(json.dumps(facts))
    assert run("report", certificate).code == 0
    text = certificate.with_suffix(".html").read_text("utf-8")
    assert "✓" not in text
    assert "do not follow from these parameters" in text


def test_nothing_is_replaced_unless_forced(
    run: Any, select: Any, released: tuple[Path, Path], tmp_path: Path
) -> None:
    _, certificate = released
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert run("report", certificate, "-o", page).refused("page.html exists", "--force")
    assert select("--report", page).refused("page.html exists", "--force")
    assert page.read_text() == "mine"
    assert run("report", certificate, "-o", page, "--force").code == 0
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_certificate_and_the_items_are_not_replaced(
    run: Any, released: tuple[Path, Path]
) -> None:
    items, certificate = released
    for path in (certificate, items):
        ran = run("report", certificate, "--items", items, "-o", path, "--force")
        assert ran.refused("is an input file")


def test_a_failure_writes_none_of_the_files(select: Any, tmp_path: Path) -> None:
    out, page = tmp_path / "items.csv", tmp_path / "page.html"
    assert select("-o", out, "--report", out).refused("-o and --report are the same file")
    assert select("-o", out, "--report", tmp_path / "no" / "page.html").refused("no folder")
    assert not out.exists()
    assert not page.exists()


@pytest.mark.parametrize("text", ["{}", "no JSON"])
def test_what_is_not_a_certificate(run: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    assert run("report", path).refused("c.json is not a certificate", "--certificate")
    assert not path.with_suffix(".html").exists()


def test_missing_files(run: Any, released: tuple[Path, Path], tmp_path: Path) -> None:
    _, certificate = released
    assert run("report", tmp_path / "none.json").refused("none.json cannot be read: No such file")
    assert run("report", certificate, "--items", tmp_path / "none.csv").refused("none.csv")
    assert run("report").refused("CERTIFICATE")


def test_items_of_another_release(run: Any, released: tuple[Path, Path], tmp_path: Path) -> None:
    _, certificate = released
    other = tmp_path / "other.csv"
    other.write_text("city\nLima\n")
    assert run("report", certificate, "--items", other).refused(
        "other.csv is not the file of this certificate", "SHA-256"
    )
    facts = json.loads(certificate.read_text())
    certificate.write_text(json.dumps(facts | {"output": None}))
    assert run("report", certificate, "--items", other).refused("other.csv", "'item'")
    other.write_text("item\nLima\n")
    assert run("report", certificate, "--items", other).refused("1 rows", "says 3")
