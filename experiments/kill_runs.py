"""Kill commands at random moments: outputs are complete or as they were, and nothing stays behind.

    python experiments/kill_runs.py [--kills 240] [--seed 0]

Every signal in turn, to `select` and `tokenize`, half of them while a file is being written. After
SIGKILL, which nobody can clean up after, a temporary may stay that only its owner can read.
"""

import argparse
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
_START: Final = (sys.executable, "-c", "import sys, dp_sips_command as c; sys.exit(c.main())")
_MARK: Final = "DP_SIPS_KILL_RUN"
_PATIENCE: Final = 60.0
"""Seconds until a process that was told to end counts as one that stays."""
_OLD: Final = "old"


@dataclass(frozen=True)
class Command:
    """A command line, the outputs that it replaces, what they become, and how long that takes."""

    words: tuple[str, ...]
    outputs: tuple[Path, ...]
    contents: tuple[bytes, ...] = ()
    seconds: float = 0.0

    @property
    def folder(self) -> Path:
        """Where the outputs are."""
        return self.outputs[0].parent

    def start(self, mark: str) -> "subprocess.Popen[str]":
        """Start the command with SIGINT as a terminal has it; all that it starts bears the mark."""
        # What a shell runs in the background ignores Ctrl-C, and what it starts inherits that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(  # noqa: S603
                (*_START, *self.words),
                env=os.environ | {_MARK: mark},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        finally:
            signal.signal(signal.SIGINT, before)

    def reset(self) -> None:
        """Remove what earlier runs left, and put the old outputs in place."""
        for path in self.folder.iterdir():
            path.unlink()
        for path in self.outputs:
            path.write_text(_OLD)

    def timed(self) -> "Command":
        """Run the command once, to the end."""
        self.reset()
        begin = time.monotonic()
        process = self.start("")
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        seconds = time.monotonic() - begin
        contents = tuple(path.read_bytes() for path in self.outputs)
        return Command(self.words, self.outputs, contents, seconds)


def commands(folder: Path, *, pieces: int = 12) -> dict[str, Command]:
    """Write small data, and return what to run on it."""
    rows = 300_000
    users, items = (
        [row // 3000 for row in range(rows)],
        [f"item {row % 3000}" for row in range(rows)],
    )
    data, texts = folder / "data.parquet", folder / "texts.parquet"
    pq.write_table(pa.table({"u": users, "i": items}), data)
    text = "Some words, and some more of them. " * 300
    pq.write_table(pa.table({"u": range(100 * pieces), "t": [text] * 100 * pieces}), texts)
    for name in ("selected", "tokens"):
        (folder / name).mkdir()
    released, facts = (folder / "selected" / name for name in ("released.jsonl", "facts.json"))
    tokens = folder / "tokens" / "tokens.parquet"
    # The same release each time, so that a complete output can be told from any other.
    budget = ("--rho", "1", "--delta", "1e-5", "--seed", "1", "--insecure-test")
    select = ("select", str(data), "--user", "u", "--item", "i", *budget, "--quiet", "--force",
              "-o", str(released), "--certificate", str(facts))  # fmt: skip
    tokenize = ("tokenize", str(texts), "--user", "u", "--text", "t", "--quiet", "--force",
                "--processes", "2", "-o", str(tokens))  # fmt: skip
    return {"select": Command(select, (released, facts)), "tokenize": Command(tokenize, (tokens,))}


def kill(command: Command, number: int, chance: random.Random, *, writing: bool) -> list[str]:
    """Run a command, send it a signal at a random moment, and return what is wrong then."""
    command.reset()
    mark = secrets.token_hex(8)
    process = command.start(mark)
    _wait(process, command, chance, writing=writing)
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ["it did not end"]
    return [
        *_wrong_code(process.returncode, number, errors),
        *_wrong_outputs(command, number),
        *_wrong_leftovers(command, number),
        *_left_processes(mark),
    ]


def _wait(
    process: "subprocess.Popen[str]", command: Command, chance: random.Random, *, writing: bool
) -> None:
    end = time.monotonic() + (_PATIENCE if writing else chance.uniform(0, command.seconds))
    while time.monotonic() < end and process.poll() is None:
        if writing and _temporaries(command.folder):
            time.sleep(chance.uniform(0, 0.05))
            return
        time.sleep(0.001)


def _wrong_code(code: int, number: int, errors: str) -> list[str]:
    wrong = []
    if code not in (0, -number, 128 + number):
        wrong.append(f"exit code {code}: {errors[-300:]}")
    # Python itself, before any of our code runs, is not quiet.
    if "Traceback" in errors and "dp_sips" in errors.replace(_START[-1], ""):
        wrong.append(f"a traceback: {errors[-300:]}")
    return wrong


def _wrong_outputs(command: Command, number: int) -> list[str]:
    states = list(map(_state, command.outputs, command.contents))
    wrong = [f"{path.name} is {state}" for path, state in zip(command.outputs, states, strict=True)
             if state not in ("old", "new")]  # fmt: skip
    if number != signal.SIGKILL and len(set(states)) > 1:
        wrong.append(f"outputs are of two runs: {states}")
    return wrong


def _state(path: Path, complete: bytes = b"") -> str:
    """Return whether a file is the old one, a complete new one, or neither."""
    if not path.exists():
        return "gone"
    known = {_OLD.encode(): "old", _timeless(complete): "new"}
    return known.get(_timeless(path.read_bytes()), "half-written")


def _timeless(content: bytes) -> bytes:
    """Return a file without the time of its release, which a certificate names."""
    return re.sub(rb'"time": "[^"]*"', b"", content)


def _temporaries(folder: Path) -> list[Path]:
    return list(folder.glob(".dp-sips-*"))


def _wrong_leftovers(command: Command, number: int) -> list[str]:
    left = [path for path in command.folder.iterdir() if path not in command.outputs]
    if number == signal.SIGKILL:
        left = [path for path in left if path.stat().st_mode & 0o077 and _state(path) != "old"]
    return [f"left behind: {[path.name for path in left]}"] if left else []


def _left_processes(mark: str) -> list[str]:
    """Return the processes that bear the mark, once they have had time to end."""
    end = time.monotonic() + _PATIENCE
    while (found := _marked(mark)) and time.monotonic() < end:
        time.sleep(0.02)
    return [f"a process lives on: {found}"] if found else []


def _marked(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{_MARK}={mark}".encode() in entry.read_bytes():
                found.append(entry.parent.name)
    return found


def main() -> int:
    """Print how often each command was killed by each signal, and everything that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, counts, wrong = random.Random(options.seed), Counter[str](), list[str]()  # noqa: S311
    with tempfile.TemporaryDirectory() as folder:
        known = {name: command.timed() for name, command in commands(Path(folder)).items()}
        for index in range(options.kills):
            number, name = SIGNALS[index % 4], list(known)[index // 4 % 2]
            found = kill(known[name], number, chance, writing=bool(index // 8 % 2))
            counts[f"{name} {number.name}"] += 1
            wrong += [f"kill {index}, {name} by {number.name}: {what}" for what in found]
    print("\n".join(f"{count:>5} {what}" for what, count in sorted(counts.items())))
    print(f"{len(wrong)} went wrong", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
