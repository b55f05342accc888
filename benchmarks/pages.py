"""What the first write to fresh memory costs, on ordinary pages and on huge ones.

python benchmarks/pages.py --megabytes 600 --repeats 5
"""

import argparse
import mmap
from collections.abc import Callable
from functools import partial

import numpy as np
from measure import contest, measure


def first_write(size: int, *, huge: bool) -> Callable[[], int]:
    """Map memory; return what writes to all of it."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)

    def run() -> int:
        whole.fill(1)
        return len(whole)

    return run


def main() -> None:
    """Print milliseconds a megabyte for both kinds, in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    size = options.megabytes << 20
    calls = {
        "ordinary": partial(measure, partial(first_write, huge=False), size),
        "huge": partial(measure, partial(first_write, huge=True), size),
    }
    for name, found in contest(calls, options.repeats).items():
        print(f"{name}: {1e3 * found.seconds / options.megabytes:.2f} ms a megabyte")


if __name__ == "__main__":
    main()
