"""Damage files of every kind in thousands of ways: each is read, or refused by an `InputError`.

    python experiments/fuzz_files.py [--mutants 3000] [--seed 0]

Worker processes read the mutants, so that a crash ends one of them and is noticed. Prints how many
were read and refused, and everything else with the seed that makes it again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

SLOW: Final = 60.0
"""Seconds after which a mutant counts as one that hangs."""
_ROWS: Final = 600
_VALUE: Final = "VALUE"
"""In every text of the samples, and so in no message."""

Write = Callable[[pa.Table, Path], object]


@dataclass(frozen=True)
class Mutant:
    """What was made of which sample; the same numbers make the same bytes again."""

    sample: str
    seed: int


def columns() -> dict[str, pa.Array]:
    """Return a column of items for each layout that a file can have."""
    rng = np.random.default_rng(0)
    texts = [f"{_VALUE} {number}" + "x" * int(number % 40) for number in rng.zipf(1.5, _ROWS) % 99]
    lists = [texts[start : start + start % 4] for start in range(_ROWS)]
    return {
        "text": pa.array(texts),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts, pa.string_view()),
        "dictionary": pa.array(texts).dictionary_encode(),
        "bytes": pa.array([text.encode() for text in texts], pa.binary()),
        "list": pa.array(lists, pa.list_(pa.string())),
        "large-list": pa.array(lists, pa.large_list(pa.large_string())),
        "list-view": pa.array(lists, pa.list_view(pa.string())),
        "fixed-list": pa.array([texts[i : i + 2] * 2 for i in range(_ROWS - 1)] + [["a"] * 4],
                               pa.list_(pa.string(), 4)),
        "list-of-dictionary": pa.ListArray.from_arrays(
            pa.array(range(_ROWS + 1), pa.int32()), pa.array(texts).dictionary_encode()
        ),
        "integers": pa.array(rng.integers(0, 50, _ROWS)),
        "decimals": pa.array(rng.integers(0, 50, _ROWS)).cast(pa.decimal128(21, 2)),
        "times": pa.array(rng.integers(0, 86_400, _ROWS).astype("int32")).view(pa.time32("s")),
        "nulls": pa.array([None if i % 3 else text for i, text in enumerate(texts)]),
    }  # fmt: skip


def write_arrow_file(table: pa.Table, path: Path, **options: Any) -> None:
    """Write the file format."""
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=200)


def write_stream(table: pa.Table, path: Path) -> None:
    """Write the stream format."""
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=200)


def write_csv(table: pa.Table, path: Path) -> None:
    """Write CSV; lists have no place in it."""
    pacsv.write_csv(table.cast(pa.schema([("u", pa.string()), ("i", pa.string())])), path)


def write_json(table: pa.Table, path: Path) -> None:
    """Write JSON lines, lists included."""
    rows = (json.dumps(row, default=str) + "\n" for row in table.to_pylist())
    path.write_text("".join(rows), "utf-8")


_KINDS: Final[dict[str, tuple[str, Write]]] = {
    "parquet": (".parquet", lambda table, path: pq.write_table(table, path, row_group_size=200)),
    "checked-parquet": (
        ".parquet",
        lambda table, path: pq.write_table(table, path, write_page_checksum=True),
    ),
    "arrow": (".arrow", write_arrow_file),
    "packed-arrow": (
        ".arrow",
        lambda table, path: write_arrow_file(table, path, compression="lz4"),
    ),
    "stream": (".ipc", write_stream),
    "csv": (".csv", write_csv),
    "json": (".jsonl", write_json),
}
_NOT_IN: Final = {
    "csv": ("list", "large-list", "list-view", "fixed-list", "list-of-dictionary", "bytes"),
    "json": ("bytes",),
    "parquet": ("list-view",),
    "checked-parquet": ("list-view",),
}


def write_samples(folder: Path) -> list[Path]:
    """Write a small file of every kind and layout."""
    written = []
    users = pa.array([f"user {row // 3}" for row in range(_ROWS)])
    for layout, items in columns().items():
        for kind, (suffix, write) in _KINDS.items():
            if layout not in _NOT_IN.get(kind, ()):
                path = folder / f"{kind}-{layout}{suffix}"
                write(pa.table({"u": users, "i": items}), path)
                written.append(path)
    return written


def mutate(content: bytes, seed: int) -> bytes:
    """Return the file with some damage: bits, bytes, words, or whole stretches of it."""
    rng = np.random.default_rng(seed)
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        _DAMAGES[int(rng.integers(len(_DAMAGES)))](damaged, rng)
    return bytes(damaged)


def _place(damaged: bytearray, rng: np.random.Generator) -> int:
    """Choose a place, often near an end: that is where the metadata is."""
    near = int(rng.integers(min(len(damaged), 800) or 1))
    return (near, len(damaged) - 1 - near, int(rng.integers(len(damaged) or 1)))[
        int(rng.integers(3))
    ]


def _flip_bit(damaged: bytearray, rng: np.random.Generator) -> None:
    if damaged:
        damaged[_place(damaged, rng)] ^= 1 << int(rng.integers(8))


def _set_byte(damaged: bytearray, rng: np.random.Generator) -> None:
    if damaged:
        damaged[_place(damaged, rng)] = int(
            rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))])
        )


def _set_word(damaged: bytearray, rng: np.random.Generator) -> None:
    """Put a number where an offset, a size or an index may be."""
    place = _place(damaged, rng) & ~3
    number = int(rng.choice([-1, 2**31 - 1, -(2**31), 600, 601, 2**16, int(rng.integers(9999))]))
    damaged[place : place + 4] = number.to_bytes(4, "little", signed=True)


def _cut(damaged: bytearray, rng: np.random.Generator) -> None:
    del damaged[_place(damaged, rng) :]


def _remove(damaged: bytearray, rng: np.random.Generator) -> None:
    place = _place(damaged, rng)
    del damaged[place : place + int(rng.integers(1, 64))]


def _repeat(damaged: bytearray, rng: np.random.Generator) -> None:
    place, length = _place(damaged, rng), int(rng.integers(1, 64))
    damaged[place:place] = damaged[place : place + length] * int(rng.integers(1, 20))


def _nest(damaged: bytearray, rng: np.random.Generator) -> None:
    """Put brackets, quotes and bytes that are not UTF-8 where text may be."""
    pieces = (b"[" * 30_000, b'{"a":' * 5000, b'"', b"\n", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800")
    place = _place(damaged, rng)
    damaged[place:place] = pieces[int(rng.integers(len(pieces)))]


_DAMAGES: Final = (_flip_bit, _set_byte, _set_word, _set_word, _cut, _remove, _repeat, _nest)

_READER: Final = """
import sys
from dp_sips import DpSipsError, MemoryEngine, select_partitions

