"""The compiled loops, most of them the memory engine's; everything else is in pyproject.toml.

What they share of Cython, its memory views, is a module of its own: compiled once instead of for
each. Where Cython is not installed, the C files that a source distribution brings are compiled.
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from Cython.Build import cythonize
except ImportError:
    cythonize = None

SOURCES = Path("src")
PACKAGE = SOURCES / "dp_sips"
VIEWS = PACKAGE / "views.c"
CORES = os.cpu_count() or 1


class BuildOnAllCores(build_ext):
    """Compile as many files at a time as there are cores, unless told otherwise."""

    def finalize_options(self) -> None:
        """Set what nobody has set."""
        super().finalize_options()
        self.parallel = self.parallel or CORES


def loops() -> list[Extension]:
    """Return what to compile: loops for speed, and what they share, which is not in any loop."""
    paths = sorted(PACKAGE.rglob("*.pyx"))
    both = [*(_extension(path, "-O3") for path in paths), _extension(VIEWS, "-O1")]
    if cythonize is None:
        return both  # setuptools looks for the .c beside each .pyx
    shared = _module(VIEWS)
    return cythonize(both, shared_utility_qualified_name=shared, nthreads=CORES, quiet=True)


def _extension(source: Path, level: str) -> Extension:
    # Every sum and product is rounded as NumPy rounds it, on every machine.
    options = [level, "-g0", "-ffp-contract=off"]
    return Extension(_module(source), [source.as_posix()], extra_compile_args=options)


def _module(source: Path) -> str:
    return ".".join(source.relative_to(SOURCES).with_suffix("").parts)


if __name__ == "__main__":
    setup(ext_modules=loops(), cmdclass={"build_ext": BuildOnAllCores})
