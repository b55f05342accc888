"""How long the first second feels: importing the package, and selecting from a small file.

python benchmarks/startup.py
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import synthetic


def main() -> None:
    """Print the median of five runs of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = synthetic(Path(folder), users=180)  # about 10,000 rows
        select = [
            *("-m", "dp_sips", "select", str(path), "--user", "user", "--item", "item"),
            *("--epsilon", "1", "--delta", "1e-6", "--quiet", "-o", str(path.with_suffix(".csv"))),
            "--force",
        ]
        bare = _seconds(["-c", "pass"])
        print(f"python itself:          {bare:.2f} s")
        print(f"import dp_sips:         {_seconds(['-c', 'import dp_sips']) - bare:.2f} s on top")
        print(f"dp-sips select, 10k rows: {_seconds(select):.2f} s in all")


def _seconds(arguments: list[str]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main()
