from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_sips.cli import main

COMMON = ("jam", "rice", "tea")
# With this hint, auto runs what releases common items for sure.
FLAGS = [
    "--user",
    "user",
    "--item",
    "item",
    "--epsilon",
    "1",
    "--delta",
    "1e-5",
    "--items-per-user",
    "100",
]


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    def refused(self, *words: str) -> bool:
        """Whether it failed on bad usage or input, with one line that has all of the words."""
        one_line = self.err.startswith("dp-sips: error: ") and self.err.count("\n") == 1
        return (
            self.code == 2 and not self.out and one_line and all(word in self.err for word in words)
        )


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def run(*argv: object) -> Ran:
        code = main([str(word) for word in argv])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """300 users with three items that all have, and one of their own."""
    path = tmp_path / "data.parquet"
    pq.write_table(make_data(), path)
    return path


def make_data(users: int = 300) -> pa.Table:
    rows = [(user, item) for user in range(users) for item in (*COMMON, f"own-{user}")]
    return pa.table({"user": [u for u, _ in rows], "item": [i for _, i in rows]})


@pytest.fixture
def select(run: Run, data: Path) -> Run:
    """Run `dp-sips select` on the data, with more flags."""

    def select(*flags: object) -> Ran:
        return run("select", data, *FLAGS, *flags)

    return select
