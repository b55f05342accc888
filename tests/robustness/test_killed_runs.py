"""Signals, full disks and small memory end a run cleanly: all of its outputs, or none."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

START = (sys.executable, "-c", "import sys, dp_sips_command as c; sys.exit(c.main())")


@pytest.fixture(scope="module")
def kill_runs() -> Any:
    return import_module("kill_runs")


@pytest.fixture(scope="module")
def commands(kill_runs: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    found = kill_runs.commands(tmp_path_factory.mktemp("killed"))
    return {name: command.timed() for name, command in found.items()}


@pytest.mark.parametrize("writing", [True, False])
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
@pytest.mark.parametrize("name", ["select", "tokenize"])
def test_signals(name: str, number: str, kill_runs: Any, commands: Any, *, writing: bool) -> None:
    chance = random.Random(f"{name} {number} {writing}")
    for _ in range(2 if name == "select" else 1):
        wrong = kill_runs.kill(commands[name], signal.Signals[number], chance, writing=writing)
        assert wrong == []


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    script = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from dp_sips.cli import signals\n"
        "signals.quiet_at_signals(); signals.unwind_at_signals()\n"
        "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
        "print(signal.getsignal(signal.SIGTERM) is signals._raise)\n"
    )
    ran = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=True)
    assert ran.stdout == "True\nTrue\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("pause", [0.01, 0.1, 0.2])
def test_ctrl_c_during_imports_is_quiet(pause: float) -> None:
    script = "import sys, dp_sips_command as c; print('started', flush=True); sys.exit(c.main())"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        (sys.executable, "-c", script, "demo"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode in (-signal.SIGINT, 130)
    assert errors in ("", "dp-sips: error: interrupted: nothing was written\n")


def limited(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, most))


def run(limit: Callable[[], None], *words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        (*START, *map(str, words)),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    table = pa.table({"u": [row // 3 for row in range(3000)], "i": ["a", "b", "c"] * 1000})
    pq.write_table(table, path)
    return path


BUDGET = ("--user", "u", "--item", "i", "--rho", "1", "--delta", "1e-5", "--quiet")


@pytest.mark.parametrize("old", [True, False])
def test_no_room_for_the_certificate(data: Path, tmp_path: Path, *, old: bool) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    released, facts = folder / "o.csv", folder / "c.json"
    for path in (released, facts) if old else ():
        path.write_text("old")
    words = ("select", data, *BUDGET, "-o", released, "--certificate", facts, "--force")
    ran = run(limited(resource.RLIMIT_FSIZE, 200), *words)
    assert ran.returncode == 1
    assert ran.stderr == f"dp-sips: error: {facts} could not be written: File too large\n"
    assert {path.name: path.read_text() for path in folder.iterdir()} == (
        {"o.csv": "old", "c.json": "old"} if old else {}
    )


@pytest.mark.parametrize("gigabytes", [0.06, 0.3, 0.6, 1.0])
def test_a_limit_on_addresses_is_one_clear_line(data: Path, gigabytes: float) -> None:
    ran = run(limited(resource.RLIMIT_AS, int(gigabytes * 2**30)), "select", data, *BUDGET)
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert "ulimit -v" in ran.stderr


LITTLE_MEMORY = """
import sys
from dp_sips.cli import main
from dp_sips.engines.memory import loading, spilling

runs, write = [], loading.write_run
spilling.memory_left = lambda: 150_000_000
loading.write_run = lambda *words: runs.append(1) or write(*words)
code = main(sys.argv[1:])
sys.exit(code or (0 if len(runs) > 1 else "memory was enough"))
"""


def test_more_pairs_than_memory(tmp_path: Path) -> None:
    """What does not fit goes to disk, and nothing of it stays there."""
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"u": range(3_000_000), "i": [*range(1_500_000)] * 2}), path)
    words = ("select", str(path), *BUDGET, "--spill-folder", str(tmp_path))
    ran = subprocess.run(
        (sys.executable, "-c", LITTLE_MEMORY, *words), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert os.listdir(tmp_path) == ["data.parquet"]  # noqa: PTH208


KILLED_AFTER_A_ROUND = """
import os, signal, sys
from dp_sips import checkpoint
from dp_sips.cli import main

save = checkpoint.Checkpoint.save


def save_and_die(self, rounds, contributions):
    save(self, rounds, contributions)
    if rounds == 1:
        os.kill(os.getpid(), signal.SIGKILL)


checkpoint.Checkpoint.save = save_and_die
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """The second run finds one finished round, and the release is that of an undisturbed run."""
    rows = [(user, f"item {item}") for user in range(400) for item in range(user % 30)]
    users, items = zip(*rows, strict=True)
    pq.write_table(pa.table({"user": users, "item": items}), tmp_path / "data.parquet")
    flags = "select data.parquet --user user --item item --rho 1 --delta 1e-3 --mechanism sips"
    test = f"{flags} --seed 5 --insecure-test -o".split()

    def run(start: tuple[str, ...], *words: str) -> int:
        ran = subprocess.run((*start, *words), cwd=tmp_path, capture_output=True, check=False)
        return ran.returncode

    saved = ("--checkpoint", "run")
    first = run((sys.executable, "-c", KILLED_AFTER_A_ROUND), *test, "resumed.csv", *saved)
    assert first == -signal.SIGKILL
    assert not (tmp_path / "resumed.csv").exists()
    assert (tmp_path / "run" / "state.npz").exists()
    assert run(START, *test, "resumed.csv", *saved) == 0
    assert run(START, *test, "undisturbed.csv") == 0
    assert (tmp_path / "resumed.csv").read_bytes() == (tmp_path / "undisturbed.csv").read_bytes()
    assert len((tmp_path / "resumed.csv").read_text().splitlines()) > 1
    assert not (tmp_path / "run").exists()
