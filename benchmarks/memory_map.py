"""What memory mapping is worth: the same files, read mapped and read plainly, in turns.

    python benchmarks/memory_map.py [ROWS] [TIMES]

Prints the median seconds of reading every batch, and of touching every byte of it.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Read = Callable[[Path], Iterator[pa.RecordBatch]]
BATCH = 1 << 18


def tables(rows: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield sorted users with integer items, and with the same items as text."""
    rng = np.random.default_rng(0)
    users = np.sort(rng.integers(0, rows // 50, rows))
    items = rng.zipf(1.3, rows) % (rows // 7)
    yield "integers", pa.table({"user": users, "item": items})
    words = pa.array([f"item-{number:07d}" for number in range(rows // 7)])
    yield "texts", pa.table({"user": users, "item": words.take(pa.array(items))})


def write(table: pa.Table, folder: Path, name: str) -> list[Path]:
    """Write a table as Parquet and as an Arrow file."""
    parquet, arrow = folder / f"{name}.parquet", folder / f"{name}.arrow"
    pq.write_table(table, parquet)
    with pa.ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH)
    return [parquet, arrow]


def read_parquet(path: Path, *, mapped: bool) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file as dp-sips does."""
    with pq.ParquetFile(path, memory_map=mapped, pre_buffer=True) as file:
        yield from file.iter_batches(BATCH)


def read_arrow(path: Path, *, mapped: bool) -> Iterator[pa.RecordBatch]:
    """Read an Arrow file as dp-sips does."""
    with (pa.memory_map if mapped else pa.OSFile)(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def seconds(batches: Iterator[pa.RecordBatch]) -> float:
    """Read all of it, one byte of each 64 included: mapped pages are read when touched."""
    start = time.perf_counter()
    for batch in batches:
        for column in batch.columns:
            for buffer in filter(None, column.buffers()):
                np.frombuffer(buffer, np.uint8)[::64].max(initial=0)
    return time.perf_counter() - start


def compare(path: Path, times: int) -> tuple[float, float]:
    """Return the median seconds, mapped and not, of runs that take turns."""
    read: Any = read_parquet if path.suffix == ".parquet" else read_arrow
    runs = [[seconds(read(path, mapped=mapped)) for mapped in (True, False)] for _ in range(times)]
    mapped, plain = zip(*runs, strict=True)
    return statistics.median(mapped), statistics.median(plain)


def main() -> None:
    """Write the files, read them, and print a table."""
    rows, times = [*map(int, sys.argv[1:]), *(20_000_000, 7)[len(sys.argv) - 1 :]]
    print("| file | mapped | not mapped |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables(rows):
            for path in write(table, Path(folder), name):
                mapped, plain = compare(path, times)
                size = path.stat().st_size / 1e6
                print(f"| {path.name}, {size:.0f} MB | {mapped:.2f} s | {plain:.2f} s |")


if __name__ == "__main__":
    main()
