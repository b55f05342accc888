"""Hand a release on to other libraries, each in an environment of its own.

    python experiments/hand_on/run.py [--environments DIR] [names …]

Makes a release with dp-sips in a temporary folder; for each library, makes a virtual environment,
installs the library by name, and runs its script on the release's files. What it downloads is
large. With --environments, environments are kept in DIR, and used again.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from venv import EnvBuilder

import pyarrow as pa
from pyarrow import csv

import dp_sips
from dp_sips.cli import main as command

LIBRARIES = {
    "opendp": ("opendp[polars]",),
    "tumult": ("tmlt.analytics",),
    "pipelinedp": ("pipeline-dp",),
    "dpmm": ("dpmm",),
    "tokenizers": ("tokenizers",),
}
"""What is installed for each script."""


def main() -> None:
    """Run the scripts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=Path, help="where to keep environments")
    parser.add_argument("names", nargs="*", choices=[*LIBRARIES, []], help="all unless named")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_release(folder)
        for name in options.names or LIBRARIES:
            python = environment(name, options.environments or folder / "environments")
            script = Path(__file__).with_name(f"with_{name}.py")
            print(f"== {name}: {versions(python)}", flush=True)
            subprocess.run([python, script, folder], check=True, env=_plain())


def make_release(folder: Path) -> None:
    """Write visits.csv, the released cities.csv, and words.txt, the released words of texts."""
    users = range(1000)
    rows = [(user, city) for user in users for city in ("Paris", "Rome")]
    rows += [(user, f"village {user}") for user in users]
    columns = dict(zip(("user", "city"), map(pa.array, zip(*rows, strict=True)), strict=True))
    csv.write_csv(pa.table(columns), folder / "visits.csv")
    flags = ["--epsilon", "1", "--delta", "1e-6", "--quiet"]
    visits, cities = str(folder / "visits.csv"), str(folder / "cities.csv")
    assert (
        command(["select", visits, "--user", "user", "--item", "city", *flags, "-o", cities]) == 0
    )
    texts = {user: [f"tea or jam {user}"] for user in users}
    words = dp_sips.select_partitions(texts, item=dp_sips.text.words(), epsilon=1, delta=1e-6)
    (folder / "words.txt").write_text("\n".join(words.items) + "\n", "utf-8")


def environment(name: str, folder: Path) -> Path:
    """Return the Python of a virtual environment that has a library."""
    python = folder / name / "bin" / "python"
    if not python.exists():
        EnvBuilder(with_pip=True).create(folder / name)
        install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", *LIBRARIES[name]]
        subprocess.run(install, check=True, env=_plain())
    return python


def versions(python: Path) -> str:
    """Return the interpreter's version, and those of the libraries."""
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    ).stdout
    known = {package.split("[")[0] for packages in LIBRARIES.values() for package in packages}
    found = [line for line in listed.splitlines() if line.split("==")[0] in known]
    return ", ".join([f"Python {sys.version.split()[0]}", *found])


def _plain() -> dict[str, str]:
    """Return the environment without what is meant for this project's own."""
    return {k: v for k, v in os.environ.items() if k not in {"PIP_CONSTRAINT", "PYTHONPATH"}}


if __name__ == "__main__":
    main()
