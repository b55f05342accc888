"""SIGKILL at every change of a file: the same command goes on, and books its release once."""

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.cli.conftest import FLAGS

# One process, in which what takes long is done, starts the others as copies of itself. A copy kills
# itself just before it makes, renames or removes its n-th file.
SCRIPT = """
import json, os, signal, sys, tempfile
import pandas, pyarrow.pandas_compat
import dp_sips.cli.select
import dp_sips.engines.memory
from dp_sips.cli import main
from dp_sips.ledger import Ledger

dp_sips.plan(dp_sips.Sips(rounds=2), epsilon=1, delta=1e-5)
data, flags = sys.argv[1], sys.argv[2:]


def changes(event, args):
    if event == "open":
        return bool(args[2] & os.O_CREAT)
    return event in {"os.mkdir", "os.rename", "os.link", "os.chmod", "os.remove", "os.rmdir"}


def run(folder, words, last=None):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    seen = [0]

    def count(event, args):
        if changes(event, args) and str(args[0]).startswith(folder):
            seen[0] += 1
            if seen[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    code = 99
    try:
        code = main(words)
    finally:
        os._exit(code)


for last in range(1, 1000):
    folder = tempfile.mkdtemp(dir=os.getcwd())
    saved, out, book = (os.path.join(folder, name) for name in ("saved", "o.csv", "book.json"))
    Ledger.create(book, epsilon=1, delta=1e-5)
    words = ["select", data, *flags, "--checkpoint", saved, "-o", out, "--ledger", book]
    killed = run(folder, words, last)
    written, going_on = os.path.exists(out), os.path.exists(os.path.join(saved, "run.json"))
    again = None
    if going_on or not written:
        again = run(folder, [*words, "--force"] if written else words)
    print(json.dumps({
        "last": last,
        "killed": killed,
        "again": again,
        "entries": len(Ledger(book).entries),
        "header": os.path.exists(out) and open(out).readline(),
        "left": os.listdir(saved) if again is not None and os.path.exists(saved) else [],
    }), flush=True)
    if killed == 0:
        break
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("killed")
    data = folder / "data.csv"
    data.write_text("user,item\n" + "".join(f"{user},tea\n" for user in range(300)))
    flags = [*FLAGS[:-2], "--mechanism", "sips", "--rounds", "2", "--engine", "memory", "--quiet"]
    argv = (sys.executable, "-c", SCRIPT, str(data), *flags)
    ran = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_every_step_was_the_last_of_a_run(runs: list[dict[str, Any]]) -> None:
    *killed, whole = runs
    assert {run["killed"] for run in killed} == {-9}
    assert whole["killed"] == 0
    assert len(killed) > 30


def test_the_same_command_goes_on(runs: list[dict[str, Any]]) -> None:
    assert [run for run in runs if run["again"] not in {0, None}] == []
    assert [run for run in runs if run["header"] != "item\n" or run["left"]] == []


def test_the_ledger_has_one_entry(runs: list[dict[str, Any]]) -> None:
    assert [run for run in runs if run["entries"] != 1] == []
