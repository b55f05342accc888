"""The compiled loops of the memory engine; everything else is in pyproject.toml.

What they share of Cython, its memory views, is a module of its own: compiled once instead of four
times. Where Cython is not installed, the C files that a source distribution brings are compiled.
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from Cython.Build import cythonize
except ImportError:
    cythonize = None

FOLDER = Path("src", "dp_sips", "engines", "memory")
PACKAGE = "dp_sips.engines.memory"
SHARED = f"{PACKAGE}.views"
CORES = os.cpu_count() or 1


class BuildOnAllCores(build_ext):
    """Compile as many files at a time as there are cores, unless told otherwise."""

    def finalize_options(self) -> None:
        """Set what nobody has set."""
        super().finalize_options()
        self.parallel = self.parallel or CORES


def loops() -> list[Extension]:
    """Return what to compile: loops for speed, and what they share, which is not in any loop."""
    names = sorted(path.stem for path in FOLDER.glob("*.pyx"))
    fast = [_extension(f"{PACKAGE}.{name}", FOLDER / f"{name}.pyx", "-O3") for name in names]
    both = [*fast, _extension(SHARED, FOLDER / "views.c", "-O1")]
    if cythonize is None:
        return both  # setuptools looks for the .c beside each .pyx
    return cythonize(both, shared_utility_qualified_name=SHARED, nthreads=CORES, quiet=True)


def _extension(name: str, source: Path, level: str) -> Extension:
    return Extension(name, [source.as_posix()], extra_compile_args=[level, "-g0"])


if __name__ == "__main__":
    setup(ext_modules=loops(), cmdclass={"build_ext": BuildOnAllCores})
