"""The paper's largest data set, with more and more of its users: benchmarks/largest.py runs it."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import largest_page

NAMES: Final = {
    "weighted-gaussian": "Weighted Gaussian",
    "sips": "SIPS",
    "dpsu": "DPSU",
    "gw": "GW",
    "auto": "auto (ours)",
    largest_page.GENERATE: "generating the data",
}
"""What the page calls the runs' mechanisms."""

_SCRIPT: Final = Path(largest_page.__file__).with_name("largest.py")


def measure(users: Iterable[int], out: Path) -> None:
    """Do those runs that largest.csv lacks, and add them to it."""
    kept = out / "largest.csv"
    with tempfile.TemporaryDirectory() as folder:
        if kept.exists():
            shutil.copy(kept, folder)
        command = [sys.executable, _SCRIPT, "--out", folder, "--resume", "--users", *users]
        ended = subprocess.run(list(map(str, command)), check=False)
        if (done := Path(folder) / "largest.csv").exists():
            shutil.copy(done, kept)
    if ended.returncode:
        raise ChildProcessError(f"benchmarks/largest.py ended with {ended.returncode}: see above")
