"""Addresses and columns in paths, on the command line."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import COMMON, make_data

FLAGS = ["--user", "user", "--epsilon", "1", "--delta", "1e-5", "--items-per-user", "100"]


@pytest.fixture
def store() -> Iterator[str]:
    """A folder of the file system memory://, with files as Hive writes them."""
    files = fsspec.filesystem("memory")
    for day in (1, 2):
        sink = io.BytesIO()
        pq.write_table(make_data(), sink)
        files.pipe(f"/shop/logs/day=0{day}/0.parquet", sink.getvalue())
    yield "memory://shop/logs"
    files.rm("/shop", recursive=True)


def test_select_from_elsewhere(run: Any, store: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    ran = run("select", store, *FLAGS, "--item", "item", "-o", out)
    assert ran.code == 0
    assert set(out.read_text().split()) == {"item", *COMMON}
    ran = run("select", f"{store}/day=01", *FLAGS, "--item", "day", "--item", "item", "--quiet")
    assert ran.out.splitlines() == ["day,item", *(f"01,{item}" for item in COMMON)]


def test_a_dry_run_shows_columns_in_paths(run: Any, store: str) -> None:
    flags = [*FLAGS, "--item", "day", "--item", "item", "--dry-run"]
    ran = run("select", store, *flags)
    assert ran.out.startswith(
        "Would read 2 files from memory://shop/logs/day=…/0.parquet on:\n"
        "  user  user (int64)\n"
        "  item  day (string)\n"
        "  item  item (string)\n"
    )
    assert "item  day (int64)" in run("select", store, *flags, "--type", "day=int").out


def test_tokenize_from_elsewhere(run: Any, store: str, tmp_path: Path) -> None:
    out = tmp_path / "words.parquet"
    flags = ["--user", "user", "--text", "item", "--processes", "1", "--quiet", "-o", out]
    assert run("tokenize", f"{store}/day=01", *flags).code == 0
    assert pq.read_table(out).num_rows > 0


@pytest.mark.parametrize("flag", ["-o", "--certificate", "--report"])
def test_outputs_are_local(select: Any, flag: str) -> None:
    ran = select(flag, "s3://someone:SECRET@bucket/out.csv")
    assert ran.refused("s3://… cannot be written", "copy that with the store's own tool")
    assert "SECRET" not in ran.err


def test_credentials_stay_out_of_sight(run: Any) -> None:
    ran = run("select", "sftp://me:SECRET@here/a.csv?key=SECRET", *FLAGS, "--item", "item")
    assert ran.refused("sftp://here/a.csv cannot be read", "paramiko")
    assert "SECRET" not in ran.err
