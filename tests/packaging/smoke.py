"""What an installed package must be able to do: cibuildwheel runs this on every wheel, too."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import dp_sips
from dp_sips.engines.memory import folds, kernels, settling, texts

# A person with both cities among 900: a miss has a probability below 1e-6.
VISITS = {f"user {n}": ["Lima", "Rome"] for n in range(900)}


def main() -> None:
    assert "site-packages" in Path(dp_sips.__file__).parts
    for module in (folds, kernels, settling, texts):
        assert not str(module.__file__).endswith(".py")
    for mechanism in ("sips", "cumulative", "matching"):
        selection = dp_sips.select_partitions(
            VISITS, epsilon=2, delta=1e-5, mechanism=mechanism, progress=False
        )
        assert list(selection.items) == ["Lima", "Rome"], mechanism
    for command in (
        [str(Path(sys.executable).parent / "dp-sips")],
        [sys.executable, "-m", "dp_sips"],
    ):
        shown = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert shown.stdout == f"dp-sips {version('dp-sips')}\n"


if __name__ == "__main__":
    main()
