"""The command line as a process: exit codes, pipes, signals, imports."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DP_SIPS = (sys.executable, "-m", "dp_sips")
# Processes draw for real. With this hint auto runs what releases common items for sure, and with
# this δ, one of the 300 items that are a user's own in less than one run of a hundred million.
ENOUGH = (
    *("--user", "user", "--item", "item", "--epsilon", "1", "--delta", "1e-9"),
    *("--items-per-user", "100"),
)


def call(*words: object) -> "subprocess.CompletedProcess[str]":
    argv = (*DP_SIPS, *map(str, words))
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_exit_codes(data: Path) -> None:
    assert call("select", data, *ENOUGH).returncode == 0
    refused = call("select", data, *ENOUGH, "--delta", "2")
    assert refused.returncode == 2
    assert refused.stderr == "dp-sips: error: --delta must be in (0, 1), got 2.0\n"


def test_a_reader_that_stops_reading_is_no_failure(data: Path) -> None:
    for words in (("select", str(data), *ENOUGH), ("--help",), ("plan", "--rho=1", "--delta=1e-5")):
        read, write = os.pipe()
        os.close(read)
        ran = subprocess.run(
            (*DP_SIPS, *words), stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
        os.close(write)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_a_full_disk_behind_stdout(data: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            (*DP_SIPS, "select", data, *ENOUGH),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr == ("dp-sips: error: stdout could not be written: No space left on device\n")


def in_shell(redirection: str, *words: object) -> "subprocess.CompletedProcess[str]":
    argv = ("sh", "-c", f'exec "$@" {redirection}', "sh", *DP_SIPS, *map(str, words))
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
def test_streams_that_nobody_needs_may_be_closed_or_full(
    data: Path, tmp_path: Path, redirection: str
) -> None:
    path = tmp_path / "o.csv"
    ran = in_shell(redirection, "select", data, *ENOUGH, "-o", path)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "Traceback" not in ran.stderr
    assert path.read_text() == "item\njam\nrice\ntea\n"
    assert in_shell(redirection, "select", data, *ENOUGH, "--bad").returncode == 2


@pytest.mark.parametrize("flags", [(), ("--json",), ("--format", "txt"), ("--json", "-o")])
def test_a_closed_stdout(data: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    more = (tmp_path / "o.csv",) if "-o" in flags else ()
    ran = in_shell(">&-", "select", data, *ENOUGH, *flags, *more)
    assert ran.returncode == 1
    assert ran.stderr == "dp-sips: error: stdout could not be written: it is closed\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


def test_a_standard_input_that_cannot_be_read() -> None:
    ran = in_shell("0>/dev/null", "select", "-", *ENOUGH)
    assert ran.returncode == 2
    assert ran.stderr == "dp-sips: error: standard input cannot be read: Bad file descriptor\n"


def in_ascii(*words: object) -> "subprocess.CompletedProcess[str]":
    argv, env = (*DP_SIPS, *map(str, words)), os.environ | {"PYTHONIOENCODING": "ascii"}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def test_characters_that_the_terminal_lacks() -> None:
    ran = in_ascii("plan", "--rho=1", "--delta=1e-5")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\\u221a" in ran.stdout


def test_json_is_json_in_any_encoding(tmp_path: Path) -> None:
    item, path = "th\xe9\U0001f600", tmp_path / "d.parquet"
    pq.write_table(pa.table({"user": range(300), "item": [item] * 300}), path)
    for shown in (call, in_ascii):
        ran = shown("select", path, *ENOUGH, "--json", "--quiet")
        assert json.loads(ran.stdout)["items"] == [item]


def test_an_interrupt_while_generating_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    process = start((*DP_SIPS, "generate", "--users", "999999999", "-o", str(path)))
    while not has_content(tmp_path):
        assert process.poll() is None
        time.sleep(0.02)
    assert interrupted(process)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_generating_many_files_leaves_no_folder(tmp_path: Path) -> None:
    flags = ("--users", "999999999", "--files", "1000", "-o", str(tmp_path / "s"))
    process = start((*DP_SIPS, "generate", *flags))
    while not any(path.stat().st_size for path in tmp_path.glob(".dp-sips-*/part-*")):
        assert process.poll() is None
        time.sleep(0.02)
    assert interrupted(process)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_tokenizing_leaves_no_file_and_no_process(tmp_path: Path) -> None:
    docs, out = tmp_path / "docs.csv", tmp_path / "out"
    out.mkdir()
    text = "Some words, and some more of them. " * 40
    docs.write_text("author,body\n" + "".join(f'{i},"{text}"\n' for i in range(60_000)))
    flags = ("--user", "author", "--text", "body", "--processes", "2")
    process = start((*DP_SIPS, "tokenize", str(docs), *flags, "-o", str(out / "t.parquet")))
    while not has_content(out):
        assert process.poll() is None
        time.sleep(0.02)
    workers = children(process.pid)
    assert len(workers) == 2
    assert interrupted(process)
    assert list(out.iterdir()) == []
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        time.sleep(0.02)


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_an_interrupt_while_arrow_reads_is_no_crash(tmp_path: Path) -> None:
    path, out = tmp_path / "d.csv", tmp_path / "o.csv"
    path.write_bytes(b"user,item\n" + b"1234567,7654321\n" * 4_000_000)
    flags = ("--engine", "reference", "-o", str(out))
    process = start((sys.executable, "-c", READ_AND_TELL, "select", str(path), *ENOUGH, *flags))
    assert process.stdout is not None
    # Past the first batch: while pyarrow imports pandas for it, it swallows interrupts.
    assert [process.stdout.readline() for _ in range(4)] == ["reading\n"] * 4
    assert interrupted(process)
    assert [path.name for path in tmp_path.iterdir()] == ["d.csv"]


READ_AND_TELL = """
import sys
from dp_sips.cli import main
from dp_sips.engines import reference
value_blocks = reference.value_blocks
def tell(*args):
    print("reading", flush=True)
    return value_blocks(*args)
