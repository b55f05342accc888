"""The package as others get it: from a source distribution, built where there is no Cython."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEMORY = "active folds kernels ordering reducing repeats scattering settling tables texts"
LOOPS = {
    *(f"engines/memory/{name}" for name in MEMORY.split()),
    "mechanisms/adding",
    "privacy/inversion",
    "sources/splitting",
    "views",
}
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
    "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution of these files, built in an environment of its own."""
    folder = tmp_path_factory.mktemp("sdist")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in listed.splitlines():
        if name.startswith("src/") or "/" not in name:
            target = folder / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, folder / "tree", cwd=folder)
    (found,) = folder.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with setuptools alone."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "setuptools", cwd=folder)
    return python


@pytest.fixture(scope="module")
def wheel(sdist: Path, clean: Path) -> Path:
    folder = sdist.parent
    run(
        clean, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", sdist,
        cwd=folder,
    )  # fmt: skip
    (found,) = folder.glob("*.whl")
    return found


def test_the_sdist_brings_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folder = "src/dp_sips/engines/memory"
    assert {f"src/dp_sips/{name}.c" for name in LOOPS} <= names
    assert {f"{folder}/mixing.pxd", f"{folder}/kernels.pyx", "CITATION.cff", "LICENSE"} <= names


def test_the_wheel_has_the_loops_and_no_sources_of_theirs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    compiled = {name.split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    assert compiled == {f"dp_sips/{name}" for name in LOOPS}
    assert not [name for name in names if name.endswith((".c", ".pyx"))]
    assert {"dp_sips/py.typed", "dp_sips/privacy/README.md"} <= set(names)


def test_the_wheel_selects_in_a_clean_environment(wheel: Path, clean: Path, tmp_path: Path) -> None:
    run(clean, "-m", "pip", "install", "--quiet", "--no-compile", wheel, cwd=tmp_path)
    assert "Cython" not in run(clean, "-m", "pip", "list", cwd=tmp_path)
    run(clean, ROOT / "tests" / "packaging" / "smoke.py", cwd=tmp_path)