def outcome(path):
    try:
        select_partitions(
            path, user="u", item="i", rho=1, delta=1e-6, mechanism="weighted-gaussian",
            engine=MemoryEngine(threads=1), nulls="drop",
        )
    except DpSipsError as error:
        # Names of columns are public, also where damage has made a row the header.
        public = str(error).startswith("no column")
        return "SHOWN" if "VALUE" in str(error) and not public else "refused", error
    except BaseException as error:
        return "FAILED", repr(error)
    return "read", ""

for line in sys.stdin:
    print(ascii(" ".join(map(str, outcome(line[:-1]))))[1:-1][:300].strip(), flush=True)
"""
_LIMIT: Final = 6 << 30
"""Bytes of address space for each reader: a size that a mutant claims must not take the machine."""


class Reader:
    """A process that reads files, one after the other; a new one follows where it dies."""

    def __init__(self) -> None:
        self._process: Any = None

    def __call__(self, path: Path) -> str:
        """Return "read", "refused …", or what went wrong."""
        process = self._running()
        impatience = Timer(SLOW, process.kill)
        impatience.start()
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        answer: str = process.stdout.readline()
        late = not impatience.is_alive()
        impatience.cancel()
        if not answer:
            return "HUNG" if late else f"CRASHED with code {process.wait()}"
        return answer.strip()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError):
                self._process.communicate()

    def _running(self) -> Any:
        if self._process is None or self._process.poll() is not None:
            self.close()
            pipe = subprocess.PIPE
            limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({_LIMIT},) * 2)"
            self._process = subprocess.Popen(  # noqa: S603
                (sys.executable, "-c", limited + _READER),
                stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        return self._process


def fuzz(mutants: int, seed: int, processes: int) -> Iterator[tuple[Mutant, str]]:
    """Yield what became of each mutant."""
    with tempfile.TemporaryDirectory() as folder:
        samples = write_samples(Path(folder))
        shares = [
            [(samples[n % len(samples)], seed + n) for n in range(start, mutants, processes)]
            for start in range(processes)
        ]
        with ThreadPoolExecutor(processes) as pool:
            for found in pool.map(_read_share, shares):
                yield from found


def _read_share(share: list[tuple[Path, int]]) -> list[tuple[Mutant, str]]:
    reader, found = Reader(), []
    try:
        for sample, seed in share:
            path = sample.with_name(f"mutant-{seed}{sample.suffix}")
            path.write_bytes(mutate(sample.read_bytes(), seed))
            found.append((Mutant(sample.name, seed), reader(path)))
            path.unlink()
    finally:
        reader.close()
    return found


def is_fine(outcome: str) -> bool:
    """Whether a file was read, or refused without showing a value."""
    return outcome.startswith(("read", "refused"))


def main() -> int:
    """Print the counts and every mutant that is neither read nor refused."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    bad = []
    for mutant, outcome in fuzz(options.mutants, options.seed, options.processes):
        counts[outcome.split()[0]] += 1
        if not is_fine(outcome):
            bad.append(f"{mutant.sample} seed {mutant.seed}: {outcome}")
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