reference.value_blocks = tell
sys.exit(main())
"""
RUN_AND_TELL = """
import sys
from dp_sips.cli import main
from dp_sips.engines.reference import ReferenceContributions
weigh = ReferenceContributions.weigh
def tell(self, *bounds, **more):
    print("weighing", flush=True)
    while True:
        weigh(self, *bounds, **more)
ReferenceContributions.weigh = tell
sys.exit(main())
"""


def test_an_interrupt_while_selecting_leaves_no_file(data: Path, tmp_path: Path) -> None:
    flags = ("--engine", "reference", "--mechanism", "sips", "-o", str(tmp_path / "o.csv"))
    process = start((sys.executable, "-c", RUN_AND_TELL, "select", str(data), *ENOUGH, *flags))
    assert process.stdout is not None
    assert process.stdout.readline() == "weighing\n"
    assert interrupted(process)
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


def test_an_interrupt_says_that_checkpoint_and_booking_stay(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    in_memory = RUN_AND_TELL.replace("reference", "memory.contributions")
    script = in_memory.replace("ReferenceContributions", "MemoryContributions")
    ledger = tmp_path / "book.json"
    assert call("ledger", "create", ledger, "--epsilon=1", "--delta=1e-9").returncode == 0
    saved = ("--checkpoint", str(folder), "--ledger", str(ledger))
    flags = ("--engine", "memory", "--mechanism", "sips", *saved)
    process = start((sys.executable, "-c", script, "select", str(data), *ENOUGH, *flags))
    assert process.stdout is not None
    assert process.stdout.readline() == "weighing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    kept, end = err.splitlines()
    assert kept.startswith(f"checkpoint {folder} stays: the same command goes on from there")
    assert end == (
        "dp-sips: error: interrupted: nothing was written. The release stays booked in "
        f"{ledger}, as the run may have read some of the data."
    )
    assert (folder / "run.json").exists()


def start(argv: Sequence[str]) -> "subprocess.Popen[str]":
    # A shell's background jobs ignore Ctrl-C, and what they start inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)


def has_content(folder: Path) -> bool:
    # The file that only probes whether the folder can be written vanishes at once.
    with suppress(FileNotFoundError):
        return any(part.stat().st_size for part in folder.iterdir())
    return False


def interrupted(process: "subprocess.Popen[str]") -> bool:
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    return process.returncode == 130 and err == "dp-sips: error: interrupted: nothing was written\n"


@pytest.mark.parametrize("words", [["plan", "--rho=1", "--delta=1e-5"], ["--help"]], ids=str)
def test_planning_imports_no_arrow(words: list[str]) -> None:
    script = f"import sys, dp_sips.cli; dp_sips.cli.main({words}); print('pyarrow' in sys.modules)"
    ran = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "False"
